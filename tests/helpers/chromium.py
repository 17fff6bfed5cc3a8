"""A browser for tests: Chromium, driven over its debugging pipe. Collects what a page complains about.

A page answers later: what a test expects after a click, a key or a navigation is waited for (`wait`,
`expect`, `eventually`), never read at once. The limits are for machines that stand still for a while; only
failures use them up.
"""

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --hide-scrollbars --mute-audio "
    "--no-default-browser-check --disable-dev-shm-usage --remote-debugging-pipe"
).split()

_ANSWER_S = 180.0  # for an answer to a command
_WAIT_S = 120.0  # for a condition
_START_S = 60.0  # for a first page: a browser that hangs at its start is started again
_STARTS = 4


def executable() -> str | None:
    """Chromium's path; None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


class PageError(RuntimeError):
    """The page could not answer: it threw an exception, or is being left for another one."""


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
        self.requests: list[str] = []
        try:
            self._attach()
        except BaseException:
            self._end(at_once=True)
            raise

    def _attach(self) -> None:
        until = time.monotonic() + _START_S
        while not (target := self._first_page(until)):  # the browser answers before it has a page
            if time.monotonic() > until:
                raise TimeoutError("the browser opens no page")
            time.sleep(0.03)
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)  # keys reach a page that has the focus

    def _first_page(self, until: float) -> str | None:
        targets = self.send("Target.getTargets", answer_s=max(1.0, until - time.monotonic()))["targetInfos"]
        return next((target["targetId"] for target in targets if target["type"] == "page"), None)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._session = None
            self.send("Browser.close", answer_s=10)
        self._end(at_once=False)

    def _end(self, *, at_once: bool) -> None:
        """Wait until the process has ended, and end one that does not."""
        until = time.monotonic() + (0 if at_once else 10)
        while not (ended := os.waitpid(self._pid, os.WNOHANG)[0]) and time.monotonic() < until:
            time.sleep(0.03)
        if not ended:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    # ------------------------------------------------------------------------------------ protocol

    def send(self, method: str, *, answer_s: float = _ANSWER_S, **params: Any) -> dict[str, Any]:
        """A command and its answer; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        until = time.monotonic() + answer_s
        while True:
            answer = self._message(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                return answer["result"]

    def _message(self, until: float) -> dict[str, Any]:
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
        elif method == "Inspector.targetCrashed":
            raise RuntimeError("the page has crashed")

    # ------------------------------------------------------------------------------------ what a person does

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until its first view is there."""
        self._go("about:blank")
        self.complaints.clear()
        self.requests.clear()
        self._go(path.as_uri() + fragment)
        self.wait("document.querySelector('#app header') || document.querySelector('#app table')")
        self.frames()

    def _go(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        """The value of an expression in the page as it is now."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise PageError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = _WAIT_S) -> Any:
        """Wait until an expression is true, and return its value; of an element: true."""
        expression = f"(() => {{ const v = {condition}; return v instanceof Node ? true : v }})()"
        until = time.monotonic() + seconds
        while True:
            try:
                if value := self.js(expression):
                    return value
            except PageError as error:  # e.g. an element that is not there yet
                value = error
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {condition}; the last value is {value!r}")
            time.sleep(0.03)

    def eventually(self, check: Callable[[], None], seconds: float = _WAIT_S) -> None:
        """Wait until a function's assertions hold, or raise the last failure. Also as a decorator."""
        until = time.monotonic() + seconds
        while True:
            try:
                return check()
            except (AssertionError, PageError, LookupError, TypeError):  # the last two: not all is drawn yet
                if time.monotonic() > until:
                    raise
            time.sleep(0.03)

    def expect(self, expression: str, value: Any, seconds: float = _WAIT_S) -> None:
        """Wait until an expression has a value."""

        def check() -> None:
            shown = self.js(expression)
            assert shown == value, expression

        self.eventually(check, seconds)

    def frames(self, count: int = 3) -> None:
        """Wait until frames have been drawn: then input meets the elements and listeners of now."""
        for _ in range(count):
            self.js("new Promise(resolve => { requestAnimationFrame(() => setTimeout(resolve, 0)) })")

    def click(self, selector: str) -> None:
        """Click the first element of a selector, once it stands still and nothing covers it."""
        middle = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'nearest'});"
            "const r = e.getBoundingClientRect();"
            "const [x, y] = [r.left + r.width / 2, r.top + r.height / 2];"
            "const at = document.elementFromPoint(x, y);"
            "return at && (e.contains(at) || at.closest('label')?.contains(e)) ? [x, y] : null })()"
        )
        before, place = None, self.wait(middle)
        while place != before:
            self.frames(2)
            before, place = place, self.wait(middle)
        self.click_at(*place)

    def click_at(self, x: float, y: float, clicks: int = 1) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=clicks)

    def drag(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=x0, y=y0, button="left", clickCount=1)
        for i in range(1, 6):
            x, y = x0 + (x1 - x0) * i / 5, y0 + (y1 - y0) * i / 5
            self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=x1, y=y1, button="left", clickCount=1)

    def focus(self, selector: str) -> None:
        """Give an element the focus, once it is there."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")

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
        self.wait(f"document.querySelector({json.dumps(selector)})")
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
    window = _started(profile)
    try:
        yield window
    finally:
        window.close()


def _started(profile: Path) -> Browser:
    """A browser that answers. One that hangs or ends at its start is ended, and another is started."""
    for number in range(_STARTS):
        try:
            return Browser(profile.with_name(f"{profile.name}-{number}"))
        except (OSError, RuntimeError):  # a timeout, a broken pipe, or the end of the process
            if number == _STARTS - 1:
                raise
    raise AssertionError
