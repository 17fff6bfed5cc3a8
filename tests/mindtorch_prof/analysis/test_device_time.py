"""The time of a device as intervals: those of breakdown and idle causes; they cover the span once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device_program import DeviceProgram

from mindtorch_prof import load
from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.device_time import busiest_device
from mindtorch_prof.analysis.idle_causes import CAUSES
from mindtorch_prof.analysis.intervals import Intervals, union


def length(times: Intervals) -> int:
    return int((times[1] - times[0]).sum())


@pytest.mark.parametrize(
    "name",
    [
        "traces/nvidia_ddp_train_nccl.json.gz",
        "traces/mi300_resnet_ddp_act_checkpoint.json.gz",
        "ascend/text_level1/rank0_ascend_pt",
        "nsys/h100_2gpu_1s.sqlite.gz",
    ],
)
def test_parts_are_those_of_the_breakdown_and_cover_the_span_once(name: str, ecosystem: Path) -> None:
    trace = load(ecosystem / name).trace
    device = busiest_device(trace)
    assert device is not None
    (expected,) = [each for each in device_breakdown(trace) if each.device == device.number]
    causes = [device.caused_by(cause) for cause in range(len(CAUSES))]
    assert length(device.computation) == expected.computation_ns
    assert length(device.exposed_communication) == expected.exposed_communication_ns
    assert length(device.exposed_copies) == expected.exposed_copy_ns
    assert sum(map(length, causes)) == expected.idle_ns
    everything = [device.computation, device.exposed_communication, device.exposed_copies, *causes]
    assert length(union(*(np.concatenate(column) for column in zip(*everything)))) == expected.span_ns


def test_the_device_that_is_busy_longest_is_chosen(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 1, 10, 100)
    program.kernel("aten::mm", 11, 20, 200)
    program.events[-1]["args"]["device"] = 3
    device = busiest_device(program.load(tmp_path).trace)
    assert device is not None
    assert (device.number, device.busy_ns) == (3, 200_000)


def test_without_device_work_there_is_no_device(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.op("aten::mm", 1, 10)
    assert busiest_device(program.load(tmp_path).trace) is None


def test_idle_time_during_events_is_cut_to_the_gaps(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 1, 10, 100)
    program.kernel("aten::mm", 11, 200, 100)
    device = busiest_device(program.load(tmp_path).trace)
    assert device is not None
    start = device.idle.gaps.start_ns[0]
    times = device.idle_during(
        (np.array([start - 50_000, start + 60_000]), np.array([start + 10_000, start + 80_000]))
    )
    assert length(times) == 30_000
