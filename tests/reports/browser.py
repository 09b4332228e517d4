"""Headless Chromium over its DevTools pipe, with nothing but the standard library."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE_S = 60


def chromium() -> str | None:
    """Return the browser's path, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One tab. `console` collects messages and errors, `requests` the addresses asked for."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        """Send a command and return its result; events on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._keep(answer)

    def _receive(self) -> dict[str, Any]:
        deadline = monotonic() + _PATIENCE_S
        while b"\0" not in self._buffer:
            if not select([self._read], [], [], max(deadline - monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("the browser went away")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def _keep(self, event: Mapping[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(str(found["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(found["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(
        self, path: Path, width: int = 1400, height: int = 1000, scheme: str = "light"
    ) -> None:
        """Load a file and wait for its load event; what was collected before is dropped."""
        self.console.clear()
        self.requests.clear()
        self.resize(width, height)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self._loaded = False
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._keep(self._receive())

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window's inside."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send a mouse event: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write a PNG of the page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path: Path) -> None:
        """Print the page."""
        data = self.call("Page.printToPDF", printBackground=True)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """Start the browser with a fresh profile and give its page; it ends with the block."""
    to_child, from_us = os.pipe()
    to_us, from_child = os.pipe()
    # The browser reads commands from file 3 and answers on file 4.
    shell = f'exec "$0" "$@" 3<&{to_child} 4>&{from_child}'
    command = ["bash", "-c", shell, program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        command,
        pass_fds=(to_child, from_child),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_child)
    os.close(from_child)
    try:
        yield Page(to_us, from_us)
    finally:
        os.close(from_us)
        os.close(to_us)
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
