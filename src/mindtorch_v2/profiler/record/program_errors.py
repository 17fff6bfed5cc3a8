"""Errors of the program that are raised while the recorder runs: an error in, whose it is out. Both cores ask here."""

from __future__ import annotations

import signal


def is_of_a_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler of the program raised the error while the recorder ran."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {
        getattr(handler, "__code__", getattr(type(handler).__call__, "__code__", None))
        for handler in handlers
    }
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code not in codes:
        step = step.tb_next
    return step is not None
