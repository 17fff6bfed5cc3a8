"""A recording that survives its process: a Recorder in; in the background, its rows are written to a spill folder."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mindtorch_prof.live.program import ending
from mindtorch_prof.live.signals import EndingSignals, signal_name
from mindtorch_prof.load.spill import FINISHED, spilled_logs
from mindtorch_prof.sealing.logs import WIDTHS, Logs
from mindtorch_prof.sealing.newest import n_events
from mindtorch_prof.sealing.unfinished import begun_until
from mindtorch_prof.spill_file import SpillFolder

from . import keeper
from .keeper import Keeper, warn_in_background
from .recorder import OwnThread, Recorder
from .spill_tables import SpillTables

SIGNALS_VARIABLE = "MINDTORCH_SPILL_SIGNALS"  # 0: spilled recordings leave the handlers of signals alone
_MOST_PENDING = 256 << 20  # bytes that wait for space on a full disk; what is recorded after that is dropped
_MOST_UNSEARCHED = 64 << 20  # bytes of rows that wait until their callers are looked for
_SILENT_S = 3.0  # so long the end of a recording waits for the disk without a word
_AT_ONCE = 1 << 16  # rows that are written in one chunk where memory is short


class SpillKeeper(Keeper):
    """Writes everything to a spill folder.

    Threads of its own write; the program waits for them only in `end` and `finish_stopped`. If it is interrupted there (Ctrl-C), it is not
    made to wait again: the folder stays as it is, and what is not in it stays in memory.
    """

    def __init__(self, recorder: Recorder, parent: str) -> None:
        super().__init__(recorder)
        self.folder = SpillFolder(parent)
        self._tables = SpillTables(recorder, keeper.PERIOD_S)
        self._pending: list[tuple[dict[str, Any], Logs]] = []  # chunks that are not written yet
        self._unsearched: list[Logs] = []  # rows whose callers are not known yet
        self._error = ""
        # held while rows, chunks and tables change hands; never while a disk is at work
        self._state = threading.RLock()
        self._interrupted = False  # the program does not wait for the disk
        self._ended_by = FINISHED
        self._signals = EndingSignals(self._finish_in_handler, before_own=self._take_in_handler)

    def begin(self) -> None:
        """Write from now on, also at the end of a program that does not stop the recording."""
        if self._interrupted:  # rows stay in memory
            return
        self._facts_of_start()
        atexit.register(self._at_exit)
        if os.environ.get(SIGNALS_VARIABLE) != "0":
            self._signals.catch()
        super().begin()

    def _facts_of_start(self) -> None:
        """The first chunk: the folder can be opened from now on. A recording that goes on has not ended."""
        with self._lock:
            self._pending.append((self._tables.header(Logs(), {}, ended=None, ended_ns=0), Logs()))
            self._write_pending()

    def let_go(self) -> None:
        """Give signals back; a recording that was stopped needs nothing at the end of the program."""
        self._signals.release()
        atexit.unregister(self._at_exit)

    def _wait_for(self, thread: threading.Thread) -> None:
        with self._interruptible():
            thread.join(_SILENT_S)
            if thread.is_alive():
                waiting = sum(logs.nbytes for _, logs in [*self._pending])
                warn_in_background(
                    f"{self.folder.path}: the disk is slow; the end of the recording waits until {waiting / 1e6:.1f} MB are written; "
                    "Ctrl-C ends the wait"
                )
                thread.join()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        try:
            yield
        except BaseException:  # of a signal handler, such as KeyboardInterrupt
            self._wait_no_longer()
            raise

    def _wait_no_longer(self) -> None:
        """Keep in memory what is not in the folder by now; from now on, threads that write neither take rows nor add chunks."""
        with self._state:
            self._interrupted = True
            self._error = self._error or "the program was interrupted while it waited for the disk"
            if self.recorder.core is not None:
                self._make_pending()

    def _run(self) -> None:
        super()._run()
        if self._interrupted:
            self.finish(self._ended_by, ended_ns=self.recorder.ended_ns)

    def _use_the_time(self, until: float) -> None:
        """Find the callers of ops, for the next header: thread by thread, as NumPy lets the program run in between, and what is recorded
        meanwhile has to be written in time."""
        while self._unsearched:
            with self._lock:
                self._search_next()
            if time.monotonic() > until and sum(part.nbytes for part in self._unsearched) < _MOST_UNSEARCHED:
                return

    def _search_next(self) -> None:
        with self._state:
            if self._interrupted:  # the program builds the trace, and finds them itself
                self._unsearched.clear()
            if self._unsearched:
                self._tables.find_callers(self._unsearched.pop(0))

    def _finish_in_handler(self, number: int) -> None:
        if not self._interrupted:
            self.finish(f"signal {signal_name(number)}")

    def _take_in_handler(self, number: int) -> None:
        """Write what was recorded until now: the program's handler of a signal, which comes next, may end the process. Where the program
        waits for the disk, Ctrl-C means that it should not."""
        if self._interrupted or (self._ends.is_set() and number == signal.SIGINT):
            return
        try:
            self.take()
        except Exception as error:  # never in the place of what the program does at the signal
            warn_in_background(f"{self.folder.path}: {type(error).__name__}: {error}")

    def _at_exit(self) -> None:
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        reason = "the program ended without stopping it" if error is None else ending(error)
        self.finish(reason)

    def _keep(self) -> None:
        with self._state:
            logs = Logs() if self._interrupted else self._make_pending()
        self._write_pending()
        self._unsearched += self._tables.parts_to_search(logs)

    def _keep_while_writing(self) -> None:
        """A disk that is slower than the recording may take minutes for a chunk: what is recorded meanwhile waits, as far as it may."""
        with self._state:
            if self.recorder.core is not None and not self._interrupted:
                self._unsearched += self._tables.parts_to_search(self._make_pending())

    def _make_pending(self) -> Logs:
        """Take rows; they wait until they are written. None are given where too many wait already, and these were dropped."""
        recorder = self.recorder
        taken_ns = time.perf_counter_ns()
        logs = recorder.hand_over()
        count = n_events(logs, len(recorder.wanted.columns))
        waiting = sum(each.nbytes for _, each in self._pending)
        if not recorder.dropped and (waiting <= _MOST_PENDING or not count):
            # among the pending ones first: a signal handler that comes while it is written finds it there
            open_ranges = begun_until(
                taken_ns, recorder.core.open_ranges(time.perf_counter_ns()), len(recorder.wanted.columns)
            )
            header = self._tables.header(logs, open_ranges)
            self._pending.append((header, logs))
            return logs
        if not recorder.dropped:
            self._error = self._error or "the disk is slower than the recording"
            recorder.drop_reason = self._error
            warn_in_background(
                f"{self.folder.path}: {self._error}; what is recorded from now on is dropped, as {_MOST_PENDING >> 20} MB wait to be written"
            )
        recorder.dropped += count
        return Logs()

    def _write_pending(self) -> None:
        while self._pending and self.folder.is_open and not self._interrupted:
            first = self._pending[0]
            try:
                chunk = self.folder.put(first[0], first[1], self._keep_while_writing)
            except OSError as error:
                if not self._error:
                    self._error = error.strerror or str(error)
                    warn_in_background(
                        f"{self.folder.path}: {self._error}; what was recorded until now is there, the rest waits in memory"
                    )
                return
            with self._state:
                if self._interrupted:  # the program has this chunk in memory
                    self.folder.cut()
                elif self._pending and self._pending[0] is first:  # else a signal handler wrote it
                    self.folder.accept(chunk)
                    del self._pending[0]

    def finish_stopped(self, reason: str, ended_ns: int, goes_on: bool) -> None:
        """`finish` for a recording that was stopped, on a thread: a write cannot be interrupted, waiting for a thread can."""
        self._ended_by = reason
        errors: list[BaseException] = []

        def finish() -> None:
            sys.setprofile(None)  # of an outer recording that traces all threads
            try:
                self.finish(reason, ended_ns=ended_ns, goes_on=goes_on)
            except BaseException as error:
                errors.append(error)

        try:
            if self._interrupted:
                self._wait_no_longer()
            elif self.folder.is_open:
                thread = OwnThread(finish)
                with self._interruptible():
                    try:
                        thread.start()
                    except RuntimeError:  # the interpreter is about to end, or there are too many threads
                        finish()
                    else:
                        self._wait_for(thread)
        finally:
            self.let_go()
        if errors:
            raise errors[0]

    def finish(self, reason: str = FINISHED, *, ended_ns: int = 0, goes_on: bool = False) -> None:
        """Write what is left, and why it ended. ended_ns: when the recording was stopped; 0: it was not."""
        with self._lock:
            if not self.folder.is_open:
                return
            self.take()
            while self._unsearched:
                self._search_next()
            facts = self._tables.last_facts() if ended_ns else {}
            facts |= {"ended": reason, "ended_ns": ended_ns}
            if self._pending and not self._interrupted:
                self.folder.give_up_reserve()
                self._write_pending()
            if self._pending or self.recorder.dropped:
                unwritten = sum(
                    n_events(logs, len(self.recorder.wanted.columns)) for _, logs in self._pending
                )
                # what waits is not in the folder, and what it added to the tables neither: only the reason is written
                note = {"unwritten": self.recorder.dropped + unwritten, "write_error": self._error, **facts}
                self._write_last({"facts": note})
            else:
                header = self._tables.header(Logs(), {}, **facts)
                if not ended_ns:
                    del header["open"]  # those of the last chunk are still open
                self._write_last(header)
            if not goes_on or self._interrupted:
                self.folder.close()

    def _write_last(self, header: dict[str, Any]) -> None:
        try:
            try:
                self.folder.write(header)
            except OSError:
                self.folder.give_up_reserve()
                self.folder.write(header)
        except OSError as error:
            warn_in_background(
                f"{self.folder.path}: {error.strerror or error}; the end of the recording is missing"
            )

    def logs(self) -> Logs:
        """Everything: what was written, and what waits."""
        logs = spilled_logs(self.folder.path, self.folder.place)
        for _, pending in self._pending:
            logs.add(pending)
        return logs


def spilled(recorder: Recorder, logs: Logs, parent: str) -> str:
    """Write these logs of a stopped recording to a new spill folder, block by block; its path."""
    folder = SpillFolder(parent)
    tables = SpillTables(recorder, keeper.PERIOD_S)
    for key, block in logs:
        at_once = _AT_ONCE * (len(recorder.wanted.columns) if key[0] == "rows" else WIDTHS[key[0]])
        for first in range(0, block.size, at_once):
            part = Logs([(key, [block.reshape(-1)[first : first + at_once]])], logs.natives)
            folder.write(tables.header(part, {}), part)
            for rows in tables.parts_to_search(part):
                tables.find_callers(rows)
    folder.write(tables.header(Logs(), {}, ended=FINISHED, ended_ns=recorder.ended_ns, **tables.last_facts()))
    folder.close()
    return folder.path
