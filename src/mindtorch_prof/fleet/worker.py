"""A worker of the process pool: a task, then paths, from standard input; the task's answers to standard output, each after its length."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import IO


def main() -> None:
    """Serve until the pipe is closed."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C goes to all processes of a terminal; the caller ends this one
    requests = sys.stdin.buffer
    # what a library prints must not get between the answers
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    task = pickle.loads(_frame(requests) or b"")  # from the process that started this one
    while (request := _frame(requests)) is not None:
        answer = task(request.decode("utf-8", "surrogateescape"))
        try:
            answers.write(len(answer).to_bytes(8, "little") + answer)
            answers.flush()
        except BrokenPipeError:  # the caller has ended
            return


def _frame(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(8)
    return pipe.read(int.from_bytes(head, "little")) if len(head) == 8 else None
