"""Python calls as rows of a trace, and stacks of the backward pass."""

from __future__ import annotations

import numpy as np
from trace_builder import make_device, make_frames, make_trace

from mindtorch_prof.python_rows import with_calls, with_forward_stacks
from mindtorch_prof.trace import BACKWARD_SCOPE, DEVICE_KERNEL, NODE, OP, PYTHON, Trace


def names(trace: Trace) -> list[str]:
    return [trace.names[number] for number in trace.name]


def test_calls_and_events_stand_in_one_order_callers_first() -> None:
    frames = make_frames(("main", 0, 100, -1), ("forward", 10, 50, 0))
    trace = with_calls(make_trace(("aten::mm", 10, 50), ("aten::add", 60, 70), frames=frames))
    assert names(trace) == ["main", "forward", "aten::mm", "aten::add"]
    assert trace.kind.tolist() == [PYTHON, PYTHON, OP, OP]
    assert trace.settings.python_functions


def test_kernels_stay_with_their_ops_when_rows_move() -> None:
    device = make_device(("gemm", 20, 40, 7, DEVICE_KERNEL, 0), ("add", 80, 90, 7, DEVICE_KERNEL, 1))
    frames = make_frames(("main", 0, 100, -1))
    trace = with_calls(make_trace(("aten::mm", 10, 50), ("aten::add", 60, 70), frames=frames, device=device))
    assert [names(trace)[row] for row in trace.device.op] == ["aten::mm", "aten::add"]
    assert trace.device.launch.tolist() == [-1, -1]


def test_a_trace_without_calls_stays_as_it_is() -> None:
    trace = make_trace(("aten::mm", 10, 50))
    assert with_calls(trace) is trace


def test_what_runs_inside_a_backward_node_has_the_stack_of_the_forward_op() -> None:
    trace = make_trace(
        ("aten::mm", 0, 10, 1, OP, 5),
        ("aten::add", 10, 20, 1, OP, 6),
        ("MmBackward0", 100, 150, 1, NODE, 5),
        ("aten::t", 110, 120, 1),
        ("LostBackward0", 200, 210, 1, NODE, 9),
        scope=np.array([0, 0, BACKWARD_SCOPE, 0, BACKWARD_SCOPE], np.int8),
        stack=np.array([0, 1, -1, 1, 1], np.int32),
        stacks=(("model.py(3): forward",), ("loss.py(9): loss",)),
    )
    assert with_forward_stacks(trace).stack.tolist() == [0, 1, 0, 0, -1]
