#!/usr/bin/env python3
"""Drives a headless Chromium over its debugging pipe: no more than Python and the browser are needed.

browser.py PAGE SCRIPT...    opens PAGE and runs each SCRIPT, a JavaScript expression that may be a promise, one
                             after the other; prints what each gives as a line of JSON. Status 1 when one throws
                             or takes longer than 30 s, or when the page has said anything on its console.
  --shot FILE                a picture at the end
  --size WIDTHxHEIGHT        of the window; 1440x900 otherwise
  --dark                     as for somebody who likes it dark
  --between COMMAND          a shell command that is run before the last SCRIPT
"""

import argparse
import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self, size, dark):
        to_browser, own_out = os.pipe()
        own_in, from_browser = os.pipe()
        # The browser reads at 3 and writes at 4.
        def ends():
            os.dup2(to_browser, 13)
            os.dup2(from_browser, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        arguments = [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}",
            f"--window-size={size[0]},{size[1]}", "--hide-scrollbars",
        ] + (["--force-dark-mode"] if dark else [])
        self.process = subprocess.Popen(arguments, preexec_fn=ends, close_fds=False, stderr=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        self.out, self.into, self.rest = own_out, own_in, b""
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.said, self.session = 0, [], None
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})
        if dark:
            self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        for domain in ("Runtime", "Log", "Page"):
            self.call(domain + ".enable", {})

    def messages(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.into], [], [], max(0, deadline - time.time()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.into, 1 << 20)
            if not more:
                raise EOFError("the browser has gone")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, params, patience=30):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.time() + patience
        while True:
            answer = self.messages(deadline)
            if answer.get("method") == "Runtime.consoleAPICalled":
                self.said.append(str([part.get("value") for part in answer["params"]["args"]]))
            elif answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.said.append(details.get("exception", {}).get("description") or details["text"])
            elif answer.get("method") == "Log.entryAdded":
                entry = answer["params"]["entry"]
                self.said.append(f"{entry['text']} {entry.get('url', '')}")
            elif answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def value(self, script):
        result = self.call("Runtime.evaluate", {"expression": script, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", {}, 5)
        except Exception:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("page")
    parser.add_argument("scripts", nargs="*")
    parser.add_argument("--shot")
    parser.add_argument("--size", default="1440x900")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--between")
    given = parser.parse_args()
    browser = Browser([int(part) for part in given.size.split("x")], given.dark)
    status = 0
    try:
        browser.call("Page.navigate", {"url": given.page})
        for number, script in enumerate(given.scripts):
            if given.between and number == len(given.scripts) - 1:
                subprocess.run(given.between, shell=True, check=True)
            print(json.dumps(browser.value(script)), flush=True)
        if given.shot:
            shot = browser.call("Page.captureScreenshot", {"format": "png"})
            with open(given.shot, "wb") as file:
                file.write(base64.b64decode(shot["data"]))
    except Exception as error:
        print(f"browser: {error}", file=sys.stderr)
        status = 1
    finally:
        browser.close()
    for said in browser.said:
        print(f"console: {said}", file=sys.stderr)
        status = 1
    sys.exit(status)


main()
