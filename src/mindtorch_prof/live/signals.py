"""Signals that end programs: what has to be done before one does, in; handlers that leave the program's own alone, out."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

FATAL = ("SIGTERM", "SIGHUP")  # signals that end a program that does not handle them
_INTERRUPTING = ("SIGINT", *FATAL)


class Interrupted(BaseException):
    """A second signal came while work was finished before the first one takes effect."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal_name(number)}")
        self.number = number


_Handler: TypeAlias = "Callable[[int, FrameType | None], object]"


class EndingSignals:
    """Does something before a signal ends the process.

    finish: called with the number of a signal that the program does not handle itself. leave: ends the process after it, as the signal
    would have; no further line of the program runs. before_own: called with the number before the program's own handler, where there is one
    when the signals are caught; None: such signals are left alone.
    """

    def __init__(
        self,
        finish: Callable[[int], None],
        leave: Callable[[int], None] | None = None,
        before_own: Callable[[int], None] | None = None,
    ) -> None:
        self._finish, self._leave, self._before_own = finish, leave or die_of, before_own
        self._pid = os.getpid()
        self._caught: dict[int, _Handler | signal.Handlers] = {}  # by signal: the handler before

    def catch(self) -> None:
        """Handle the signals from now on. Only the main thread can; on others this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _numbers(_INTERRUPTING):
            before = signal.getsignal(number)
            if before is signal.SIG_DFL and number in _numbers(FATAL):
                self._caught[number] = signal.SIG_DFL
                signal.signal(number, self._on_signal)
            elif (
                self._before_own is not None and callable(before) and before is not signal.default_int_handler
            ):
                self._caught[number] = before
                signal.signal(number, self._on_own_signal)

    def release(self) -> None:
        """Give the signals back, unless the program handles them otherwise by now."""
        if threading.current_thread() is threading.main_thread() and os.getpid() == self._pid:
            for number, before in self._caught.items():
                if signal.getsignal(number) in (self._on_signal, self._on_own_signal):
                    signal.signal(number, before)
            self._caught.clear()

    def _on_own_signal(self, number: int, frame: FrameType | None) -> None:
        """A signal that the program handles: it decides what happens."""
        own = self._caught.get(number)
        if os.getpid() == self._pid and self._before_own is not None:
            self._before_own(number)
        if callable(own):
            own(number, frame)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        signal.signal(
            number, signal.SIG_DFL
        )  # a second one ends the process at once, unless `deferred` lets it wait
        if os.getpid() != self._pid:  # a forked process inherits the handler, and nothing to finish
            die_of(number)
            return
        try:
            self._finish(number)
        finally:
            flush_streams()
            self._leave(number)


@contextmanager
def deferred(on_first: Callable[[int], None]) -> Iterator[list[int]]:
    """Let signals that would end the process wait until the block ends: a list of their numbers. on_first: called with the number of
    the first. The second one raises Interrupted inside the block, which cleans up after itself."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def wait(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            on_first(number)
        elif len(received) == 2:
            raise Interrupted(number)

    before = {number: signal.getsignal(number) for number in _numbers(_INTERRUPTING)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN and handler is not None:
            signal.signal(number, wait)
    try:
        yield received
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def die_of(number: int) -> None:
    """End this process by a signal."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def signal_name(number: int) -> str:
    """The name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_number(name: str) -> int:
    """The number of a signal by its name, such as USR2 or SIGUSR2. Raises ValueError."""
    word = name.upper()
    number = getattr(signal, word if word.startswith("SIG") else f"SIG{word}", None)
    if not isinstance(number, signal.Signals):
        raise ValueError(f"{name!r} is no signal; expected a name such as USR2")
    if number.name in ("SIGKILL", "SIGSTOP", *_INTERRUPTING):
        raise ValueError(
            f"{name!r} ends or stops a process; expected a signal that programs are free to use, such as USR2"
        )
    return int(number)


def call_on_signal(name: str, function: Callable[[], None]) -> Callable[[], None]:
    """Call a function when the process receives a signal, and then the program's own handler; how to end that.

    Only the main thread can do so. A forked process has the handler and calls only the program's own.
    """
    number, pid = signal_number(name), os.getpid()
    before = signal.getsignal(number)

    def on_signal(received: int, frame: FrameType | None) -> None:
        if os.getpid() == pid:
            function()
        if callable(before):
            before(received, frame)
        elif before is signal.SIG_DFL and os.getpid() != pid:
            die_of(received)

    signal.signal(number, on_signal)

    def release() -> None:
        if signal.getsignal(number) is on_signal:
            signal.signal(number, signal.SIG_DFL if before is None else before)

    return release


def flush_streams() -> None:
    """Write out what was printed, as the interpreter does at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass


def _numbers(names: tuple[str, ...]) -> list[int]:
    return [int(number) for name in names if (number := getattr(signal, name, None)) is not None]
