#!/usr/bin/env python3
"""Which functions, constants and types of this workspace the binaries reach, as far as names show it.

    tests/reachable.py [ROOT]      prints `reached FILE::NAME` or `unreached FILE::NAME` for each

A name is reached if reached code outside tests mentions it. `main`, everything outside functions
and the methods of traits are reached, and so is each function whose name a reached function mentions.
Names alone decide: one that several items share counts as reached for all of them. So what is unreached
is certain, and what is reached is not."""
import os
import re
import sys

CRATES = ["src", "machines", "framing/src", "client/src", "fabric/src", "nodes/src", "nodes/tools/src", "bench/src"]
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|r#*\"(?:.|\n)*?\"#*|b?\"(?:\\.|[^\"\\])*\"|'(?:\\.[^']*|[^\\'])'|'\w+"
    r"|\w+|[{};()\[\]#!=<>]|\S",
    re.S,
)
NAME = re.compile(r"[A-Za-z_]\w*$")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
MODIFIERS = {"pub", "unsafe", "async", "extern"}
ITEMS = {"fn", "const", "static", "struct", "enum", "trait", "type"}


def files(root):
    for crate in CRATES:
        for folder, _, names in os.walk(os.path.normpath(os.path.join(root, crate))):
            for name in names:
                if name.endswith(".rs"):
                    yield os.path.join(folder, name)


def tokens(text):
    return [t for t in TOKEN.findall(text) if not t.startswith(("//", "/*"))]


def end_of(toks, at, opening="{", closing="}"):
    """The index after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(toks)):
        depth += (toks[i] == opening) - (toks[i] == closing)
        if depth == 0:
            return i + 1
    return len(toks)


def is_test(attribute):
    return attribute[:2] == ["cfg", "("] and "test" in attribute and "not" not in attribute or attribute in (["test"],)


def item_end(toks, at):
    """The index after the item, statement, or field with its comma that begins at `at`."""
    first = at
    while toks[first] in MODIFIERS:
        first = end_of(toks, first + 1, "(", ")") if toks[first + 1] == "(" else first + 1
    if toks[first] not in ITEMS | {"mod", "use", "impl", "let", "macro_rules", "if", "for", "{"}:
        while at < len(toks) and toks[at] not in ",;}":
            at = end_of(toks, at, toks[at], BRACKETS[toks[at]]) if toks[at] in BRACKETS else at + 1
        return at + (at < len(toks) and toks[at] != "}")
    while at < len(toks) and toks[at] not in "{;":
        at = end_of(toks, at, "(", ")") if toks[at] == "(" else at + 1
    return end_of(toks, at) if at < len(toks) and toks[at] == "{" else at + 1


def without_tests(toks):
    """The tokens that are compiled without tests, and the out-of-line modules that only tests have."""
    kept, only_tests, at = [], [], 0
    while at < len(toks):
        if toks[at] == "#" and at + 1 < len(toks) and toks[at + 1] in "[!":
            bracket = at + 1 + (toks[at + 1] == "!")
            end = end_of(toks, bracket, "[", "]")
            if is_test(toks[bracket + 1 : end - 1]):
                path = None
                while end < len(toks) and toks[end] == "#":
                    more = end_of(toks, end + 1, "[", "]")
                    if toks[end + 2] == "path":
                        path = toks[end + 4].strip('"')
                    end = more
                stop = item_end(toks, end)
                if "mod" in toks[end : end + 6] and toks[stop - 1] == ";":
                    only_tests.append((path, toks[stop - 2]))
                at = stop
            else:
                # Names in attributes count as mentioned, such as `value_parser = parse_loads`.
                kept += [t for t in toks[bracket + 1 : end - 1] if NAME.match(t) and t not in ITEMS]
                at = end
            continue
        kept.append(toks[at])
        at += 1
    return kept, only_tests


def read(root):
    """Tokens by file, without tests and without the files of test modules."""
    by_file, gone = {}, []
    for file in files(root):
        kept, only_tests = without_tests(tokens(open(file, encoding="utf-8").read()))
        by_file[file] = kept
        folder, name = os.path.split(file)
        own = folder if name in ("mod.rs", "lib.rs", "main.rs") else os.path.join(folder, name[:-3])
        for path, module in only_tests:
            if path:
                gone.append(os.path.normpath(os.path.join(folder, path)))
            else:
                gone += [os.path.join(own, module + ".rs"), os.path.join(own, module) + os.sep]

    def is_gone(file):
        return any(file == g or g.endswith(os.sep) and file.startswith(g) for g in gone)

    return {file: toks for file, toks in by_file.items() if not is_gone(file)}


def uses(toks):
    """(function or None, mentioned name) pairs of a file, and the names that it defines."""
    mentions, defined = [], []
    # The scopes around the current token: (depth of the body, the function or None for other items).
    stack, depth, pending, at, in_trait = [], 0, None, 0, False
    current = lambda: stack[-1][1] if stack else None
    while at < len(toks):
        t = toks[at]
        if t == "use" and (at == 0 or toks[at - 1] in ("pub", "}", ";", ")", "{", "]")):
            while at < len(toks) and toks[at] != ";":
                at += 1
        elif t == "impl" and current() is None:
            head = toks[at : at + 80]
            head = head[: head.index("{")] if "{" in head else head
            in_trait = "for" in head
            pending = None
        elif t in ITEMS and at + 1 < len(toks) and NAME.match(toks[at + 1]) and not (t == "const" and toks[at + 1] == "fn"):
            name = toks[at + 1]
            if name != "_" and name not in ITEMS:
                defined.append(name)
            if t == "fn":
                pending = None if in_trait and not any(f for _, f in stack) else name
                pending = (pending,)
            at += 1
        elif t == "{":
            depth += 1
            if pending:
                stack.append((depth, pending[0]))
                pending = None
        elif t == "}":
            if stack and stack[-1][0] == depth:
                stack.pop()
            depth -= 1
            if depth <= 0:
                in_trait = False
        elif t == ";" and pending:
            pending = None
        elif NAME.match(t):
            owner = pending[0] if pending else current()
            mentions.append((owner, t))
        at += 1
    return mentions, defined


def items(root):
    """(is reached, file, name) of every item defined outside tests."""
    by_function, defined = {}, set()
    reached, todo = {"main"}, ["main"]
    for file, toks in read(root).items():
        mentions, names = uses(toks)
        defined.update((os.path.relpath(file, root), name) for name in names)
        for function, name in mentions:
            if function is not None:
                by_function.setdefault(function, set()).add(name)
            elif name not in reached:
                reached.add(name)
                todo.append(name)
    while todo:
        more = by_function.get(todo.pop(), set()) - reached
        reached |= more
        todo += more
    return [(name in reached, file, name) for file, name in sorted(defined)]


if __name__ == "__main__":
    for is_reached, file, name in items(sys.argv[1] if len(sys.argv) > 1 else "."):
        print("reached" if is_reached else "unreached", f"{file}::{name}")
