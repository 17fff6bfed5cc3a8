"""Tests of mindtorch_prof.live.run_session: a recording is finished once, and signals wait for it."""

from __future__ import annotations

import os
import signal

from mindtorch_prof.live.run_session import ProgramEnd, RunSession


class Session(RunSession[ProgramEnd]):
    def __init__(self, during_stop: int = 0) -> None:
        self.calls: list[str] = []
        super().__init__(ProgramEnd(), lambda outcome: self.calls.append("end"), self.calls.append)
        self._during_stop = during_stop

    def stop(self) -> None:
        self.calls.append("stop")
        if self._during_stop:
            os.kill(os.getpid(), self._during_stop)


def test_a_session_is_finished_once() -> None:
    session = Session()
    session.finish()
    session.finish()
    assert session.calls == ["stop", "end"]


def test_a_signal_while_it_is_finished_waits_and_gives_the_exit_code() -> None:
    session = Session(signal.SIGTERM)
    session.finish()
    assert session.calls[0] == "stop"
    assert session.calls[-1] == "end"
    assert (session.outcome.exit_code, session.outcome.signal) == (128 + signal.SIGTERM, signal.SIGTERM)


def test_a_forked_process_leaves_the_recording_to_its_parent() -> None:
    session = Session()
    session.pid += 1
    session.finish()
    assert session.calls == []
