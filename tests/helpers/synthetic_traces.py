"""Traces with synthetic events for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from trace_builder import make_memory, make_trace
from trace_strategies import nested_traces

from mindtorch_prof.settings import Settings
from mindtorch_prof.synthetic_rows import SyntheticOp, insert
from mindtorch_prof.trace import Trace


def synthetic_op(name: str, depth: int = 1, *, allocates: bool = False) -> SyntheticOp:
    return SyntheticOp(name, "", depth, None, allocates, False)


def linear_with_synthetic_ops() -> Trace:
    """Two aten::linear of 10 us, the first inside an annotation, and an aten::t of 2 us. Inside each
    aten::linear torch shows aten::t > aten::transpose, and aten::addmm, which allocates."""
    recorded = make_trace(
        ("forward", 0, 14_000),
        ("aten::linear", 1_000, 11_000),
        ("aten::t", 12_000, 14_000),
        ("aten::linear", 20_000, 30_000),
        memory=make_memory((5_000, 64, 1), (25_000, 32, 2), (29_000, -64, 1)),
        window_ns=(0, 40_000),
        settings=Settings(profile_memory=True, pid=7, thread=1),
    )
    return insert(
        recorded,
        {
            (recorded.names.index("aten::linear"), -1): [
                synthetic_op("aten::t"),
                synthetic_op("aten::transpose", 2),
                synthetic_op("aten::addmm", allocates=True),
            ]
        },
    )


_CONTENTS = st.lists(st.tuples(st.sampled_from("abxyz"), st.integers(1, 3), st.booleans()), max_size=4)


def _nested(ops: list[tuple[str, int, bool]]) -> list[SyntheticOp]:
    """The ops with depths such that each has a parent, and at most one that allocates."""
    contents: list[SyntheticOp] = []
    for name, depth, allocates in ops:
        deepest = contents[-1].depth + 1 if contents else 1
        allocates = allocates and not any(op.allocates for op in contents)
        contents.append(synthetic_op(name, min(depth, deepest), allocates=allocates))
    return contents


@st.composite
def synthetic_traces(draw: st.DrawFn) -> tuple[Trace, Trace]:
    """A random trace with allocations, and the same with synthetic events inside some of its events."""
    trace = draw(nested_traces())
    times = draw(st.lists(st.integers(0, 60), max_size=6))
    changes = sorted((time, 8 + place, place) for place, time in enumerate(times))
    trace = replace(
        trace,
        memory=make_memory(*changes),
        window_ns=(0, int(np.max(trace.end_ns, initial=0)) + 100),
        settings=Settings(profile_memory=True, pid=7, thread=1),
    )
    contents = {(number, -1): ops for number in range(len(trace.names)) if (ops := _nested(draw(_CONTENTS)))}
    return trace, insert(trace, contents)
