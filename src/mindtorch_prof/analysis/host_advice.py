"""Rules about the host: a recorded program in; advice about data loading, loops, optimizers and ops on the host out."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .. import communication
from ..arrays import BoolArray, IntArray, distinct_values
from ..call_paths import stacks_with
from ..trace import ANNOTATION, NODE, OP, RUNTIME
from .intervals import union, without
from .recorded_program import Finding, RecordedProgram
from .steps_table import working

_LOOP_ITERATIONS = 10  # from so many equal iterations on, repeated ops are a loop
_TINY_NS = 20_000
_MANY_CALLS = 500
_SINGLE_TENSOR_OPS = 20  # from so many ops on, an optimizer's step updates parameters one by one
_UPDATES_MANY = re.compile(
    r"_foreach_|_fused_|multi_tensor_apply|multi_tensor_\w+|fused_?(adam|sgd|lamb|optim|novograd|adagrad)",
    re.IGNORECASE,
)
OVERLAP = (
    "let communication overlap with computation (gradient buckets: bucket_cap_mb; asynchronous collectives), send less "
    "(lower precision, gradient accumulation), and look for a straggler: `mindtorch-prof ranks` of all ranks"
)


def _data_loading(program: RecordedProgram) -> list[Finding]:
    """The program waits for its DataLoader."""
    suggestions = []
    for iterator, code, text, advice in (
        (
            "_SingleProcess",
            "loader_wait",
            "batches are loaded in the foreground, while the program waits",
            "load in the background: DataLoader(..., num_workers=2 or more, and pin_memory=True for a GPU)",
        ),
        (
            "_MultiProcessing",
            "loader_slow",
            "the program waits for the workers of its DataLoader",
            "use more workers (num_workers), prefetch more batches (prefetch_factor), or do less work in the dataset",
        ),
    ):
        rows = _loading_rows(program, iterator)
        if len(rows) >= 2:
            if program.device is not None:
                text += "; the device is idle meanwhile"
            suggestions.append(
                Finding(code, text, advice, len(rows), program.cost(rows), program.evidence(rows))
            )
    return suggestions


def _loading_rows(program: RecordedProgram, iterator: str = "") -> IntArray:
    """The rows that load a batch, by an iterator of this kind."""
    return program.outermost(
        program.named(lambda name: name.startswith("enumerate(DataLoader)#") and iterator in name)
    )


def _indexing_loops(program: RecordedProgram) -> list[Finding]:
    """A loop processes the rows of a tensor one by one."""
    trace = program.trace
    select = program.named(lambda name: name == "aten::select") & (trace.kind == OP)
    above, counts = np.unique(program.parent[select], return_counts=True)
    inside = np.flatnonzero(
        np.isin(program.parent, above[counts >= _LOOP_ITERATIONS]) & (trace.kind != ANNOTATION)
    )
    # siblings of one thread, in the order of time
    inside = inside[np.lexsort((inside, trace.thread[inside], program.parent[inside]))]
    cuts = np.flatnonzero((np.diff(program.parent[inside]) != 0) | (np.diff(trace.thread[inside]) != 0)) + 1
    firsts, times, loops, iterations = [], [], [], 0
    for siblings in np.split(inside, cuts):
        for first, last, count in _repeated_sequences(trace.name[siblings].tolist(), select[siblings]):
            part = siblings[first:last]
            firsts.append(int(part[0]))
            times.append(int(program.duration[part].sum()))
            loops.append(part)
            iterations += count
    if not firsts:
        return []
    evidence = program.evidence(np.array(firsts), np.array(times))
    return [
        Finding(
            "indexing_loop",
            f"a loop indexes the rows of a tensor one by one ({iterations:,} iterations)",
            "process the whole tensor at once: unbind, stack, broadcasting or torch.func.vmap",
            len(firsts),
            program.cost(np.concatenate(loops)),
            evidence,
        )
    ]


def _repeated_sequences(names: list[int], starts: BoolArray) -> list[tuple[int, int, int]]:
    """(first, last, iterations) of the stretches that repeat the names from one start to the next."""
    stretches = []
    places = np.flatnonzero(starts).tolist()
    at = 0
    while at + 1 < len(places):
        first, length = places[at], places[at + 1] - places[at]
        iteration = names[first : first + length]
        last, count = first + length, 1
        while names[last : last + length] == iteration:
            last, count = last + length, count + 1
        if count >= _LOOP_ITERATIONS:
            stretches.append((first, last, count))
        while at < len(places) and places[at] < last:
            at += 1
    return stretches


def _single_tensor_optimizer(program: RecordedProgram) -> list[Finding]:
    """An optimizer of torch updates parameters one by one."""
    rows, ops = _single_tensor_steps(program)
    if not len(rows):
        return []
    advice = "pass foreach=True (or fused=True) to the optimizer"
    if program.device is None:
        advice = "pass fused=True to the optimizer (Adam, AdamW, SGD and Adagrad on the CPU, since torch 2.4)"
    return [
        Finding(
            "single_tensor_optimizer",
            f"the optimizer updates parameters one by one: {int(np.median(ops)):,} ops per step",
            advice,
            len(rows),
            program.cost(rows),
            program.evidence(rows),
        )
    ]


def _single_tensor_steps(program: RecordedProgram) -> tuple[IntArray, IntArray]:
    """The rows of an optimizer's steps that update parameters one by one, and how many ops each calls."""
    trace, device = program.trace, program.trace.device
    steps = program.named(lambda name: name.startswith("Optimizer.step#"))
    if not trace.settings.foreign or not steps.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)  # in mindtorch_v2, one by one is as fast
    step_of = np.where(steps, np.arange(len(trace)), program.enclosing(steps))
    ops = (step_of >= 0) & (trace.kind == OP) & (program.parent == step_of)
    count = np.bincount(step_of[ops], minlength=len(trace))
    # whatever updates many at once: ops of torch, kernels of torch and Apex, optimizers that say so in their name
    many = program.named(lambda name: _UPDATES_MANY.search(name) is not None) & (step_of >= 0)
    fused_kernel = np.array([_UPDATES_MANY.search(name) is not None for name in device.names] or [False])
    launcher = np.where(device.launch >= 0, device.launch, device.op)
    launched = launcher[(launcher >= 0) & fused_kernel[device.name]] if len(device) else launcher
    updated = np.concatenate([step_of[many], step_of[launched]])
    together = np.bincount(updated[updated >= 0], minlength=len(trace))
    rows = np.flatnonzero(steps & (count >= _SINGLE_TENSOR_OPS) & (together == 0))
    return rows, count[rows]


def _zeroed_gradients(program: RecordedProgram) -> list[Finding]:
    """Gradients are filled with zeros."""
    rows, calls = _zeroing_rows(program)
    if not len(rows):
        return []
    return [
        Finding(
            "zeroed_gradients",
            "gradients are filled with zeros and then accumulated into",
            "set them to None: zero_grad(set_to_none=True), the default",
            len(rows),
            program.cost(calls),
            program.evidence(rows),
        )
    ]


def _zeroing_rows(program: RecordedProgram) -> tuple[IntArray, IntArray]:
    """The ops that fill gradients with zeros; and the calls of `zero_grad` around them, or the ops where there is none."""
    spans = program.named(
        lambda name: name.startswith("Optimizer.zero_grad#") or name.endswith(": zero_grad")
    )
    zeros = program.named(lambda name: name in ("aten::zero_", "aten::_foreach_zero_"))
    around = program.enclosing(spans)
    rows = np.flatnonzero(zeros & (around >= 0))
    # Module.zero_grad has no annotation of its own, only a frame
    stack_has_call = stacks_with(program.trace.stacks, lambda frame: frame.endswith(": zero_grad"))
    if any(stack_has_call):
        in_call = np.array([*stack_has_call, False])[program.trace.stack]
        rows = np.union1d(rows, np.flatnonzero(zeros & in_call))
    rows = rows[~np.isin(program.parent[rows], rows)]
    return rows, distinct_values(np.where(around[rows] >= 0, around[rows], rows))


def _bias_before_norm(program: RecordedProgram) -> list[Finding]:
    """A convolution adds a bias that the following batch norm subtracts."""
    trace = program.trace
    conv = program.named(lambda name: name in ("aten::conv1d", "aten::conv2d", "aten::conv3d"))
    norm = program.named(lambda name: name == "aten::batch_norm")
    counting = program.named(lambda name: name == "aten::add_")  # a norm counts its batches
    if not conv.any() or not norm.any():
        return []
    pairs = []
    for row in np.flatnonzero(conv & (trace.inputs >= 0)).tolist():
        following = row + 1
        end = int(trace.end_ns[row])
        while following < len(trace) and (trace.start_ns[following] < end or counting[following]):
            if trace.start_ns[following] >= end:
                end = int(trace.end_ns[following])
            following += 1  # events inside the convolution
        if following < len(trace) and trace.thread[following] == trace.thread[row] and norm[following]:
            inputs = program.tensors.inputs(row)
            if len(inputs) > 2 and hasattr(inputs[2], "sizes"):
                pairs.append((row, following))
    if not pairs:
        return []
    rows, norms = np.array(pairs).T
    # adding a bias is one pass over what the norm reads at least twice and writes once
    saved_ns = program.duration[norms] // 3
    times = trace.start_ns[norms], trace.start_ns[norms] + saved_ns
    if program.device is not None:
        work = program.launched_by(norms)
        begin = trace.device.start_ns[work]
        times = begin, begin + (trace.device.end_ns[work] - begin) // 3
    return [
        Finding(
            "bias_before_norm",
            "convolutions add a bias that the following batch norm subtracts again",
            "create them with bias=False",
            len(rows),
            (times,),
            program.evidence(rows, saved_ns),
        )
    ]


def _tiny_ops(program: RecordedProgram) -> list[Finding]:
    """Calling ops takes more time than their work."""
    trace = program.trace
    if trace.device.works.any():
        return []
    calls = working(program.results) & (trace.kind != RUNTIME) & (trace.kind != NODE)
    parents = program.parent[calls & (program.parent >= 0)]
    has_children = np.bincount(parents, minlength=len(trace)) > 0
    outer = program.outermost(calls & (trace.kind == OP))
    tiny = outer[(program.duration[outer] < _TINY_NS) & ~has_children[outer]]
    _, number, counts = np.unique(trace.name[tiny], return_inverse=True, return_counts=True)
    rows = tiny[counts[number.reshape(-1)] >= _MANY_CALLS]
    if not len(rows):
        return []
    if program.duration[rows].sum() < 0.2 * program.length_ns:
        return []
    return [
        Finding(
            "tiny_ops",
            f"{len(rows):,} op calls take less than {_TINY_NS // 1000} us each",
            "do more work per call: larger batches, ops on whole tensors, fused functions",
            len(rows),
            program.cost(rows),
            program.evidence(rows[np.argsort(-program.duration[rows], kind="stable")][: 20 * _MANY_CALLS]),
        )
    ]


def _communication_on_host(program: RecordedProgram) -> list[Finding]:
    """Collectives of gloo or MPI run on the host while no op does."""
    trace = program.trace
    collective = program.named(lambda name: bool(communication.on_host([name])[0]))
    if program.device is not None or not collective.any():
        return []  # with a device, its communication counts
    inside = program.enclosing(collective) >= 0
    computing = working(program.results) & ~collective & ~inside & (trace.kind == OP)
    around_collective = np.zeros(len(trace), bool)
    above = program.parent[collective]
    while (above >= 0).any():  # an op that contains a collective waits in it
        above = distinct_values(above[above >= 0])
        around_collective[above] = True
        above = program.parent[above]
    computing &= ~around_collective
    begin, end = without(
        union(trace.start_ns[collective], trace.end_ns[collective]),
        union(trace.start_ns[computing], trace.end_ns[computing]),
    )
    calls = collective & (trace.kind == OP)  # c10d ops, whose work may be recorded on another thread as well
    rows = program.outermost(calls if calls.any() else collective)
    exposed = int((end - begin).sum())
    return [
        Finding(
            "exposed_communication",
            f"{len(rows):,} collectives; for {exposed / program.length_ns:.0%} of the time one runs and no op does",
            OVERLAP,
            len(rows),
            ((begin, end),),
            program.evidence(rows),
        )
    ]


HOST_RULES: tuple[Callable[[RecordedProgram], list[Finding]], ...] = (
    _data_loading,
    _indexing_loops,
    _single_tensor_optimizer,
    _zeroed_gradients,
    _bias_before_norm,
    _tiny_ops,
    _communication_on_host,
)
