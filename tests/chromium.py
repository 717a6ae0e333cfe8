"""Headless Chromium driven over a pipe, for tests of pages: `with opened(browser, url, profile) as tab: ...`.

The DevTools protocol as messages that end in a zero byte, on the file descriptors 3 and 4 of the browser; so no port is
open and no library is needed. What a test evaluates is not subject to the page's policy, the page's own code is.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A browser without a window that asks nobody for anything."""

FLAGS = (*QUIET, "--remote-debugging-pipe")
LAUNCHER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
PATIENCE = 20.0
"""Seconds for one step on a busy machine."""

KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}


def found_browser() -> str:
    """The browser's path; skips the test where there is none."""
    match = next(filter(None, map(shutil.which, NAMES)), None)
    if match is None:
        pytest.skip(f"NO BROWSER: none of {', '.join(NAMES)} is installed; run: apt-get install chromium")
    return match


class Tab:
    """One page.

    Attributes:
        complaints: What the page's console said: errors, refused loads, uncaught exceptions.
        dialogs: What `alert` and its like wanted to show.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._rest, self._number = b"", 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.dialogs: list[str] = []

    def open(self, url: str) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})")

    def leave(self) -> None:
        """Close the page; the next is a new one, in the same browser."""
        self.call("Page.close")
        self._session = None
        self.complaints.clear()
        self.dialogs.clear()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        evaluated = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in evaluated, evaluated["exceptionDetails"]
        return evaluated["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until the expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}; the page said {self.complaints}"
            time.sleep(0.02)

    def write(self, text: str) -> None:
        """As typed into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press and release a key of `KEYS`."""
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        if key == "Enter":
            code["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def picture(self, path: Path) -> None:
        """A screenshot of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(shot["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser is gone"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, details: dict[str, Any]) -> None:
        if event == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(details["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(details["args"]))
        elif event == "Page.javascriptDialogOpening":
            self.dialogs.append(details["message"])


@contextmanager
def opened(browser: str, url: str, profile: Path, *flags: str) -> Iterator[Tab]:
    """A browser of its own with the page open."""
    pipes = [os.pipe(), os.pipe()]
    to_browser, from_browser = pipes
    theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser[0], from_browser[1])]
    command = [sys.executable, "-c", LAUNCHER, *map(str, theirs), browser, *FLAGS, *flags, f"--user-data-dir={profile}"]
    process = subprocess.Popen(command, pass_fds=theirs, stderr=subprocess.DEVNULL)
    for fd in (*theirs, to_browser[0], from_browser[1]):
        os.close(fd)
    try:
        tab = Tab(from_browser[0], to_browser[1])
        tab.open(url)
        yield tab
    finally:
        process.terminate()
        process.wait(30)
        os.close(to_browser[1])
        os.close(from_browser[0])
