#!/usr/bin/env python3
"""Runs the command blocks of a page of the guide, and compares the output with what the page shows.

    blocks.py PAGE --dir DIR --id ID [--timeout S]

A block is fenced as ```console. Lines that begin with `$ ` are commands (a command that ends in a backslash continues in
the next line, with or without `> `), and the lines below each are its output. Only the shape is compared: all numbers,
times and hexadecimal words are equal, runs of blanks count as one, empty lines are ignored, `...` in a line stands for any
text, and alone for any number of lines. Words after a comma:

    norun         the block is not run; an HTML comment before the block says why
    output=none   the block is run, but its output is not compared

All blocks of a page are run in one shell in DIR. ID is appended to the names of labs, and removed from the output. A
command that ends in ` &` continues in the background; its first output is compared. A page fails if a command fails
without a remark on the page or does not exist, or if the page leaves a lab up.

Without PHITWIRE_LONG=1, measurements of a second at full rate take 0.3 s: they keep all processors busy.

Prints TAP lines without numbers, and the reason for each block that is not run; status 1 if a line is `not ok`.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

IS_LONG = os.environ.get("PHITWIRE_LONG", "0") != "0"
# A `msgrate` command that runs for one second at full rate.
FULL_RATE = re.compile(r"(phitwire-msgrate (?:(?!--rate)[^|&;])*--seconds) 1(?![\d.])")
NUMBER = r"\d[\d,.']*"
# Warnings of `msgrate` about a busy host, on standard error: they depend on the host and not on the page.
BUSY_HOST = re.compile(
    r"\d+ process(?:es)? did not run for more than 50 ms at a time, |[\d.]+ s were spent waiting for the last answers"
    r"|phitwire-msgrate: waiting for answers to messages, ")
UNIT = r"(?:[ ]?(?:[numµk]?s|[kMGT]?i?B|[kMG]|[kMG]b/s|KiB|MiB|GiB)(?![\w/]))"


def shape(line):
    """A line with all numbers replaced by the same sign."""
    line = re.sub(r"\b0x[0-9a-fA-F]+", "#", line)
    line = re.sub(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}\b", "#", line)
    line = re.sub(NUMBER + UNIT, "#", line)
    line = re.sub(NUMBER, "#", line)
    line = re.sub(r"(?<=#)[.,](?=\s|$)", "", line)
    line = re.sub(r"(?<![\w#)\]])-#", "#", line)
    line = re.sub(r"\s+", " ", line)
    line = re.sub(r"([-─═_=])\1+", r"\1", line)
    return line.strip()


def line_fits(shown, printed):
    """Whether a line of the page matches a printed line."""
    if "..." not in shown:
        return shape(shown) == shape(printed)
    parts = [re.escape(shape(part)) for part in shown.split("...")]
    return re.fullmatch(r"\s*.*?\s*".join(parts), shape(printed)) is not None


def fits(shown, printed):
    """The first line that does not match, as (shown, printed) numbers; None if all match."""
    furthest = (0, 0)

    def go(s, p):
        nonlocal furthest
        while s < len(shown):
            furthest = max(furthest, (s, p))
            if shown[s].strip() == "...":
                if s + 1 == len(shown):
                    return True
                return any(go(s + 1, after) for after in range(p, len(printed) + 1))
            if p == len(printed) or not line_fits(shown[s], printed[p]):
                return False
            s, p = s + 1, p + 1
        furthest = max(furthest, (s, p))
        return p == len(printed)

    return None if go(0, 0) else furthest


class Block:
    """A block of a page: its commands and the output shown for each."""

    def __init__(self, line, words, reason):
        self.line, self.words, self.reason = line, words, reason
        self.commands = []

    def take(self, text, number):
        """Adds the next line of the block."""
        if text.startswith("$ "):
            self.commands.append((number, [text[2:]], []))
        elif self.commands and not self.commands[-1][2] and self.commands[-1][1][-1].endswith("\\"):
            self.commands[-1][1].append(text.removeprefix("> "))
        elif self.commands:
            self.commands[-1][2].append(text)
        else:
            raise SystemExit(f"not ok - line {number}: a console block begins with a command behind `$ `")


def blocks_of(text):
    """The blocks of a page."""
    found, block, fence, before = [], None, None, ""
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"(\s*)(`{3,}|~{3,})(.*)", line)
        if fence is None and opened:
            fence = opened.group(2)
            words = [word.strip() for word in opened.group(3).strip().split(",")]
            if words[0] == "console":
                comment = re.search(r"<!--((?:(?!-->).)*)-->\s*$", before, re.S)
                block = Block(number, words[1:], comment and " ".join(comment.group(1).split()))
                indent = len(opened.group(1))
        elif fence is not None and line.strip() == fence:
            if block:
                found.append(block)
            block, fence, before = None, None, ""
        elif block:
            block.take(line[indent:] if not line[:indent].strip() else line, number)
        elif fence is None:
            before += line + "\n"
    return found


class Shell:
    """A shell whose commands write their output to files."""

    def __init__(self, directory, environment):
        self.directory = directory
        self.count = 0
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=directory / "page", env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[answers], start_new_session=True)
        os.close(answers)
        self.send(f"exec {{ANSWER}}>&{answers} {answers}>&-\n")
        self.rest = b""

    def send(self, text):
        """Sends a text to the shell's standard input."""
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def run(self, command, timeout):
        """Runs a command; returns its status (None if it does not end in time) and output."""
        self.count += 1
        script, output = self.directory / f"{self.count}.sh", self.directory / f"{self.count}.out"
        script.write_text(command + "\n")
        self.send(f'eval "$(<{script})" >{output} 2>&1 </dev/null {{ANSWER}}>&-; ANSWERED=$?; '
                  f'printf "%s\\n" "$ANSWERED" >&$ANSWER\n')
        status = self.answer(timeout)
        return status, output

    def answer(self, timeout):
        """Waits for the status of the next command."""
        import select
        end = time.monotonic() + timeout
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                return None
            more = os.read(self.answers, 4096)
            if not more:
                return 255
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return int(line)

    def end(self):
        """Ends remaining background jobs, with SIGTERM first."""
        for name in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, name)
            except ProcessLookupError:
                return
            for _ in range(50):
                self.process.poll()
                try:
                    os.killpg(self.process.pid, 0)
                except (ProcessLookupError, PermissionError):
                    return
                time.sleep(0.1)


class Page:
    """A page that is being run."""

    def __init__(self, options):
        self.options = options
        self.name = options.name or options.page.name
        text = options.page.read_text()
        self.blocks = blocks_of(text)
        commands = [line for block in self.blocks for _, lines, _ in block.commands for line in lines]
        found = re.findall(r"(?:--lab[ =]|PHITWIRE_LAB=|phw-)([A-Za-z0-9_]+)", "\n".join(commands))
        self.labs = sorted({"lab", *found} - {"LAB", "NAME"})
        self.failed = False

    def ours(self, command):
        """The command with unique lab names."""
        for lab in self.labs:
            own = f"{lab}_{self.options.id}"
            command = re.sub(rf"(--lab[ =]|PHITWIRE_LAB=|phw-){lab}(?![A-Za-z0-9_])", rf"\g<1>{own}", command)
            run = os.environ["PHITWIRE_RUN_DIR"]
            command = re.sub(rf"/run/phitwire/{lab}(?![A-Za-z0-9_])", f"{run}/{own}", command)
        return command if IS_LONG else FULL_RATE.sub(r"\1 0.3", command)

    def theirs(self, text):
        """The output, with the names that the page uses."""
        text = text.replace(os.environ["PHITWIRE_RUN_DIR"], "/run/phitwire")
        text = text.replace(str(self.options.dir / "page"), ".")
        return re.sub(rf"\b({'|'.join(self.labs)})_{self.options.id}\b", r"\1", text)

    def say(self, is_ok, where, command, why=""):
        """Prints the result of a command."""
        command = command.replace("\n", " ")
        self.failed |= not is_ok
        print(f"ok - {where}: {command}" if is_ok else f"not ok - {where}: {command}: {why}", flush=True)

    def run(self):
        """Runs all blocks; returns whether all succeeded."""
        page = self.options.dir / "page"
        page.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ, PHITWIRE_LAB=f"lab_{self.options.id}", NO_COLOR="1", COLUMNS="100", LC_ALL="C.UTF-8")
        shell = Shell(self.options.dir, environment)
        try:
            for block in self.blocks:
                if "norun" in block.words:
                    self.skip(block)
                    continue
                if unknown := set(block.words) - {"output=none"}:
                    self.say(False, f"{self.name}:{block.line}", "block", f"unknown words {sorted(unknown)}")
                for number, lines, shown in block.commands:
                    if not self.command(shell, block, number, "\n".join(lines), shown):
                        return False
        finally:
            shell.end()
            self.take_down()
        return not self.failed

    def skip(self, block):
        """Checks that a block that is not run has a reason."""
        where = f"{self.name}:{block.line}"
        if block.reason:
            commands = " ".join(lines[0] for _, lines, _ in block.commands[:1])
            print(f"# not run - {where}: {commands}: {block.reason}", flush=True)
        else:
            self.say(False, where, "norun", "an HTML comment before it has to say why")

    def command(self, shell, block, number, command, shown):
        """Runs one command; returns whether the page can continue."""
        where = f"{self.name}:{number}"
        shown = [line for line in shown if line.strip()]
        begin = time.monotonic()
        status, file = shell.run(self.ours(command), self.options.timeout)
        if status is None:
            self.say(False, where, command, f"takes longer than {self.options.timeout} s")
            return False
        wrong, printed = self.wrong(file, command, shown, "output=none" in block.words)
        if status in (126, 127):
            why = "there is no such command"
        elif status != 0 and (not shown or "output=none" in block.words):
            why = f"status {status}, and the page says nothing of it"
        elif wrong:
            why = wrong
        else:
            took = int((time.monotonic() - begin) * 1000)
            self.say(True, where, f"{command} ({took} ms)")
            return True
        self.say(False, where, command, why)
        for line in printed[-40:]:
            print(f"#   {line}", flush=True)
        return status not in (126, 127)

    def wrong(self, file, command, shown, is_free):
        """The fault in a command's output, and the output."""
        is_behind = command.rstrip().endswith("&")
        end = time.monotonic() + (10 if is_behind and shown else 0)
        if is_behind:
            shown = [line for line in shown if not re.fullmatch(r"\[\d+\] \d+", line)]
        while True:
            printed = self.theirs(file.read_text(errors="replace")).splitlines()
            printed = [line for line in printed if not BUSY_HOST.match(line)]
            # On a busy machine a run may take more than ten seconds, after which it prints its progress.
            printed = [line for line in printed if line.strip() and not re.match(r"phitwire [a-z]+: \d+ s, ", line)]
            place = None if is_free else fits(shown, printed)
            if place is None:
                return "", printed
            if time.monotonic() >= end:
                break
            time.sleep(0.1)
        if is_behind and not shown:
            return "", printed
        at_shown, at_printed = place
        expected = shown[at_shown] if at_shown < len(shown) else "(nothing more)"
        there = printed[at_printed] if at_printed < len(printed) else "(nothing more)"
        return f"line {at_printed + 1} should be like `{expected}`, and is `{there}`", printed

    def take_down(self):
        """Takes down and reports labs that the page leaves up."""
        for lab in self.labs:
            own = f"{lab}_{self.options.id}"
            names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
            is_left = (Path(os.environ["PHITWIRE_RUN_DIR"]) / own).exists() or f"phw-{own}-" in names
            if is_left:
                self.say(False, self.name, f"lab {lab}", "the page does not take it down")
                subprocess.run(["down.sh", "--lab", own], check=False, capture_output=True)


def main():
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=Path)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--id", required=True)
    parser.add_argument("--name")
    parser.add_argument("--timeout", type=float, default=120)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(0 if Page(parser.parse_args()).run() else 1)


if __name__ == "__main__":
    main()
