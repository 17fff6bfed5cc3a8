"""Event objects: times of their own, sums of rows, and torch's old names."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_traces import linear_with_synthetic_ops

from mindtorch_prof.averages import Spread
from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_prof.torch_api.function_events import FunctionEvent, FunctionEventAvg
from mindtorch_prof.torch_api.results import Results


def event(name: str, start: float, end: float, **fields: Any) -> FunctionEvent:
    return FunctionEvent(0, name, 1, start, end, **fields)


def test_the_time_of_an_event_itself_is_that_outside_of_its_children() -> None:
    outer = event("linear", 0, 100, cpu_memory_usage=64, use_device="cuda")
    inner = event("mm", 10, 40, cpu_memory_usage=48, use_device="cuda")
    outer.append_cpu_child(inner)
    inner.append_kernel("gemm", 0, 25.0)
    assert (outer.self_cpu_time_total, outer.self_cpu_memory_usage) == (70, 16)
    assert (outer.device_time_total, outer.self_device_time_total) == (25.0, 0.0)
    assert (inner.device_time_total, inner.self_device_time_total) == (25.0, 25.0)


def test_a_kernel_has_device_time_and_neither_children_nor_kernels() -> None:
    kernel = event("gemm", 0, 30, device_type=DeviceType.CUDA, use_device="cuda")
    assert (kernel.cpu_time_total, kernel.device_time_total) == (0, 30)
    with pytest.raises(AssertionError, match="Expected device_type to be CPU"):
        kernel.append_kernel("another", 0, 1.0)
    with pytest.raises(AssertionError, match="Expected child device_type to be CPU"):
        event("mm", 0, 100).append_cpu_child(kernel)


def test_a_row_adds_up_events_of_one_key_and_refuses_others() -> None:
    row = FunctionEventAvg()
    for one in (event("mm", 0, 10, flops=5), event("mm", 20, 50, flops=None)):
        row += one
    assert (row.key, row.count, row.cpu_time_total, row.cpu_time, row.flops) == ("mm", 2, 40, 20.0, 5)
    with pytest.raises(AssertionError, match="Expected keys to match, but got add vs mm"):
        row.add(event("add", 0, 1))
    with pytest.raises(AssertionError, match="Expected other to be a FunctionEvent"):
        row.add(FakeRow())


class FakeRow:
    key = "mm"


@pytest.mark.parametrize("name", ["cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"])
def test_old_names_warn_as_torch_does_and_give_the_value_of_the_new_name(name: str) -> None:
    one = event("mm", 0, 10, use_device="cuda", device_memory_usage=8)
    one.append_kernel("gemm", 0, 25.0)
    new = name.replace("cuda", "device")
    with pytest.warns(FutureWarning, match=f"`{name}` is deprecated. Use `{new}` instead."):
        value = getattr(one, name)
    assert value == getattr(one, new) > 0


def test_synthetic_calls_do_not_lower_the_average_time() -> None:
    results = Results(linear_with_synthetic_ops())
    row = next(row for row in results.key_averages() if row.key == "aten::t")
    assert (row.count, row.synthetic_count, row.cpu_time_total, row.cpu_time) == (3, 2, 2.0, 2.0)
    assert row.stats == Spread(2.0, 2.0, 2.0, 2.0, 0.0, 2.0)
    events = [event for event in results.events if event.name == "aten::t"]
    assert [(event.is_synthetic, event.cpu_time) for event in events] == [
        (True, 0.0),
        (False, 2.0),
        (True, 0.0),
    ]
    total = FunctionEventAvg()
    for event in events:
        total += event
    assert (total.count, total.synthetic_count, total.cpu_time) == (3, 2, 2.0)
