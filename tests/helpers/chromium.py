"""A browser for tests: Chromium, driven over its debugging pipe. Collects what a page complains about."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --hide-scrollbars --mute-audio "
    "--no-default-browser-check --disable-dev-shm-usage --remote-debugging-pipe"
).split()


def executable() -> str | None:
    """Chromium's path; None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One Chromium with one page."""

    def __init__(self, profile: Path) -> None:
        theirs, self._out = os.pipe()
        self._in, ours = os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4: first out of the way of those two
        source, sink = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs, ours))
        command = [executable() or "chromium", *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._pid = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, source, 3),
                (os.POSIX_SPAWN_DUP2, sink, 4),
            ],
        )
        for end in (theirs, ours, source, sink):
            os.close(end)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.loaded = False
        self.requests: list[str] = []
        try:
            self._attach()
        except Exception:
            self.close()
            raise

    def _attach(self) -> None:
        pages = self.send("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)  # keys reach a page that has the focus

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._session = None
            self.send("Browser.close")
        for _ in range(100):
            if os.waitpid(self._pid, os.WNOHANG)[0]:
                break
            time.sleep(0.1)
        else:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    # ------------------------------------------------------------------------------------ protocol

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command and its answer; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._message(30)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _message(self, seconds: float) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:1000])
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
            self.complaints.append(json.dumps(params["args"])[:1000])
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"a dialog opened: {params['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"][:200])
        elif method == "Page.loadEventFired":
            self.loaded = True

    # ------------------------------------------------------------------------------------ what a person does

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until its first view is there."""
        self.complaints.clear()
        self.send("Page.navigate", url="about:blank")
        self.requests = []
        self.loaded = False
        self.send("Page.navigate", url=path.as_uri() + fragment)
        self.wait("document.querySelector('#app header') || document.querySelector('#app table')")
        while not self.loaded:
            self._message(30)

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 20) -> Any:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(RuntimeError):
                if value := self.js(
                    f"(() => {{ const v = {condition}; return v instanceof Node ? true : v }})()"
                ):
                    return value
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {condition}")
            time.sleep(0.03)

    def click(self, selector: str) -> None:
        """Click the first element of a selector where it is."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        x, y = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'nearest'});"
            "const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2] })()"
        )
        self.click_at(x, y)

    def click_at(self, x: float, y: float, clicks: int = 1) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=clicks)

    def drag(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=x0, y=y0, button="left", clickCount=1)
        for i in range(1, 6):
            x, y = x0 + (x1 - x0) * i / 5, y0 + (y1 - y0) * i / 5
            self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=x1, y=y1, button="left", clickCount=1)

    def wheel(self, x: float, y: float, delta: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)

    def key(self, key: str) -> None:
        """Press a key: a letter, or a name such as ArrowDown."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def type(self, selector: str, text: str) -> None:
        """Put text into a field as if typed."""
        self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select() }})()"
        )
        self.key("Backspace") if not text else self.send("Input.insertText", text=text)

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def dark(self, on: bool) -> None:
        value = "dark" if on else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser for the length of a block."""
    window = Browser(profile)
    try:
        yield window
    finally:
        window.close()
