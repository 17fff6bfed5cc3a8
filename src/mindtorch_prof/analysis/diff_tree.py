"""Diff by tree: two recordings in; where their trees of ops part, with the time of both sides there, out.

    comparison = diff_tree(load("cuda.json.gz"), load("rocm.json.gz"))
    for place in comparison.places: print(place.name, place.only_a, place.only_b, place.device.delta)

Names differ where two devices, versions or compilers run the same program: `aten::cudnn_convolution` here, `aten::miopen_convolution` there. The trees are
matched from the top by name; what only one side has is compared below the lowest op or module that both have. Annotations and modules that only one
side has are looked through. Each event and each kernel belongs to one place, so that the differences of all places add up to the difference of the totals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import IntArray
from ..averages import named_groups
from ..frames import MODULE_PREFIX
from ..steps import step_number, step_numbers, steps_of
from ..trace import ANNOTATION, ENGINE, PYTHON, RUNTIME, Trace
from ..tree import depths_below, levels, nearest, sum_by
from .call_tree import with_python
from .categories import category
from .diff import Change
from .recording import Recording, as_results, recorded_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

ROOT = "(outermost)"
NO_OP = "(no op)"
SAME, REPLACED, ADDED, GONE, KERNELS = "same", "replaced", "added", "gone", "kernels"
_INSTANCE = re.compile(r"_\d+$")  # of modules: Linear_3
_AROUND = (ANNOTATION, PYTHON, ENGINE)
_ROOT, _LOOSE = 0, 1  # the first nodes of each tree: of everything, and of work that no op launched


@dataclass(frozen=True)
class Part:
    """What one side alone has in a place: an op with all inside it, or a kernel. Times in microseconds, per step or in total."""

    name: str
    count: float
    host_us: float
    device_us: float


@dataclass(frozen=True)
class Place:
    """An op or module that both sides have, with its own time on both sides; or with what runs in it instead of each other."""

    name: str
    status: str  # "replaced", "added", "gone": parts of one side alone; "kernels": other kernels; "same": only the times may differ
    count: Change
    host: Change
    device: Change
    only_a: tuple[Part, ...]  # longest first
    only_b: tuple[Part, ...]
    paths: int  # in how many places of the tree this is so
    path: tuple[str, ...]  # of the one that takes longest: names from the outermost to this one

    @property
    def differs(self) -> bool:
        """Whether the trees differ here, not only the times."""
        return self.status != SAME


@dataclass(frozen=True)
class TreeDiff:
    """The result; the places with the largest change of device time (of host time, if not both sides have a device) come first."""

    places: tuple[Place, ...]
    per: str  # "step" or "total"
    steps: tuple[int, int]
    host: Change  # the totals, in microseconds: self time of all events, and the length of all work of the device
    device: Change
    by_device: bool  # whether places are ranked by device time
    notes: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[Place, ...]:
        """The places where the trees differ."""
        return tuple(place for place in self.places if place.differs)

    def change(self, place: Place) -> Change:
        """The change that places are ranked by."""
        return place.device if self.by_device else place.host

    def change_left(self, shown: Sequence[Place]) -> float:
        """What the change of other places than these adds up to, in microseconds."""
        whole = self.device if self.by_device else self.host
        return whole.delta - sum(self.change(place).delta for place in shown)


def diff_tree(a: Recording, b: Recording, *, per: str = "auto") -> TreeDiff:
    """Compare two recordings by their trees. per: "step", "total", or "auto" (steps where both sides have them)."""
    if per not in ("auto", "step", "total"):
        raise ValueError(f"trees cannot be compared per {per!r}; expected step, total or auto")
    recordings = [recorded_results(source) for source in (a, b)]
    has_steps = [bool((step_numbers(r.trace.names, r.trace.name) >= 0).any()) for r in recordings]
    if per == "step" and not all(has_steps):
        which = "the second" if has_steps[0] else "the first" if has_steps[1] else "neither"
        verb = "has" if which == "neither" else "has no"
        raise ValueError(
            f"{which} trace {verb} steps (ProfilerStep#N); expected them for a comparison per step"
        )
    use_steps = per != "total" and all(has_steps)
    notes = []
    has_modules = [bool((as_results(source).trace.frames.module >= 0).any()) for source in recordings]
    if has_modules[0] != has_modules[1]:
        which = "second" if has_modules[0] else "first"
        notes.append(f"the {which} trace was recorded without modules: both are compared by ops alone")
    trees = [with_python(source, "modules" if all(has_modules) else "none") for source in recordings]
    around = [_names_around(results.trace) for results in trees]
    sides = [_Side(results, around[i] - around[1 - i], use_steps) for i, results in enumerate(trees)]
    for side, which in zip(sides, ("first", "second")):
        if side.outside_ns > 0.01 * max(side.whole_ns, 1):
            share = side.outside_ns / side.whole_ns
            notes.append(f"{share:.0%} of the {which} trace's time is outside of steps and is not compared")
    places = list(_places(*sides))
    by_device = all(bool(side.device_ns.any()) for side in sides)
    if not by_device and any(bool(side.device_ns.any()) for side in sides):
        notes.append("only one of the traces has work of a device: places are ranked by host time")
    merged = [place.whole(sides) for place in _merged(places).values()]
    merged.sort(
        key=lambda place: (-abs((place.device if by_device else place.host).delta), place.name, place.status)
    )
    host_a, host_b = (int(side.host_ns.sum()) / 1000 / side.runs for side in sides)
    device_a, device_b = (int(side.device_ns.sum()) / 1000 / side.runs for side in sides)
    host, device = Change(host_a, host_b), Change(device_a, device_b)
    steps = (sides[0].runs, sides[1].runs) if use_steps else (0, 0)
    return TreeDiff(
        tuple(merged), "step" if use_steps else "total", steps, host, device, by_device, tuple(notes)
    )


def _plain(name: str) -> str:
    """A name without the number of a module among those of its class."""
    return _INSTANCE.sub("", name) if name.startswith(MODULE_PREFIX) else name


def _names_around(trace: Trace) -> set[str]:
    """The names of annotations, modules and events of the autograd engine, which contain ops and do nothing themselves; steps are none."""
    numbers = np.unique(trace.name[np.isin(trace.kind, _AROUND)])
    return {_plain(trace.names[i]) for i in numbers.tolist() if step_number(trace.names[i]) < 0}


class _Side:
    """The tree of one recording, merged by paths of names. Columns by node; times in nanoseconds, of all runs together."""

    def __init__(self, results: Results, looked_through: set[str], use_steps: bool) -> None:
        """looked_through: names of annotations and modules that are no nodes; what they contain stands in what is around them."""
        trace = results.trace
        numbers, step, _ = steps_of(trace)
        self.runs = max(len(numbers), 1) if use_steps else 1
        keep = results.shown & (trace.kind != RUNTIME)
        if looked_through:
            is_hidden = np.array([_plain(name) in looked_through for name in trace.names], bool)
            keep &= ~(is_hidden[trace.name] & np.isin(trace.kind, _AROUND))
        of_row = nearest(results.nesting.parent, keep) if len(trace) else np.empty(0, np.int64)
        counted = step >= 0 if use_steps else np.ones(len(trace), bool)
        self_ns = np.where(counted, results.tree.self_ns, 0)
        self.whole_ns = int(results.tree.self_ns.sum())
        self.outside_ns = self.whole_ns - int(self_ns.sum())
        parent = self._parents(trace, of_row, results.nesting.parent, step)
        rows = np.flatnonzero(keep & counted)
        node_of = self._place(trace, rows, parent)

        count = len(self.names)
        outermost = np.where(of_row >= 0, node_of[np.maximum(of_row, 0)], _ROOT) if len(trace) else of_row
        outermost = np.where(outermost < 0, _ROOT, outermost)
        self.count = np.bincount(node_of[rows], minlength=count)
        self.host_ns = sum_by(outermost, self_ns, count)
        self.first_ns = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(self.first_ns, node_of[rows], trace.start_ns[rows])
        self._add_kernels(trace, outermost, counted)
        self.children: list[list[int]] = [[] for _ in range(count)]
        order = np.argsort(self.first_ns, kind="stable")
        for node in order[self.parent[order] >= 0].tolist():
            self.children[int(self.parent[node])].append(node)
        self._add_totals()

    @staticmethod
    def _parents(trace: Trace, of_row: IntArray, parent: IntArray, step: IntArray) -> IntArray:
        """By row its parent among those kept; what is outermost on any thread stands in its step."""
        if not len(trace):
            return parent
        kept = np.where(parent >= 0, of_row[np.maximum(parent, 0)], -1)
        is_mark = step_numbers(trace.names, trace.name) >= 0
        marks = np.flatnonzero(
            is_mark & (kept < 0)
        )  # a step inside an op takes nothing in: it might take in that op
        mark_of_step = np.full(int(step.max(initial=-1)) + 1, -1, np.int64)
        mark_of_step[step[marks][::-1]] = marks[::-1]
        in_step = (kept < 0) & (step >= 0) & ~is_mark
        return np.where(in_step, np.append(mark_of_step, -1)[step], kept)

    def _place(self, trace: Trace, rows: IntArray, parent: IntArray) -> IntArray:
        """The node of each row: one per path of names."""
        group, texts = named_groups(tuple(map(_plain, trace.names)))
        node_of = np.full(len(trace), -1, np.int64)
        self.names = [ROOT, NO_OP]
        parents: list[IntArray] = [np.array([-1, _ROOT])]
        chosen = np.zeros(len(trace), bool)
        chosen[rows] = True
        for level in levels(depths_below(parent)) if len(trace) else []:
            here = level[chosen[level]]
            above = np.where(parent[here] >= 0, node_of[np.maximum(parent[here], 0)], _ROOT)
            above = np.where(above < 0, _ROOT, above)  # the one around it is outside of steps
            name = group[trace.name[here]]
            keys, number = np.unique(above * len(texts) + name, return_inverse=True)
            node_of[here] = len(self.names) + number.reshape(-1)
            self.names += [texts[key] for key in (keys % len(texts)).tolist()]
            parents.append(keys // len(texts))
        self.parent = np.concatenate(parents)
        return node_of

    def _add_kernels(self, trace: Trace, node_of_row: IntArray, counted: np.ndarray) -> None:
        """Kernels, copies and memsets by node and name."""
        device, count = trace.device, len(self.names)
        self.kernels: list[dict[str, tuple[int, int]]] = [{} for _ in range(count)]
        self.device_ns: IntArray = np.zeros(count, np.int64)
        if not len(device):
            return
        row = np.where(device.op >= 0, device.op, device.launch)
        works = device.works
        if len(trace):
            works = works & ((row < 0) | counted[np.maximum(row, 0)])
            if not counted.all():  # per step: work that no op launched belongs to no step
                works &= row >= 0
        else:
            row = np.full(len(device), -1, np.int64)
        node = np.where(row >= 0, node_of_row[np.maximum(row, 0)], _LOOSE) if len(trace) else row * 0 + _LOOSE
        work = np.flatnonzero(works)
        length = (device.end_ns - device.start_ns)[work]
        keys, place = np.unique(
            node[work] * max(len(device.names), 1) + device.name[work], return_inverse=True
        )
        place = place.reshape(-1)
        sums, calls = sum_by(place, length, len(keys)), np.bincount(place, minlength=len(keys))
        for key, ns, times in zip(keys.tolist(), sums.tolist(), calls.tolist()):
            self.kernels[key // len(device.names)][device.names[key % len(device.names)]] = (times, ns)
        self.device_ns = sum_by(node[work], length, count)

    def _add_totals(self) -> None:
        """Times of nodes with all below them; a parent has a lower number than its children."""
        self.host_total, self.device_total = self.host_ns.tolist(), self.device_ns.tolist()
        for node in range(len(self.names) - 1, 0, -1):
            above = int(self.parent[node])
            self.host_total[above] += self.host_total[node]
            self.device_total[above] += self.device_total[node]

    def part(self, node: int) -> Part:
        """A node with all below it."""
        return Part(
            self.names[node],
            int(self.count[node]) / self.runs,
            self.host_total[node] / 1000 / self.runs,
            self.device_total[node] / 1000 / self.runs,
        )


@dataclass
class _Found:
    """A place of the two trees: the matched nodes, and what only one side has."""

    name: str
    path: tuple[str, ...]
    status: str
    nodes: tuple[list[int], list[int]]  # whose own time belongs to the place
    parts: tuple[list[Part], list[Part]]
    paths: int = 1
    largest: float = 0.0
    kernels: tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]] = field(
        default_factory=lambda: ({}, {})
    )

    def whole(self, sides: list[_Side]) -> Place:
        """The place with its times on both sides."""
        status, parts = self.status, [*self.parts]
        if status == SAME:
            parts = [self._own_kernels(sides, i) for i in (0, 1)]
            status = KERNELS if parts[0] or parts[1] else SAME
        only_a, only_b = (tuple(sorted(part, key=_longest_first)) for part in parts)
        count_a, count_b = (self._count(side, i) for i, side in enumerate(sides))
        host_a, host_b = (self._host_us(side, i) for i, side in enumerate(sides))
        device_a, device_b = (self._device_us(side, i) for i, side in enumerate(sides))
        return Place(
            self.name,
            status,
            Change(count_a, count_b),
            Change(host_a, host_b),
            Change(device_a, device_b),
            only_a,
            only_b,
            self.paths,
            self.path,
        )

    def _count(self, side: _Side, i: int) -> float:
        return int(side.count[self.nodes[i]].sum()) / side.runs + sum(part.count for part in self.parts[i])

    def _host_us(self, side: _Side, i: int) -> float:
        own = int(side.host_ns[self.nodes[i]].sum()) / 1000 / side.runs
        return own + sum(part.host_us for part in self.parts[i])

    def _device_us(self, side: _Side, i: int) -> float:
        own = int(side.device_ns[self.nodes[i]].sum()) / 1000 / side.runs
        return own + sum(part.device_us for part in self.parts[i])

    def _own_kernels(self, sides: list[_Side], i: int) -> list[Part]:
        """Kernels that these nodes run on one side alone."""
        other = self.kernels[1 - i]
        return [
            Part(name, count / sides[i].runs, 0.0, ns / 1000 / sides[i].runs)
            for name, (count, ns) in self.kernels[i].items()
            if name not in other
        ]


def _longest_first(part: Part) -> tuple[float, float, str]:
    return -part.device_us, -part.host_us, part.name


def _places(a: _Side, b: _Side) -> Iterator[_Found]:
    """Walks both trees from the top: nodes of the same name are matched; what is left stands beside what is left on the other side
    between the same matched neighbours."""
    stack: list[tuple[int, int, tuple[str, ...]]] = [(_ROOT, _ROOT, ())]
    while stack:
        i, j, above = stack.pop()
        path = (*above, a.names[i]) if i != _ROOT else above
        found = _Found(a.names[i], path, SAME, ([i], [j]), ([], []), largest=_size(a, i) + _size(b, j))
        found.kernels[0].update(a.kernels[i])
        found.kernels[1].update(b.kernels[j])
        yield found
        of_b = {b.names[node]: node for node in b.children[j]}
        matched = {
            a.names[node]: (node, of_b[a.names[node]]) for node in a.children[i] if a.names[node] in of_b
        }
        stack += [(x, y, path) for x, y in reversed(list(matched.values()))]
        groups: dict[str, tuple[list[Part], list[Part]]] = {}  # by the matched neighbour before
        for which, (side, node) in enumerate(((a, i), (b, j))):
            neighbour = ""
            for child in side.children[node]:
                if side.names[child] in matched:
                    neighbour = side.names[child]
                else:
                    groups.setdefault(neighbour, ([], []))[which].append(side.part(child))
        for parts in groups.values():
            for group in _by_category(*parts):
                status = REPLACED if group[0] and group[1] else GONE if group[0] else ADDED
                size = sum(part.device_us + part.host_us for side_parts in group for part in side_parts)
                yield _Found(a.names[i], path, status, ([], []), group, largest=size)


def _by_category(only_a: list[Part], only_b: list[Part]) -> list[tuple[list[Part], list[Part]]]:
    """What each side alone has, apart by the kind of work where both have several: convolutions beside convolutions."""
    if len(only_a) < 2 or len(only_b) < 2:
        return [(only_a, only_b)]
    kinds = [{category(part.name) for part in parts} for parts in (only_a, only_b)]
    shared = sorted((kinds[0] & kinds[1]) - {"other", "autograd"})
    groups = [
        ([p for p in only_a if category(p.name) == kind], [p for p in only_b if category(p.name) == kind])
        for kind in shared
    ]
    rest_a, rest_b = ([p for p in parts if category(p.name) not in shared] for parts in (only_a, only_b))
    return [*groups, (rest_a, rest_b)] if rest_a or rest_b else groups


def _size(side: _Side, node: int) -> float:
    return float(side.device_ns[node] + side.host_ns[node]) / 1000 / side.runs


def _merged(places: list[_Found]) -> dict[tuple[object, ...], _Found]:
    """The same finding in several places of the tree (layers, blocks) is one."""
    merged: dict[tuple[object, ...], _Found] = {}
    for place in places:
        names = tuple(tuple(sorted(part.name for part in parts)) for parts in place.parts)
        key = (place.name, place.status, *names)
        known = merged.get(key)
        if known is None:
            merged[key] = place
            continue
        for mine, more in zip(known.nodes, place.nodes):
            mine += more
        for own, further in zip(known.parts, place.parts):
            own[:] = _added(own, further)
        for own_kernels, further_kernels in zip(known.kernels, place.kernels):
            for name, (count, ns) in further_kernels.items():
                before = own_kernels.get(name, (0, 0))
                own_kernels[name] = before[0] + count, before[1] + ns
        known.paths += 1
        if place.largest > known.largest:
            known.largest, known.path = place.largest, place.path
    return merged


def _added(parts: list[Part], more: list[Part]) -> list[Part]:
    """Parts of the same names, their values added."""
    by_name = {part.name: part for part in parts}
    for part in more:
        known = by_name[part.name]
        by_name[part.name] = Part(
            part.name,
            known.count + part.count,
            known.host_us + part.host_us,
            known.device_us + part.device_us,
        )
    return list(by_name.values())


def as_dict(place: Place) -> dict[str, object]:
    """A place as plain values with stable keys; times in microseconds."""
    values: dict[str, object] = {"name": place.name, "status": place.status}
    for name, change in (("count", place.count), ("host", place.host), ("device", place.device)):
        unit = "" if name == "count" else "_us"
        values |= {
            f"{name}_a{unit}": change.a,
            f"{name}_b{unit}": change.b,
            f"{name}_delta{unit}": change.delta,
        }
    for side, parts in (("only_a", place.only_a), ("only_b", place.only_b)):
        values[side] = [vars(part) for part in parts]
    return {**values, "paths": place.paths, "path": list(place.path)}
