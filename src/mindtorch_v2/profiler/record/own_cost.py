"""The recorder's own cost: a Recorder that has not started in; the nanoseconds that it will add to each op, range and Python call out.

A tiny training step runs a few dozen times with such a recorder and without; the differences are what recording adds, in the same code
that records the program. That takes some milliseconds, once per process and kind of recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from ... import _dispatch
from ... import _recording_hooks as hooks
from ..._graph import Switches, grad_state
from ..._overrides import process_state
from .recorder import RANGES, Config, Recorder

_TURNS, _RUNS = 7, 6  # a program runs so often recorded and so often not, by turns


class OwnCost(NamedTuple):
    """Nanoseconds that recording adds."""

    op_ns: float
    range_ns: float  # an annotation or a node of the backward pass
    call_ns: float  # a Python or C call, where all calls are traced


_measured: dict[Config, OwnCost] = {}


def own_cost(recorder: Recorder) -> OwnCost | None:
    """The cost of this kind of recording; None where it cannot be measured now: something else sees ops, or changes what they do."""
    config = replace(recorder.config, stacks_only=recorder.calls is None)
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
    (ops, step), events_only = _programs(), replace(config, stacks_only=True)
    (n_ops, _), added_ns = _added(ops, events_only, 1 << 18)
    op_ns = added_ns / n_ops
    (n_ops, n_ranges), added_ns = _added(step, events_only, 1 << 20)
    range_ns = max(added_ns - n_ops * op_ns, 0.0) / n_ranges
    call_ns = 0.0
    if config.with_stack and not config.stacks_only:
        call_ns = _added(_call_nothing, config, 1 << 18)[1] / _CALLS
    return OwnCost(op_ns, range_ns, call_ns)


def _added(program: Callable[[], object], config: Config, evicted: int) -> tuple[tuple[float, float], float]:
    """How many ops and ranges a recording of a program has, and by how many nanoseconds it is slower recorded.

    evicted: bytes that are copied before each run. In a program, other data is in the nearest caches when an event is recorded.
    """
    program()  # generates the code of its ops
    recorder = Recorder(config)
    rows = recorder.buffers[recorder.thread].rows
    recorder.start()
    try:
        program()  # creates the probes
        first = len(rows)
        added_ns = []
        for _ in range(_TURNS):  # by turns, as the speed of a machine drifts
            recorder.resume()
            recorded = _fastest(program, evicted)
            recorder.pause()
            added_ns.append(recorded - _fastest(program, evicted))
        keys = rows[first :: recorder.width]
    finally:
        recorder.stop()
    n_ranges = sum(key >= RANGES for key in keys)
    n_runs = _TURNS * _RUNS
    return ((len(keys) - n_ranges) / n_runs, n_ranges / n_runs), max(float(np.median(added_ns)), 0.0)


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


def _call_nothing() -> None:
    for _ in range(_CALLS):
        _nothing()


def _nothing() -> None:
    pass
