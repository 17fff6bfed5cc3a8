"""Advice: a recording in; suggestions out, each with evidence and the time it can save at most.

Rules work on the columns of a Trace, recorded or loaded. A rule reports only waste that the trace itself shows and that changing one line
of the program removes. Rules that need what the trace does not have (inputs, Python calls, device work) report nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..arrays import BoolArray, IntArray
from ..frames import is_user_code
from ..steps import is_step
from ..torch_api.tensor_ids import Tensors
from ..trace import ANNOTATION, DEVICE_COPY, NODE, OP, RUNTIME
from ..tree import nearest
from .intervals import union
from .recording import Recording, recorded_results
from .steps_table import working

if TYPE_CHECKING:
    from ..torch_api.results import Results

LEAST_SHARE = 0.02  # of the recording's time: smaller savings are not worth a change
_LOOP_ITERATIONS = 10  # from so many equal iterations on, repeated ops are a loop
_TINY_NS = 20_000
_MANY_CALLS = 500
_IDLE_SHARE = 0.25
_SINGLE_TENSOR_OPS = 20  # from so many ops on, an optimizer's step updates parameters one by one
_EVIDENCE_ROWS = 5


class Evidence(TypedDict):
    """Events of one name at one place."""

    name: str
    where: str  # a line of the program, or the annotations around the events
    count: int
    total_us: float


@dataclass(frozen=True)
class Advice:
    """A suggested change of the program."""

    code: str  # stable, for programs
    message: str  # what was seen
    advice: str  # what to do about it
    count: int  # how often it was seen
    at_stake_us: float  # the most time that the change can save
    share: float  # the same as a share of the recording
    evidence: list[Evidence] = field(default_factory=list)  # the largest first

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def advise(source: Recording, least_share: float = LEAST_SHARE) -> list[Advice]:
    """Suggested changes of the recorded program, largest saving first; none below `least_share` of the recording."""
    program = _RecordedProgram(recorded_results(source))
    if not len(program.trace):
        return []
    suggestions = [advice for rule in RULES for advice in rule(program) if advice.share >= least_share]
    return sorted(suggestions, key=lambda advice: -advice.at_stake_us)


class _RecordedProgram:
    """A recording, and the questions that several rules ask about it."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.trace = results.trace
        self.parent: IntArray = results.tree.parent
        self.duration: IntArray = self.trace.end_ns - self.trace.start_ns

    @cached_property
    def length_ns(self) -> int:
        """From the first event to the last end."""
        ends = [self.trace.end_ns.max(), *self.trace.device.end_ns[-1:]]
        return max(1, int(max(ends)) - int(self.trace.start_ns.min()))

    @cached_property
    def tensors(self) -> Tensors:
        return Tensors(self.trace)

    def named(self, is_wanted: Callable[[str], bool]) -> BoolArray:
        """Mask of the events whose name fulfils a condition."""
        by_name = np.array([is_wanted(text) for text in self.trace.names] or [False])
        return by_name[self.trace.name] if len(self.trace) else np.zeros(0, bool)

    def enclosing(self, chosen: BoolArray) -> IntArray:
        """For each event the row of its nearest chosen ancestor; -1: none."""
        return np.where(self.parent < 0, -1, nearest(self.parent, chosen)[self.parent])

    def outermost(self, chosen: BoolArray) -> IntArray:
        """Rows of the chosen events that no other chosen event contains."""
        return np.flatnonzero(chosen & (self.enclosing(chosen) < 0))

    def location(self, row: int) -> str:
        """The line of the program from which an event was called; if there is none, the annotations around the event."""
        number = int(self.trace.stack[row])
        stack = self.trace.stacks[number] if number >= 0 else ()
        for frame in stack:
            if is_user_code(frame):
                return frame
        above, names = int(self.parent[row]), []
        while above >= 0:
            if self.trace.kind[above] == ANNOTATION:
                names.append(self.trace.names[self.trace.name[above]])
            above = int(self.parent[above])
        return " < ".join(names)

    def evidence(self, rows: IntArray, times_ns: IntArray | None = None) -> list[Evidence]:
        """Events grouped by name and location, the longest first; `times_ns`: other times than the events' durations."""
        times_ns = self.duration[rows] if times_ns is None else times_ns
        groups: dict[tuple[str, str], list[int]] = {}
        for row, time in zip(rows.tolist(), times_ns.tolist()):
            key = (self.trace.names[self.trace.name[row]], self.location(row))
            total = groups.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += time
        ranked = sorted(groups.items(), key=lambda item: -item[1][1])[:_EVIDENCE_ROWS]
        return [
            {"name": name, "where": where, "count": count, "total_us": time / 1000}
            for (name, where), (count, time) in ranked
        ]

    def advice(
        self, code: str, message: str, advice: str, count: int, ns: float, evidence: list[Evidence]
    ) -> Advice:
        """A suggestion; `ns`: the time it can save."""
        return Advice(code, message, advice, count, float(ns) / 1000, float(ns) / self.length_ns, evidence)


# ---------------------------------------------------------------------------------------------------- rules


def _data_loading(program: _RecordedProgram) -> list[Advice]:
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
        rows = program.outermost(program.named(_is_loading_by(iterator)))
        if len(rows) >= 2:
            total = int(program.duration[rows].sum())
            suggestions.append(program.advice(code, text, advice, len(rows), total, program.evidence(rows)))
    return suggestions


def _is_loading_by(iterator: str) -> Callable[[str], bool]:
    """A condition on names: of the loading of a batch by this kind of iterator."""
    return lambda name: name.startswith("enumerate(DataLoader)#") and iterator in name


def _indexing_loops(program: _RecordedProgram) -> list[Advice]:
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
    firsts, times, iterations = [], [], 0
    for siblings in np.split(inside, cuts):
        for first, last, count in _repeated_sequences(trace.name[siblings].tolist(), select[siblings]):
            part = siblings[first:last]
            firsts.append(int(part[0]))
            times.append(int(program.duration[part].sum()))
            iterations += count
    if not firsts:
        return []
    evidence = program.evidence(np.array(firsts), np.array(times))
    return [
        program.advice(
            "indexing_loop",
            f"a loop indexes the rows of a tensor one by one ({iterations:,} iterations)",
            "process the whole tensor at once: unbind, stack, broadcasting or torch.func.vmap",
            len(firsts),
            sum(times),
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


def _single_tensor_optimizer(program: _RecordedProgram) -> list[Advice]:
    """An optimizer of torch updates parameters one by one."""
    if not program.trace.settings.foreign:
        return []  # in mindtorch_v2, updating all parameters at once is no faster
    steps = program.named(lambda name: name.startswith("Optimizer.step#"))
    inside = program.enclosing(steps)
    many = program.named(lambda name: name.startswith(("aten::_foreach_", "aten::_fused_")))
    ops = (inside >= 0) & (program.trace.kind == OP) & (program.parent == inside)
    count = np.bincount(inside[ops], minlength=len(program.trace))
    together = np.bincount(inside[many & (inside >= 0)], minlength=len(program.trace))
    rows = np.flatnonzero(steps & (count >= _SINGLE_TENSOR_OPS) & (together == 0))
    if not len(rows):
        return []
    return [
        program.advice(
            "single_tensor_optimizer",
            "the optimizer updates parameters one by one",
            "pass foreach=True (or fused=True) to the optimizer",
            len(rows),
            int(program.duration[rows].sum()),
            program.evidence(rows),
        )
    ]


def _zeroed_gradients(program: _RecordedProgram) -> list[Advice]:
    """Gradients are filled with zeros."""
    spans = program.named(
        lambda name: name.startswith("Optimizer.zero_grad#") or name.endswith(": zero_grad")
    )
    zeros = program.named(lambda name: name in ("aten::zero_", "aten::_foreach_zero_"))
    rows = np.flatnonzero(zeros & (program.enclosing(spans) >= 0))
    # Module.zero_grad has no annotation of its own, only a frame
    stack_has_call = [any(frame.endswith(": zero_grad") for frame in stack) for stack in program.trace.stacks]
    if any(stack_has_call):
        in_call = np.array([*stack_has_call, False])[program.trace.stack]
        rows = np.union1d(rows, np.flatnonzero(zeros & in_call))
    rows = rows[~np.isin(program.parent[rows], rows)]
    if not len(rows):
        return []
    return [
        program.advice(
            "zeroed_gradients",
            "gradients are filled with zeros and then accumulated into",
            "set them to None: zero_grad(set_to_none=True), the default",
            len(rows),
            int(program.duration[rows].sum()),
            program.evidence(rows),
        )
    ]


def _bias_before_norm(program: _RecordedProgram) -> list[Advice]:
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
    return [
        program.advice(
            "bias_before_norm",
            "convolutions add a bias that the following batch norm subtracts again",
            "create them with bias=False",
            len(rows),
            int(saved_ns.sum()),
            program.evidence(rows, saved_ns),
        )
    ]


def _tiny_ops(program: _RecordedProgram) -> list[Advice]:
    """Calling ops takes more time than their work."""
    trace = program.trace
    calls = working(program.results) & (trace.kind != RUNTIME) & (trace.kind != NODE)
    parents = program.parent[calls & (program.parent >= 0)]
    has_children = np.bincount(parents, minlength=len(trace)) > 0
    outer = program.outermost(calls & (trace.kind == OP))
    tiny = outer[(program.duration[outer] < _TINY_NS) & ~has_children[outer]]
    _, number, counts = np.unique(trace.name[tiny], return_inverse=True, return_counts=True)
    rows = tiny[counts[number.reshape(-1)] >= _MANY_CALLS]
    if not len(rows) or trace.device.works.any():
        return []
    total = int(program.duration[rows].sum())
    if total < 0.2 * program.length_ns:
        return []
    return [
        program.advice(
            "tiny_ops",
            f"{len(rows):,} op calls take less than {_TINY_NS // 1000} us each",
            "do more work per call: larger batches, ops on whole tensors, fused functions",
            len(rows),
            total,
            program.evidence(rows[np.argsort(-program.duration[rows], kind="stable")][: 20 * _MANY_CALLS]),
        )
    ]


def _synchronisation(program: _RecordedProgram) -> list[Advice]:
    """Ops make the host wait for the device."""
    trace = program.trace
    if not trace.device.works.any():
        return []
    waits = program.named(lambda name: name.endswith("Synchronize") and name.startswith(("cuda", "hip")))
    # inside ops (.item(), copies to the host); the program asks for a wait outside ops itself
    inside = program.enclosing((trace.kind == OP) & ~waits)
    rows = np.flatnonzero(waits & (inside >= 0))
    if not len(rows):
        return []
    outer = inside[rows]
    while True:
        above = program.parent[outer]
        climb = (above >= 0) & (trace.kind[np.maximum(above, 0)] == OP)
        if not climb.any():
            break
        outer = np.where(climb, above, outer)
    return [
        program.advice(
            "synchronisation",
            "ops synchronise with the device (values read on the host, copies to the host)",
            "read values less often: keep losses on the device, call .item() only every few steps, use non_blocking copies",
            len(rows),
            int(program.duration[rows].sum()),
            program.evidence(outer, program.duration[rows]),
        )
    ]


def _pageable_copies(program: _RecordedProgram) -> list[Advice]:
    """Copies to the device from pageable memory, for which the host waits."""
    device = program.trace.device
    named = np.array(["HtoD" in text and "Pageable" in text for text in device.names] or [False])
    if not len(device):
        return []
    rows = np.flatnonzero((device.kind == DEVICE_COPY) & named[device.name])
    if len(rows) < 2:
        return []
    copy_ns = device.end_ns[rows] - device.start_ns[rows]
    ops = device.op[rows]
    evidence = program.evidence(ops[ops >= 0], copy_ns[ops >= 0])
    return [
        program.advice(
            "pageable_copies",
            f"{len(rows):,} copies to the device are from pageable (not pinned) memory",
            "use DataLoader(pin_memory=True) and .to(device, non_blocking=True); create tensors on the device where possible",
            len(rows),
            int(copy_ns.sum()),
            evidence,
        )
    ]


def _idle_device(program: _RecordedProgram) -> list[Advice]:
    """A device is idle for much of the time between its first and its last event."""
    device = program.trace.device
    suggestions = []
    for number in np.unique(device.device[device.works]).tolist():
        work = device.works & (device.device == number)
        starts, ends = union(device.start_ns[work], device.end_ns[work])
        gaps = starts[1:] - ends[:-1]
        idle, length = int(gaps.sum()), int(ends[-1] - starts[0])
        if length <= 0 or idle < _IDLE_SHARE * length:
            continue
        suggestions.append(
            program.advice(
                "idle_device",
                f"device {number} is idle for {idle / length:.0%} of the time between its first and its last event",
                "the host launches work too slowly: use fewer and larger ops, CUDA graphs or torch.compile, load data in the background",
                len(gaps),
                idle,
                _host_work_in_gaps(program, ends[:-1], starts[1:]),
            )
        )
    return suggestions


def _host_work_in_gaps(program: _RecordedProgram, begin: IntArray, end: IntArray) -> list[Evidence]:
    """What the host did in the 20 longest gaps: the outermost op or annotation (except steps) that overlaps most with each."""
    trace = program.trace
    rows, times = [], []
    step = is_step(trace)
    outer = np.flatnonzero(~step & ((program.parent < 0) | step[np.maximum(program.parent, 0)]))
    for gap in np.argsort(begin - end)[:20].tolist():
        overlap = np.minimum(trace.end_ns[outer], end[gap]) - np.maximum(trace.start_ns[outer], begin[gap])
        if len(overlap) and overlap.max() > 0:
            rows.append(int(outer[np.argmax(overlap)]))
            times.append(int(end[gap] - begin[gap]))
    return program.evidence(np.array(rows, np.int64), np.array(times, np.int64))


RULES: tuple[Callable[[_RecordedProgram], list[Advice]], ...] = (
    _data_loading,
    _indexing_loops,
    _single_tensor_optimizer,
    _zeroed_gradients,
    _bias_before_norm,
    _tiny_ops,
    _synchronisation,
    _pageable_copies,
    _idle_device,
)
