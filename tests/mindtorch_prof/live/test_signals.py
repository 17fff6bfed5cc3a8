"""Tests of mindtorch_prof.live.signals: what is done before a signal ends a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from mindtorch_prof.live.signals import Interrupted, call_on_signal, deferred


def run(program: str) -> subprocess.CompletedProcess[str]:
    head = "import os, signal\nfrom mindtorch_prof.live.signals import *\n"
    command = [sys.executable, "-c", head + textwrap.dedent(program)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)


def test_the_process_ends_by_the_signal_after_the_work_is_finished() -> None:
    done = run("""
        EndingSignals(lambda number: print("finished", signal_name(number))).catch()
        os.kill(os.getpid(), signal.SIGTERM)
        print("not reached")
    """)
    assert (done.stdout, done.returncode) == ("finished SIGTERM\n", -signal.SIGTERM)


def test_a_handler_of_the_program_is_left_alone() -> None:
    done = run("""
        signal.signal(signal.SIGTERM, lambda *_: print("the program's"))
        signals = EndingSignals(lambda number: print("ours"))
        signals.catch()
        os.kill(os.getpid(), signal.SIGTERM)
        signals.release()
        os.kill(os.getpid(), signal.SIGTERM)
    """)
    assert (done.stdout, done.returncode) == ("the program's\nthe program's\n", 0)


def test_after_the_release_the_system_handles_the_signal_again() -> None:
    done = run("""
        signals = EndingSignals(lambda number: print("ours"))
        signals.catch()
        signals.release()
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    """)
    assert done.stdout == "True\n"


def test_a_forked_process_dies_of_the_signal_without_finishing_anything() -> None:
    done = run("""
        EndingSignals(lambda number: print("finished", flush=True)).catch()
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """)
    assert done.stdout == f"{int(signal.SIGTERM)}\n"


def test_signals_wait_until_the_block_ends_and_the_second_one_interrupts_it() -> None:
    told: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    with deferred(told.append) as received:
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    assert told == [signal.SIGTERM]
    with pytest.raises(Interrupted, match="SIGINT"):
        _receive_two()
    assert signal.getsignal(signal.SIGTERM) is before


def _receive_two() -> None:
    with deferred(lambda number: None):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)


def test_a_call_on_a_signal_is_followed_by_the_programs_own_handler() -> None:
    calls: list[str] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: calls.append("program"))
    try:
        release = call_on_signal("USR1", lambda: calls.append("ours"))
        os.kill(os.getpid(), signal.SIGUSR1)
        release()
        os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert calls == ["ours", "program", "program"]
    with pytest.raises(ValueError, match="ends or stops a process"):
        call_on_signal("TERM", lambda: None)
