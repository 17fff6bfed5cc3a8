"""The recorder's own cost: a Recorder that has not started in; the nanoseconds that it will add to each op, range and Python call out.

A tiny training step runs a few dozen times with such a recorder and without; the differences are what recording adds, in the same code
that records the program. That takes some milliseconds, once per process and kind of recording. In the program the recorder takes longer:
caches are full of other data, tensors are new. The compiled core measures itself at some of the events, then and there; the rest, what
the interpreter and the dispatcher do more while something records, is taken from the tiny step.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
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

_TURNS, _RUNS = 14, 4  # a program runs so often recorded and so often not, by turns
_FAST = 0.1  # of all runs, this quantile counts: other programs have the processor, or its caches, during the slower ones
_EVICTED = 1 << 16  # bytes that are copied before each run: in a program, other data is in the nearest cache
_INTERRUPTED_NS = 20_000  # a sample of so much holds something else: another program had the processor


class OwnCost(NamedTuple):
    """Nanoseconds that recording adds, and the part of them that the core measured itself (0: it does not)."""

    op_ns: float
    range_ns: float  # an annotation or a node of the backward pass
    call_ns: float  # a Python or C call, where all calls are traced
    op_in_core_ns: float = 0.0
    range_in_core_ns: float = 0.0
    call_in_core_ns: float = 0.0

    def in_program(self, samples: Mapping[str, np.ndarray], of_operators: float) -> OwnCost:
        """The cost in a recorded program, from the samples of its core. of_operators: the share of ops that were recorded without a
        Python function in between, which the others pass through, here and in the tiny step."""
        op_ns, range_ns, call_ns = _in_core(samples, self[3:])
        return OwnCost(
            op_ns + (self.op_ns - self.op_in_core_ns) * (1 - of_operators),
            self.range_ns + range_ns - self.range_in_core_ns,
            self.call_ns + call_ns - self.call_in_core_ns,
            op_ns,
            range_ns,
            call_ns,
        )


def _in_core(
    samples: Mapping[str, np.ndarray],
    otherwise: tuple[float, ...],
    average: Callable[[list[int]], float] = statistics.fmean,
) -> tuple[float, float, float]:
    """What the core took on average: an op, a range, and a call with its return. otherwise: the same where there are no samples."""
    means = []
    for kind, without in zip(("op", "range", "call"), otherwise):
        # as a list: NumPy would let other threads run, and the thread that writes a recording would get its turn again much later
        ns = [each for each in samples.get(kind, _NONE).tolist() if each < _INTERRUPTED_NS]
        means.append(average(ns) * (2 if kind == "call" else 1) if ns else without)
    return means[0], means[1], means[2]


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
    call_ns, calls_in_core = 0.0, {}
    if config.with_stack or config.with_modules:
        of_calls = _added(_call_little, config)
        call_ns, calls_in_core = of_calls.added_ns / _CALLS, {"call": of_calls.samples.get("call", _NONE)}
    of_ops = _added(ops, config)
    op_ns = max(of_ops.added_ns - of_ops.n_calls * call_ns, 0.0) / of_ops.n_ops
    of_step = _added(step, config)
    of_ranges = of_step.added_ns - of_step.n_ops * op_ns - of_step.n_calls * call_ns
    range_ns = max(of_ranges, 0.0) / of_step.n_ranges
    samples = {"op": of_ops.samples.get("op", _NONE), "range": of_step.samples.get("range", _NONE)}
    in_core = _in_core(samples | calls_in_core, (0.0, 0.0, 0.0), statistics.median)
    # the whole is at least what the core took
    return OwnCost(max(op_ns, in_core[0]), max(range_ns, in_core[1]), max(call_ns, in_core[2]), *in_core)


_NONE = np.empty(0, np.int32)


class _Added(NamedTuple):
    """What a run of a program has, and the nanoseconds by which it is slower recorded."""

    n_ops: float
    n_ranges: float
    n_calls: float
    added_ns: float
    samples: Mapping[str, np.ndarray]  # of what the core took


def _added(program: Callable[[], object], config: Config) -> _Added:
    """Run a program recorded and not, by turns."""
    program()  # generates the code of its ops
    recorder = Recorder(config)
    recorder.start()
    try:
        program()
        first, first_call = recorder.core.n_rows(), recorder.core.n_calls()
        recorded_ns: list[int] = []
        plain_ns: list[int] = []
        for _ in range(_TURNS):  # by turns, as the speed of a machine drifts
            recorder.resume()
            recorded_ns += _timed_runs(program)
            recorder.pause()
            plain_ns += _timed_runs(program)
        n_rows, n_calls = recorder.core.n_rows(), recorder.core.n_calls() - first_call
        recorder.core.sample_all_costs()
        recorder.resume()
        for _ in range(_TURNS // 2):  # what these take does not count: measuring all events takes time itself
            _timed_runs(program)
        recorder.pause()
        samples = recorder.core.cost_samples()
    finally:
        recorder.stop()
    rows = recorder.hand_over().joined("rows", recorder.thread, len(recorder.wanted.columns))
    keys = rows[first:n_rows, 0]
    recorder.release()
    n_ranges = int(np.count_nonzero(keys >= RANGES))
    n_runs = _TURNS * _RUNS
    added = max(float(np.quantile(recorded_ns, _FAST) - np.quantile(plain_ns, _FAST)), 0.0)
    return _Added((len(keys) - n_ranges) / n_runs, n_ranges / n_runs, n_calls / n_runs, added, samples)


def _timed_runs(program: Callable[[], object]) -> list[int]:
    """Nanoseconds of some runs of a program."""
    data, source = np.zeros(_EVICTED, np.uint8), np.zeros(_EVICTED, np.uint8)
    taken_ns = []
    for _ in range(_RUNS):
        np.copyto(data, source)
        start = perf_counter_ns()
        program()
        taken_ns.append(perf_counter_ns() - start)
    return taken_ns


def _programs() -> tuple[Callable[[], object], Callable[[], object]]:
    """Ops without gradients, and a forward and backward pass."""
    addmm, mul, relu, exp, select, clone, total = (
        _dispatch.OPS[name].entry
        for name in ("addmm", "mul.Tensor", "relu", "exp", "select.int", "clone", "sum")
    )
    data, weight, bias = (_dispatch.wrap(np.ones(shape, np.float32)) for shape in ((2, 2), (2, 2), 2))
    weight.requires_grad = bias.requires_grad = True

    # ops of which the way to the core costs neither much more nor much less than of most others
    def ops() -> None:
        clone(select(exp(relu(mul(data, data))), 0, 1))

    def step() -> None:
        total(relu(addmm(bias, data, weight))).backward()
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
