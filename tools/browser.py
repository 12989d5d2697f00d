# SPDX-License-Identifier: BSD-2-Clause
"""Opens pages in a headless Chromium, by its DevTools protocol over a pair of pipes: no port, no other package."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Failure(Exception):
    """The browser does not do as it is asked."""


class Browser:
    """One Chromium with one page. What the page asked for and complained about is kept in @requests and @complaints."""

    def __init__(self, limit=30):
        self.limit = limit
        self.home = tempfile.mkdtemp(prefix="cozbpf-browser-")
        commands, self.to = os.pipe()
        self.back, answers = os.pipe()
        # The protocol is spoken on descriptors 3 and 4.
        command = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", f"--user-data-dir={self.home}",
                   "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"]  # fmt: skip
        self.process = subprocess.Popen(["bash", "-c", command, "bash", str(commands), str(answers), executable(), *options, "about:blank"],
                                        pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.buffer, self.number, self.session = b"", 0, None
        self.requests, self.complaints, self.loaded = [], [], False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)
        os.close(self.back)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, until):
        """The next message, by the time @until."""
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, until - time.monotonic()))[0]:
                raise Failure(f"no answer within {self.limit} s")
            data = os.read(self.back, 1 << 16)
            if not data:
                raise Failure("it ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("text", "exception"))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(a.get("value")) for a in params["args"]))
        elif method == "Page.loadEventFired":
            self.loaded = True

    def ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + self.limit
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, scripts=True):
        """Loads a file, as a double click does; returns how many seconds that took."""
        self.requests, self.complaints, self.loaded = [], [], False
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        began = time.monotonic()
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        until = began + self.limit
        while not self.loaded:
            self.message(until)
        return time.monotonic() - began

    def value(self, expression):
        """What a JavaScript expression says on the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise Failure(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def look(self, width, height, dark=False):
        """The size of the window, and whether the page is asked for dark colours."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        """The whole page as a PNG."""
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
