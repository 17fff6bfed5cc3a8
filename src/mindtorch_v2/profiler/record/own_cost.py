"""The recorder's own cost: a Recorder that has not started in; the nanoseconds that it will add to each op, range and Python call out.

A tiny training step runs a few dozen times with such a recorder and without; the differences are what recording adds, in the same code
that records the program. That takes some milliseconds, once per process and kind of recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from mindtorch_prof.sealing.raw import RANGES

from ... import _dispatch
from ... import _recording_hooks as hooks
from ..._graph import Switches, grad_state
from ..._overrides import process_state
from .recorder import Config, Recorder

_TURNS, _RUNS = 7, 6  # a program runs so often recorded and so often not, by turns


class OwnCost(NamedTuple):
    """Nanoseconds that recording adds."""

    op_ns: float
    range_ns: float  # an annotation or a node of the backward pass
    call_ns: float  # a Python or C call, where all calls are traced


_measured: dict[Config, OwnCost] = {}


def own_cost(recorder: Recorder) -> OwnCost | None:
    """The cost of this kind of recording; None where it cannot be measured now: something else sees ops, or changes what they do."""
    config = recorder.config
    if config not in _measured:
        if not _is_undisturbed():
            return None
        with _grad_enabled():
            _measured[config] = _measure(config)
    return _measured[config]


def _is_undisturbed() -> bool:
    """Whether ops do what they do by default and nobody sees them."""
    state = grad_state
    return not (
        hooks.active_hooks()
        or process_state.n_function_modes
        or Switches.anomaly
        or Switches.saved_hooks
        or state.inference
        or state.below
        or state.run is not None
        or state.dual_level is not None
    )


@contextmanager
def _grad_enabled() -> Iterator[None]:
    """Enable gradients. Afterwards sequence numbers go on where they were."""
    state = grad_state
    before = state.enabled, state.seq, state.numbers_taken
    state.enabled = True
    try:
        yield
    finally:
        state.enabled, state.seq, state.numbers_taken = before


def _measure(config: Config) -> OwnCost:
    ops, step = _programs()
    call_ns = 0.0
    if config.with_stack or config.with_modules:
        call_ns = _added(_call_little, config, 1 << 18).added_ns / _CALLS
    of_ops = _added(ops, config, 1 << 18)
    op_ns = max(of_ops.added_ns - of_ops.n_calls * call_ns, 0.0) / of_ops.n_ops
    of_step = _added(step, config, 1 << 20)
    of_ranges = of_step.added_ns - of_step.n_ops * op_ns - of_step.n_calls * call_ns
    return OwnCost(op_ns, max(of_ranges, 0.0) / of_step.n_ranges, call_ns)


class _Added(NamedTuple):
    """What a run of a program has, and the nanoseconds by which it is slower recorded."""

    n_ops: float
    n_ranges: float
    n_calls: float
    added_ns: float


def _added(program: Callable[[], object], config: Config, evicted: int) -> _Added:
    """Run a program recorded and not, by turns.

    evicted: bytes that are copied before each run. In a program, other data is in the nearest caches when an event is recorded.
    """
    program()  # generates the code of its ops
    recorder = Recorder(config)
    recorder.start()
    try:
        program()
        first, first_call = recorder.core.n_rows(), recorder.core.n_calls()
        added_ns = []
        for _ in range(_TURNS):  # by turns, as the speed of a machine drifts
            recorder.resume()
            recorded = _fastest(program, evicted)
            recorder.pause()
            added_ns.append(recorded - _fastest(program, evicted))
        n_calls = recorder.core.n_calls() - first_call
    finally:
        recorder.stop()
    rows = recorder.hand_over().joined("rows", recorder.thread, len(recorder.wanted.columns))
    keys = rows[first:, 0]
    recorder.release()
    n_ranges = int(np.count_nonzero(keys >= RANGES))
    n_runs = _TURNS * _RUNS
    added = max(float(np.median(added_ns)), 0.0)
    return _Added((len(keys) - n_ranges) / n_runs, n_ranges / n_runs, n_calls / n_runs, added)


def _fastest(program: Callable[[], object], evicted: int) -> int:
    """Nanoseconds of the fastest of some runs of a program: other programs may have the processor during the others."""
    data, source = np.zeros(evicted, np.uint8), np.zeros(evicted, np.uint8)
    fastest = 1 << 62
    for _ in range(_RUNS):
        np.copyto(data, source)
        start = perf_counter_ns()
        program()
        fastest = min(fastest, perf_counter_ns() - start)
    return fastest


def _programs() -> tuple[Callable[[], object], Callable[[], object]]:
    """Ops without gradients, and a forward and backward pass."""
    record, find = _dispatch.record, _dispatch.OPS.__getitem__
    addmm, transpose, add, mul = map(find, ("addmm", "transpose.int", "add.Tensor", "mul.Tensor"))
    relu, total, total_of_rows = map(find, ("relu", "sum", "sum.dim_IntList"))
    data, weight, bias = (_dispatch.wrap(np.ones(shape, np.float32)) for shape in ((2, 2), (2, 2), 2))
    weight.requires_grad = bias.requires_grad = True

    def ops() -> None:
        value = record(addmm, data, data, data, 1, 1)
        value = record(add, record(transpose, value, 0, 1), data, 1)
        record(total_of_rows, record(mul, value, data), [0], False, None)

    def step() -> None:
        record(total, record(relu, record(addmm, bias, data, weight, 1, 1)), None).backward()
        weight.grad = bias.grad = None

    return ops, step


_CALLS = 20


def _call_little() -> None:
    for number in range(_CALLS):
        _do_little(number)


def _do_little(number: int) -> object:
    """A function with some instructions: the interpreter runs each of them more slowly while a profile function is set."""
    pair = (number, number.real)
    if pair.__class__ is tuple and number is not None:
        total = pair[0] + pair[1]
        pair = (total, number)
    return pair if pair[0] >= 0 else None
