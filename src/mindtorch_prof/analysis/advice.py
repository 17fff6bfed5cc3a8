"""Advice: a recording in; what costs time for no good reason out, few and sure, each with evidence and the time at stake.

Works on columns of live recordings and loaded files alike. A rule speaks only where the trace itself shows the waste and changing one line
would end it; what a file does not hold (inputs, Python calls, device work) silences the rules that need it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..frames import is_user_code
from ..arrays import BoolArray, IntArray
from ..steps import is_step
from ..torch_api.tensor_ids import Tensors
from ..trace import ANNOTATION, DEVICE_COPY, NODE, OP, RUNTIME
from ..tree import nearest
from .intervals import union
from .recording import Recording, as_results
from .steps_table import working

if TYPE_CHECKING:
    from ..torch_api.results import Results

LEAST_SHARE = 0.02  # of the recording's time: below, nobody gains by a change
_LOOP = 10  # equal steps are a loop
_TINY_NS = 20_000
_MANY_CALLS = 500
_IDLE_SHARE = 0.25
_SINGLE_OPS = 20  # ops in a step of an optimizer that goes through parameters one by one
_EVIDENCE = 5  # rows


class Evidence(TypedDict):
    """Events of one name at one place."""

    name: str
    where: str  # a line of the program, or the annotations around the events
    count: int
    total_us: float


@dataclass(frozen=True)
class Advice:
    """One thing to change."""

    code: str  # stable, for programs
    message: str  # what was seen
    advice: str  # what to do about it
    count: int  # how often it was seen
    at_stake_us: float  # the most time that the change can save
    share: float  # the same, of the whole recording
    evidence: list[Evidence] = field(default_factory=list)  # the largest first

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def advise(source: Recording, least_share: float = LEAST_SHARE) -> list[Advice]:
    """What to change in the recorded program, largest saving first; nothing below `least_share` of the recording."""
    seen = _Seen(as_results(source))
    if not len(seen.trace):
        return []
    found = [advice for rule in RULES for advice in rule(seen) if advice.share >= least_share]
    return sorted(found, key=lambda advice: -advice.at_stake_us)


class _Seen:
    """A recording, with what several rules ask."""

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

    def named(self, chosen: Callable[[str], bool]) -> BoolArray:
        """Mask of the events whose name fulfils a condition."""
        found = np.array([chosen(text) for text in self.trace.names] or [False])
        return found[self.trace.name] if len(self.trace) else np.zeros(0, bool)

    def around(self, chosen: BoolArray) -> IntArray:
        """For each event the row of the innermost chosen one around it (not itself); -1: none."""
        return np.where(self.parent < 0, -1, nearest(self.parent, chosen)[self.parent])

    def outermost(self, chosen: BoolArray) -> IntArray:
        """Rows of the chosen events that lie in no other chosen one."""
        return np.flatnonzero(chosen & (self.around(chosen) < 0))

    def where(self, row: int) -> str:
        """A line outside the libraries from which an event was reached, or the ranges around it."""
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

    def rows(self, rows: IntArray, ns: IntArray | None = None) -> list[Evidence]:
        """Evidence: events grouped by name and place, the longest first."""
        took = self.duration[rows] if ns is None else ns
        groups: dict[tuple[str, str], list[int]] = {}
        for row, time in zip(rows.tolist(), took.tolist()):
            key = (self.trace.names[self.trace.name[row]], self.where(row))
            total = groups.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += time
        ranked = sorted(groups.items(), key=lambda item: -item[1][1])[:_EVIDENCE]
        return [
            {"name": name, "where": where, "count": count, "total_us": time / 1000}
            for (name, where), (count, time) in ranked
        ]

    def advice(
        self, code: str, message: str, advice: str, count: int, ns: float, evidence: list[Evidence]
    ) -> Advice:
        """A finding, its time put beside the whole recording's."""
        return Advice(code, message, advice, count, float(ns) / 1000, float(ns) / self.length_ns, evidence)


# ---------------------------------------------------------------------------------------------------- rules


def _loader(seen: _Seen) -> list[Advice]:
    """The program waits for its DataLoader."""
    made = []
    for kind, text, advice in (
        (
            "_SingleProcess",
            "batches are loaded in the foreground, while the program waits",
            "load in the background: DataLoader(..., num_workers=2 or more, and pin_memory=True for a GPU)",
        ),
        (
            "_MultiProcessing",
            "the program waits for the workers of its DataLoader",
            "use more workers (num_workers), prefetch more batches (prefetch_factor), or do less work in the dataset",
        ),
    ):
        named = seen.named(lambda name, kind=kind: name.startswith("enumerate(DataLoader)#") and kind in name)
        rows = seen.outermost(named)
        if len(rows) >= 2:
            total = int(seen.duration[rows].sum())
            code = "loader_wait" if kind == "_SingleProcess" else "loader_slow"
            made.append(seen.advice(code, text, advice, len(rows), total, seen.rows(rows)))
    return made


def _loops(seen: _Seen) -> list[Advice]:
    """Rows of a tensor are worked on one by one."""
    trace = seen.trace
    select = seen.named(lambda name: name == "aten::select") & (trace.kind == OP)
    above, counts = np.unique(seen.parent[select], return_counts=True)
    inside = np.flatnonzero(np.isin(seen.parent, above[counts >= _LOOP]) & (trace.kind != ANNOTATION))
    # siblings of one thread, in the order of time
    inside = inside[np.lexsort((inside, trace.thread[inside], seen.parent[inside]))]
    cuts = np.flatnonzero((np.diff(seen.parent[inside]) != 0) | (np.diff(trace.thread[inside]) != 0)) + 1
    firsts, times, steps = [], [], 0
    for siblings in np.split(inside, cuts):
        for first, last, count in _repeats(trace.name[siblings].tolist(), select[siblings]):
            part = siblings[first:last]
            firsts.append(int(part[0]))
            times.append(int(seen.duration[part].sum()))
            steps += count
    if not firsts:
        return []
    evidence = seen.rows(np.array(firsts), np.array(times))
    return [
        seen.advice(
            "indexing_loop",
            f"a loop indexes the rows of a tensor one by one ({steps:,} iterations)",
            "process the whole tensor at once: unbind, stack, broadcasting or torch.func.vmap",
            len(firsts),
            sum(times),
            evidence,
        )
    ]


def _repeats(names: list[int], starts: BoolArray) -> list[tuple[int, int, int]]:
    """(first, last, steps) of stretches in which the names from one start to the next come again and again."""
    found = []
    places = np.flatnonzero(starts).tolist()
    at = 0
    while at + 1 < len(places):
        first, length = places[at], places[at + 1] - places[at]
        step = names[first : first + length]
        last, count = first + length, 1
        while names[last : last + length] == step:
            last, count = last + length, count + 1
        if count >= _LOOP:
            found.append((first, last, count))
        while at < len(places) and places[at] < last:
            at += 1
    return found


def _optimizer(seen: _Seen) -> list[Advice]:
    """An optimizer of torch updates parameters one by one."""
    if not seen.trace.settings.foreign:
        return []  # here one way of updating is as fast as the other
    steps = seen.named(lambda name: name.startswith("Optimizer.step#"))
    inside = seen.around(steps)
    many = seen.named(lambda name: name.startswith(("aten::_foreach_", "aten::_fused_")))
    ops = (inside >= 0) & (seen.trace.kind == OP) & (seen.parent == inside)
    count = np.bincount(inside[ops], minlength=len(seen.trace))
    together = np.bincount(inside[many & (inside >= 0)], minlength=len(seen.trace))
    rows = np.flatnonzero(steps & (count >= _SINGLE_OPS) & (together == 0))
    if not len(rows):
        return []
    return [
        seen.advice(
            "single_tensor_optimizer",
            "the optimizer updates parameters one by one",
            "pass foreach=True (or fused=True) to the optimizer",
            len(rows),
            int(seen.duration[rows].sum()),
            seen.rows(rows),
        )
    ]


def _zero_grad(seen: _Seen) -> list[Advice]:
    """Gradients are filled with zeros."""
    spans = seen.named(lambda name: name.startswith("Optimizer.zero_grad#") or name.endswith(": zero_grad"))
    zeros = seen.named(lambda name: name in ("aten::zero_", "aten::_foreach_zero_"))
    rows = np.flatnonzero(zeros & (seen.around(spans) >= 0))
    in_calls = [
        any(frame.endswith(": zero_grad") for frame in stack) for stack in seen.trace.stacks
    ]  # a module's has no range
    if any(in_calls):
        called = np.array([*in_calls, False])[seen.trace.stack]
        rows = np.union1d(rows, np.flatnonzero(zeros & called))
    rows = rows[~np.isin(seen.parent[rows], rows)]
    if not len(rows):
        return []
    return [
        seen.advice(
            "zeroed_gradients",
            "gradients are filled with zeros and then accumulated into",
            "set them to None: zero_grad(set_to_none=True), the default",
            len(rows),
            int(seen.duration[rows].sum()),
            seen.rows(rows),
        )
    ]


def _conv_bias(seen: _Seen) -> list[Advice]:
    """A convolution adds a bias that the batch norm behind it takes away."""
    trace = seen.trace
    conv = seen.named(lambda name: name in ("aten::conv1d", "aten::conv2d", "aten::conv3d"))
    norm = seen.named(lambda name: name == "aten::batch_norm")
    counting = seen.named(lambda name: name == "aten::add_")  # of the batches that a norm has seen
    if not conv.any() or not norm.any():
        return []
    pairs = []
    for row in np.flatnonzero(conv & (trace.inputs >= 0)).tolist():
        following = row + 1
        end = int(trace.end_ns[row])
        while following < len(trace) and (trace.start_ns[following] < end or counting[following]):
            if trace.start_ns[following] >= end:
                end = int(trace.end_ns[following])
            following += 1  # what is inside
        if following < len(trace) and trace.thread[following] == trace.thread[row] and norm[following]:
            inputs = seen.tensors.inputs(row)
            if len(inputs) > 2 and hasattr(inputs[2], "sizes"):
                pairs.append((row, following))
    if not pairs:
        return []
    rows, norms = np.array(pairs).T
    # adding a bias is a pass over what the norm then reads at least twice and writes
    took = seen.duration[norms] // 3
    return [
        seen.advice(
            "bias_before_norm",
            "convolutions add a bias that the following batch norm subtracts again",
            "create them with bias=False",
            len(rows),
            int(took.sum()),
            seen.rows(rows, took),
        )
    ]


def _tiny_ops(seen: _Seen) -> list[Advice]:
    """Most of the time goes to the calling of ops, not to their work."""
    trace = seen.trace
    leaf = working(seen.results) & (trace.kind != RUNTIME) & (trace.kind != NODE)
    parents = seen.parent[leaf & (seen.parent >= 0)]
    has_op_inside = np.bincount(parents, minlength=len(trace)) > 0
    outer = seen.outermost(leaf & (trace.kind == OP))
    small = outer[(seen.duration[outer] < _TINY_NS) & ~has_op_inside[outer]]
    _, place, counts = np.unique(trace.name[small], return_inverse=True, return_counts=True)
    often = counts[place.reshape(-1)] >= _MANY_CALLS
    rows = small[often]
    if not len(rows) or trace.device.works.any():
        return []
    total = int(seen.duration[rows].sum())
    if total < 0.2 * seen.length_ns:
        return []
    return [
        seen.advice(
            "tiny_ops",
            f"{len(rows):,} op calls take less than {_TINY_NS // 1000} us each",
            "do more work per call: larger batches, ops on whole tensors, fused functions",
            len(rows),
            total,
            seen.rows(rows[np.argsort(-seen.duration[rows], kind="stable")][: 20 * _MANY_CALLS]),
        )
    ]


def _synchronisation(seen: _Seen) -> list[Advice]:
    """The host waits for the device in the middle of its work."""
    trace = seen.trace
    if not trace.device.works.any():
        return []
    waits = seen.named(lambda name: name.endswith("Synchronize") and name.startswith(("cuda", "hip")))
    # ops that have to wait, as .item() and copies to the host; a wait outside ops is the program's own
    inside = seen.around((trace.kind == OP) & ~waits)
    rows = np.flatnonzero(waits & (inside >= 0))
    if not len(rows):
        return []
    outer = inside[rows]
    while True:
        above = seen.parent[outer]
        climb = (above >= 0) & (trace.kind[np.maximum(above, 0)] == OP)
        if not climb.any():
            break
        outer = np.where(climb, above, outer)
    return [
        seen.advice(
            "synchronisation",
            "ops synchronise with the device (values read on the host, copies to the host)",
            "read values less often: keep losses on the device, call .item() only every few steps, use non_blocking copies",
            len(rows),
            int(seen.duration[rows].sum()),
            seen.rows(outer, seen.duration[rows]),
        )
    ]


def _pageable_copies(seen: _Seen) -> list[Advice]:
    """Copies to the device from memory that is not pinned, which hold the host."""
    device = seen.trace.device
    named = np.array(["HtoD" in text and "Pageable" in text for text in device.names] or [False])
    if not len(device):
        return []
    rows = np.flatnonzero((device.kind == DEVICE_COPY) & named[device.name])
    if len(rows) < 2:
        return []
    took = device.end_ns[rows] - device.start_ns[rows]
    charged = device.op[rows]
    evidence = seen.rows(charged[charged >= 0], took[charged >= 0])
    return [
        seen.advice(
            "pageable_copies",
            f"{len(rows):,} copies to the device are from pageable (not pinned) memory",
            "use DataLoader(pin_memory=True) and .to(device, non_blocking=True); create tensors on the device where possible",
            len(rows),
            int(took.sum()),
            evidence,
        )
    ]


def _idle_device(seen: _Seen) -> list[Advice]:
    """A device has nothing to do for much of the time between its first and its last work."""
    device = seen.trace.device
    made = []
    for number in np.unique(device.device[device.works]).tolist():
        mine = device.works & (device.device == number)
        starts, ends = union(device.start_ns[mine], device.end_ns[mine])
        gaps = starts[1:] - ends[:-1]
        idle, length = int(gaps.sum()), int(ends[-1] - starts[0])
        if length <= 0 or idle < _IDLE_SHARE * length:
            continue
        made.append(
            seen.advice(
                "idle_device",
                f"device {number} is idle for {idle / length:.0%} of the time between its first and its last event",
                "the host launches work too slowly: use fewer and larger ops, CUDA graphs or torch.compile, load data in the background",
                len(gaps),
                idle,
                _in_gaps(seen, ends[:-1], starts[1:]),
            )
        )
    return made


def _in_gaps(seen: _Seen, begin: IntArray, end: IntArray) -> list[Evidence]:
    """What the host did in the longest gaps: the outermost op or range, steps aside, that overlaps most."""
    trace = seen.trace
    rows, times = [], []
    step = is_step(trace)
    outer = np.flatnonzero(~step & ((seen.parent < 0) | step[np.maximum(seen.parent, 0)]))
    for gap in np.argsort(begin - end)[:20].tolist():
        overlap = np.minimum(trace.end_ns[outer], end[gap]) - np.maximum(trace.start_ns[outer], begin[gap])
        if len(overlap) and overlap.max() > 0:
            rows.append(int(outer[np.argmax(overlap)]))
            times.append(int(end[gap] - begin[gap]))
    return seen.rows(np.array(rows, np.int64), np.array(times, np.int64))


RULES: tuple[Callable[[_Seen], list[Advice]], ...] = (
    _loader,
    _loops,
    _optimizer,
    _zero_grad,
    _conv_bias,
    _tiny_ops,
    _synchronisation,
    _pageable_copies,
    _idle_device,
)
