"""torch.profiler._pattern_matcher: anti-patterns that cost time, looked for in event trees of live recordings.

`mindtorch_prof.analysis.advice` gives similar advice for saved traces, with the time at stake. Events are matched by torch's names and
by this library's.
"""

from __future__ import annotations

import bisect
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mindtorch_prof.frames import MODULE_PREFIX, in_torch
from mindtorch_prof.torch_api.basic_evaluation import index_of_first_match, traverse_bfs, traverse_dfs
from mindtorch_prof.torch_api.event_tree import _ProfilerEvent, tree_of_roots
from mindtorch_prof.torch_api.event_tree_fields import (
    _EventType,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _TensorMetadata,
)

from .session import profile

_GUIDE = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html#"
_CONV2D, _BATCH_NORM = MODULE_PREFIX + "Conv2d", MODULE_PREFIX + "BatchNorm2d"
_REPEATED = 10  # so many equal steps are a loop
_ALIGNED = 8  # elements: what tensor cores want dimensions of half precision to be multiples of
_HALF = ("torch.float16", "torch.bfloat16")
_PRODUCTS = ("aten::mm", "aten::bmm", "aten::addmm")
_FILLS = ("aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_")
_NO_DEVICE = "Torch not compiled with CUDA enabled"


class Pattern:
    """Something to look for. A pattern of one's own gives `match`, and a name, a description and a place to read more."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        self.prof = prof
        self.should_benchmark = should_benchmark
        self.name = "Please specify a name for pattern"
        self.description = "Please specify a description for pattern"
        self.url = ""
        if prof.profiler is None or prof.profiler.kineto_results is None:
            raise AssertionError("the profile has not been stopped: there is nothing to match")
        self.event_tree = prof.profiler.kineto_results.experimental_event_tree()
        self.tid_root = _by_thread(self.event_tree)

    @property
    def skip(self) -> bool:
        """Whether the recording lacks what this pattern needs."""
        return False

    def report(self, event: _ProfilerEvent) -> str:
        """What to say of one event that matches."""
        return f"{self.description}\n[Source Code Location] {source_code_location(event)}"

    def eventTreeTraversal(self) -> Iterator[_ProfilerEvent]:
        """The events in the order in which they are looked at."""
        yield from traverse_dfs(self.event_tree)

    def summary(self, events: list[_ProfilerEvent]) -> str:
        """What to say of all events that match."""
        default = f"{self.name}: {len(events)} events matched."
        if self.should_benchmark and hasattr(self, "benchmark"):
            return self.benchmark_summary(events)
        return default

    def benchmark_summary(self, events: list[_ProfilerEvent]) -> str:
        """The same, with the time that the better way would save, measured now."""
        factors = self.benchmark(events)  # type: ignore[attr-defined]
        before = sum(event.duration_time_ns for event in events) / 1e3
        after = sum(factors[input_shapes(event)] * event.duration_time_ns for event in events) / 1e3
        saved, times = before - after, before / after if after else 1.0
        return f"{self.name}: {len(events)} events matched. Total Estimated Speedup: {_format_us(saved)} ({round(times, 2)}X)"

    def match(self, event: _ProfilerEvent) -> bool:
        """Whether an event is what is looked for."""
        raise NotImplementedError

    def matched_events(self) -> list[_ProfilerEvent]:
        """All events that match."""
        if self.skip:
            return []
        kind = type(self)
        may_match = getattr(kind.match, "may_match", None)
        if may_match is None or kind.eventTreeTraversal is not Pattern.eventTreeTraversal:
            return [event for event in self.eventTreeTraversal() if self.match(event)]
        return [event for event in self.named(lambda name: may_match(self, name)) if self.match(event)]

    def named(self, wanted: Callable[[str], bool]) -> list[_ProfilerEvent]:
        """The events whose names are wanted, in the order of a walk: each name is looked at once."""
        tree = tree_of_roots(self.event_tree)
        if tree is None:
            return [event for event in traverse_dfs(self.event_tree) if wanted(event.name)]
        texts, ids = tree.name_columns
        mask = np.array([wanted(text) for text in texts], bool)
        if not mask.any():
            return []
        tree.make_nodes()
        return [tree.nodes[place] for place in tree.preorder[mask[ids[tree.preorder]]].tolist()]

    def root_of(self, event: _ProfilerEvent) -> _ProfilerEvent:
        """The outermost event around one."""
        while event.parent is not None:
            event = event.parent
        return event

    def siblings_of(self, event: _ProfilerEvent) -> tuple[list[_ProfilerEvent], list[_ProfilerEvent]]:
        """The events before and after it that lie in the same one."""
        every, place = self._place_of(event)
        return every[:place], every[place + 1 :]

    def next_of(self, event: _ProfilerEvent) -> _ProfilerEvent | None:
        """The sibling after it."""
        every, place = self._place_of(event)
        return every[place + 1] if place + 1 < len(every) else None

    def prev_of(self, event: _ProfilerEvent) -> _ProfilerEvent | None:
        """The sibling before it."""
        every, place = self._place_of(event)
        return every[place - 1] if place else None

    def _place_of(self, event: _ProfilerEvent) -> tuple[list[_ProfilerEvent], int]:
        """The events that lie in the same one, and where it stands among them."""
        if event.parent is not None:
            every = event.parent.children
            return every, event._node - every[0]._node  # they stand one after the other in their tree
        every = self.tid_root[event.start_tid]
        return every, bisect.bisect_left(every, event._node, key=lambda other: other._node)

    def go_up_until(
        self, event: _ProfilerEvent, predicate: Callable[[_ProfilerEvent], Any]
    ) -> _ProfilerEvent:
        """The innermost event around it, or itself, that fulfils a condition; the outermost if none does."""
        while event.parent is not None and not predicate(event):
            event = event.parent
        return event


def _by_thread(roots: list[_ProfilerEvent]) -> dict[int, list[_ProfilerEvent]]:
    tree = tree_of_roots(roots)
    if tree is not None and len(numbers := set(tree.thread_numbers[: tree.n_roots])) == 1:
        return {numbers.pop(): roots}
    by_thread: dict[int, list[_ProfilerEvent]] = {}
    for event in roots:
        by_thread.setdefault(event.start_tid, []).append(event)
    return by_thread


def _only(may_match: Callable[[Any, str], bool]) -> Callable[[Any], Any]:
    """Declare which names of events a `match` may match; events of other names are skipped. Optional: a `match` without it sees all."""

    def declare(match: Any) -> Any:
        match.may_match = may_match
        return match

    return declare


class NamePattern(Pattern):
    """Events whose name contains a text."""

    def __init__(self, prof: profile, name: str, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.description = f"Matched Name Event: {name}"
        self.name = name

    @_only(lambda self, name: self.name in name)
    def match(self, event: _ProfilerEvent) -> bool:
        return self.name in event.name


class ExtraCUDACopyPattern(Pattern):
    """A tensor that is filled on the CPU and then moved to a device, where it could have been filled."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "Extra CUDA Copy Pattern"
        self.description = "Filled a CPU tensor and immediately moved it to GPU. Please initialize it on GPU."
        self.url = _GUIDE + "create-tensors-directly-on-the-target-device"

    @property
    def skip(self) -> bool:
        return not self.prof.with_stack or not self.prof.record_shapes

    @_only(lambda self, name: name == "aten::to")
    def match(self, event: Any) -> bool:
        if event.name != "aten::to" or not any(_moves_to_device(e) for e in traverse_dfs(event.children)):
            return False
        before = self.prev_of(event)
        while before is not None and before.tag is not _EventType.TorchOp:
            before = before.children[-1] if before.children else None
        if before is None:
            return False
        return any(e.name in _FILLS for e in traverse_dfs([before]))

    def benchmark(self, events: list[_ProfilerEvent]) -> dict[tuple, float]:
        """Refused where there is anything to measure: there is no device to do it on."""
        if events:
            raise AssertionError(_NO_DEVICE)
        return {}


def _moves_to_device(event: Any) -> bool:
    return event.tag is _EventType.Kineto and "emcpy" in event.name and "DtoH" not in event.name


class ForLoopIndexingPattern(Pattern):
    """A loop over the rows of a tensor: ten or more equal steps that begin with `aten::select`."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "For Loop Indexing Pattern"
        self.description = "For loop indexing detected. Vectorization recommended."
        self.visited: set[int] = set()

    def eventTreeTraversal(self) -> Iterator[_ProfilerEvent]:
        """All events that no loop has taken yet, outer ones first."""
        for event in traverse_bfs(self.event_tree):
            if event.id not in self.visited:
                yield event

    def match(self, event: _ProfilerEvent) -> bool:
        if event.name != "aten::select" or event.id in self.visited:
            return False
        _, after = self.siblings_of(event)
        after = [e for e in after if e.tag is not _EventType.Allocation]
        following = index_of_first_match(after, lambda e: e.name == "aten::select")
        if following is None:
            return False
        step = [event.name, *(e.name for e in after[:following])]
        rest = after[following:]
        self.visited.add(event.id)
        steps = 1
        for begin in range(0, len(rest), len(step)):
            part = rest[begin : begin + len(step)]
            if [e.name for e in part] != step:
                break
            steps += 1
            self.visited.update(e.id for e in part)
        return steps >= _REPEATED


class FP32MatMulPattern(Pattern):
    """Products in float32 on a device that could use TF32."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "FP32 MatMul Pattern"
        self.description = (
            "You are currently using GPU that supports TF32. "
            "Please enable TF32 by setting 'torch.backends.cuda.matmul.allow_tf32 = True'"
        )
        self.url = "https://pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-devices"

    @property
    def skip(self) -> bool:
        """Also where nothing ran on a device: there is no TF32 to enable."""
        return not self.prof.record_shapes or not self._on_device()

    def _on_device(self) -> bool:
        tree = tree_of_roots(self.event_tree)
        if tree is not None:
            return bytes([_EventType.Kineto.value]) in tree.kinds
        return any(event.tag is _EventType.Kineto for event in traverse_dfs(self.event_tree))

    @_only(lambda self, name: name in _PRODUCTS)
    def match(self, event: _ProfilerEvent) -> bool:
        if event.tag is not _EventType.TorchOp or event.name not in _PRODUCTS:
            return False
        return event.extra_fields.allow_tf32_cublas is False

    def report(self, event: _ProfilerEvent) -> str:
        return self.description

    def benchmark(self, events: list[_ProfilerEvent]) -> dict[tuple, float]:
        """Refused where there is anything to measure: there is no device to do it on."""
        if events:
            raise AssertionError(_NO_DEVICE)
        return {}


class OptimizerSingleTensorPattern(Pattern):
    """An optimizer that updates one parameter after the other."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "Optimizer Single Tensor Pattern"
        self.optimizers_with_foreach = ["adam", "sgd", "adamw"]
        self.description = (
            "Detected optimizer running with single tensor implementation. "
            "Please enable multi tensor implementation by passing 'foreach=True' into optimizer."
        )
        self.url = ""

    @_only(lambda self, name: name.endswith(tuple(self.optimizers_with_foreach)))
    def match(self, event: _ProfilerEvent) -> bool:
        if any(event.name.endswith(f"_single_tensor_{name}") for name in self.optimizers_with_foreach):
            return True
        # here one function updates in both ways: what it calls tells which
        called = event.name.rsplit(": ", 1)[-1]
        if event.tag is not _EventType.PyCall or called not in self.optimizers_with_foreach:
            return False
        names = [e.name for e in traverse_dfs(event.children) if e.tag is _EventType.TorchOp]
        step = self.go_up_until(event, lambda e: e.name.startswith("Optimizer.step#"))
        if any(e._tree.updates_together(e._node) for e in traverse_dfs(step.children)):
            return False
        return bool(names) and not any(
            name.startswith(("aten::_foreach_", "aten::_fused_")) for name in names
        )


class SynchronizedDataLoaderPattern(Pattern):
    """A DataLoader that loads while the program waits."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "Synchronized DataLoader Pattern"
        self.description = (
            "Detected DataLoader running with synchronized implementation. "
            "Please enable asynchronous dataloading by setting num_workers > 0 when initializing DataLoader."
        )
        self.url = _GUIDE + "enable-async-data-loading-and-augmentation"

    @_only(lambda self, name: name.endswith(": __iter__"))
    def match(self, event: _ProfilerEvent) -> bool:
        if not _is_call(event, os.path.join("utils", "data", "dataloader.py"), "__iter__"):
            return False
        iterator = next((e for e in event.children if e.name.endswith(": _get_iterator")), None)
        constructor = (
            next((e for e in iterator.children if e.name.endswith(": __init__")), None) if iterator else None
        )
        if constructor is None:
            return False
        # the first batch after it is named after the class that loads it
        _, after = self.siblings_of(event)
        names = (e.name for e in traverse_dfs(after) if e.name.startswith("enumerate(DataLoader)#"))
        first = next(names, None)
        if first is not None:
            return "_SingleProcessDataLoaderIter" in first
        return not any("multiprocessing" in e.name for e in traverse_dfs(constructor.children))


def _is_call(event: _ProfilerEvent, file: str, function: str) -> bool:
    return (
        event.tag is _EventType.PyCall and f"{file}(" in event.name and event.name.endswith(f": {function}")
    )


class GradNotSetToNonePattern(Pattern):
    """Gradients that are filled with zeros where they could be dropped."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "Gradient Set To Zero Instead of None Pattern"
        self.description = (
            "Detected gradient set to zero instead of None. "
            "Please add 'set_to_none=True' when calling zero_grad()."
        )
        self.url = _GUIDE + "disable-gradient-calculation-for-validation-or-inference"

    @_only(lambda self, name: name.endswith(": zero_grad"))
    def match(self, event: _ProfilerEvent) -> bool:
        if not event.name.endswith(": zero_grad"):
            return False
        return any(
            inner.name in ("aten::zero_", "aten::_foreach_zero_")
            and (inner.parent is None or inner.parent.name != "aten::zeros")
            for inner in traverse_dfs(event.children)
        )


class Conv2dBiasFollowedByBatchNorm2dPattern(Pattern):
    """A bias that the following batch norm takes away again."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "Enabling Bias in Conv2d Followed By BatchNorm Pattern"
        self.description = (
            "Detected bias enabled in Conv2d that is followed by BatchNorm2d. "
            "Please set 'bias=False' in Conv2d."
        )
        self.url = _GUIDE + "disable-bias-for-convolutions-directly-followed-by-a-batch-norm"

    @property
    def skip(self) -> bool:
        return self.prof.record_shapes is False or super().skip

    @_only(lambda self, name: name == "aten::conv2d")
    def match(self, event: _ProfilerEvent) -> bool:
        if event.name != "aten::conv2d":
            return False
        inputs = event.extra_fields.inputs
        if len(inputs) < 3 or not isinstance(inputs[2], _TensorMetadata):
            return False
        module = self.go_up_until(event, lambda e: e.name.startswith(_CONV2D))
        if not module.name.startswith(_CONV2D):
            return False
        _, after = self.siblings_of(module)
        following = next((e for e in after if e.tag is not _EventType.Allocation), None)
        return following is not None and following.name.startswith(_BATCH_NORM)


class MatMulDimInFP16Pattern(Pattern):
    """Products in half precision of matrices whose sizes are no multiples of eight."""

    def __init__(self, prof: profile, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = "Matrix Multiplication Dimension Not Aligned Pattern"
        self.description = (
            "Detected matmul with dimension not aligned. Please use matmul with aligned dimension."
        )
        self.url = _GUIDE + "use-mixed-precision-and-amp"

    @property
    def skip(self) -> bool:
        return not self.prof.with_stack or not self.prof.record_shapes

    @_only(lambda self, name: name in _PRODUCTS)
    def match(self, event: _ProfilerEvent) -> bool:
        if event.name not in _PRODUCTS:
            return False
        if not any(str(kind) in _HALF for kind in input_dtypes(event)):
            return False
        return any(size % _ALIGNED for shape in input_shapes(event) for size in shape[-2:])

    def benchmark(self, events: list[_ProfilerEvent]) -> dict[tuple, float]:
        """By shapes: how long the product takes with sizes rounded up, in parts of what it takes now, on this machine's CPU."""
        import mindtorch_v2 as torch

        factors = {}
        for shapes, kinds in {(input_shapes(event), input_dtypes(event)) for event in events}:
            pairs = [(shape, kind) for shape, kind in zip(shapes, kinds) if len(shape) >= 2]
            left, right = ([*pairs[i][0]] for i in (0, 1))
            dtype = pairs[0][1]
            wide = [[*s[:-2], *(-(-size // _ALIGNED) * _ALIGNED for size in s[-2:])] for s in (left, right)]
            now = _seconds(torch.ones(left, dtype=dtype), torch.ones(right, dtype=dtype))
            factors[shapes] = _seconds(*(torch.ones(s, dtype=dtype) for s in wide)) / now
        return factors


def _seconds(a: Any, b: Any, least: float = 0.02) -> float:
    """How long a product takes: the best of several, for as long as `least`."""
    best, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < least:
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return best


def _format_us(value: float) -> str:
    from ..autograd.profiler_util import _format_time

    return _format_time(value)


def source_code_location(event: _ProfilerEvent | None) -> str:
    """The innermost line outside the library from which an event was reached, as file:line."""
    called_op = False  # torch shows a call of a C function around most ops, which a Python function makes; here it is not seen
    while event is not None:
        fields = event.extra_fields
        if isinstance(fields, (_ExtraFields_PyCall, _ExtraFields_PyCCall)):
            places = [fields.caller]
            if called_op and isinstance(fields, _ExtraFields_PyCall):
                places = [fields.callsite, fields.caller]
            for place in places:
                if not in_torch(place.file_name):
                    return f"{place.file_name}:{place.line_number}"
        called_op = isinstance(fields, _ExtraFields_TorchOp)
        event = event.parent
    return "No source code location found"


def input_shapes(event: _ProfilerEvent) -> tuple[tuple[int, ...], ...]:
    """The shapes of an op's inputs; () for what is no tensor."""
    if not isinstance(event.extra_fields, _ExtraFields_TorchOp):
        raise AssertionError(f"{event.name} is no op")
    return tuple(tuple(getattr(value, "sizes", ())) for value in event.extra_fields.inputs)


def input_dtypes(event: _ProfilerEvent) -> tuple[Any, ...]:
    """The types of an op's inputs; None for what is no tensor."""
    if not isinstance(event.extra_fields, _ExtraFields_TorchOp):
        raise AssertionError(f"{event.name} is no op")
    return tuple(getattr(value, "dtype", None) for value in event.extra_fields.inputs)


def report_all_anti_patterns(
    prof: Any,
    should_benchmark: bool = False,
    print_enable: bool = True,
    json_report_dir: str | None = None,
) -> None:
    """Print all matches, and write them to torchtidy_report.json by file and line."""
    report: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rule = "-" * 40 + "TorchTidy Report" + "-" * 40
    messages: list[str] = []
    summaries: list[str] = []
    for kind in (
        ExtraCUDACopyPattern,
        FP32MatMulPattern,
        OptimizerSingleTensorPattern,
        SynchronizedDataLoaderPattern,
        GradNotSetToNonePattern,
        Conv2dBiasFollowedByBatchNorm2dPattern,
        MatMulDimInFP16Pattern,
    ):
        pattern = kind(prof, should_benchmark)
        events = pattern.matched_events()
        if not events:
            continue
        summaries.append(pattern.summary(events))
        for event in events:
            message = pattern.report(event)
            if message in messages:
                continue
            messages.append(message)
            file, _, line = source_code_location(event).rpartition(":")
            row = {
                "line_number": int(line) if line.isdigit() else None,
                "name": pattern.name,
                "url": pattern.url,
                "message": pattern.description,
            }
            report[file or "No source code location found"].append(row)
    if json_report_dir is not None:
        path = os.path.join(json_report_dir, "torchtidy_report.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file_:
                report = {**json.load(file_), **report}  # type: ignore[assignment]
        with open(path, "w", encoding="utf-8") as file_:
            json.dump(report, file_, indent=4)
    if print_enable:
        print("\n".join([rule, "Matched Events:", *messages, "Summary:", *summaries, rule]))  # noqa: T201
