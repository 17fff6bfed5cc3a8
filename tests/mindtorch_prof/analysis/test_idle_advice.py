"""Rules about idle time: what the host did while the device had nothing to do."""

from __future__ import annotations

from pathlib import Path

from device_program import DeviceProgram, codes, one


def test_a_wait_in_an_op_is_charged_with_the_idle_time_that_follows(tmp_path: Path) -> None:
    program = DeviceProgram()
    for step in range(3):
        at = 1000.0 * step
        program.op(f"ProfilerStep#{step}", at, 999, "user_annotation")
        program.kernel("aten::mm", at + 10, at + 20, 500)
        program.op("aten::item", at + 30, 500)
        program.op("cudaStreamSynchronize", at + 40, 485, "cuda_runtime")
    advice = one(program.load(tmp_path), "synchronisation")
    # from the end of a kernel (520) to the launch of the next (1010), at most as long as the wait lasted
    assert (advice.count, advice.at_stake_us) == (2, 2 * 485.0)
    assert [(row["name"], row["count"], row["total_us"]) for row in advice.evidence] == [
        ("aten::item", 2, 2 * 485.0)
    ]


def test_a_wait_during_which_the_next_work_is_queued_costs_nothing(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 10, 20, 500)
    program.kernel("aten::mm", 20, 520, 500)
    program.op("cudaStreamSynchronize", 40, 485, "cuda_runtime")
    assert codes(program.load(tmp_path)) == []


def test_launches_that_take_longer_than_kernels_are_found(tmp_path: Path) -> None:
    program = DeviceProgram()
    for number in range(100):
        program.kernel("aten::add", 10.0 * number + 2, 10.0 * number + 5, 2)
    advice = one(program.load(tmp_path), "launch_bound")
    assert (advice.count, advice.at_stake_us) == (99, 99 * 8.0)
    assert "2.0 us in the median" in advice.message
    assert [(row["name"], row["count"]) for row in advice.evidence] == [("aten::add", 99)]


def test_work_of_the_host_between_launches_is_found_with_what_it_was(tmp_path: Path) -> None:
    program = DeviceProgram()
    for step in range(4):
        program.op(f"ProfilerStep#{step}", 2000.0 * step, 1990, "user_annotation")
        program.op("augment", 2000.0 * step + 100, 1800, "user_annotation")
        program.kernel("aten::mm", 2000.0 * step + 10, 2000.0 * step + 20, 50)
    advice = one(program.load(tmp_path), "host_bound")
    # from the end of a kernel (70) to the op that launches the next (2009)
    assert (advice.count, advice.at_stake_us) == (3, 3 * 1939.0)
    first, *rest = advice.evidence
    assert (first["name"], first["count"], first["total_us"]) == ("augment", 3, 3 * 1800.0)  # over all steps
    assert sum(row["total_us"] for row in rest) == 3 * 139.0  # the steps around it, and nothing


def test_one_op_that_keeps_the_host_is_told_from_slow_launches(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 10, 20, 50)
    program.op("aten::conv2d", 100, 9000)
    program.kernel("aten::cudnn_convolution", 8990, 9010, 50)
    advice = one(program.load(tmp_path), "long_calls")
    assert advice.at_stake_us == 8990 - 100  # from the begin of the op to its launch
    assert advice.evidence[0]["name"] == "aten::conv2d"
    assert one(program.load(tmp_path), "launch_bound").at_stake_us == 20  # the launch itself


def test_pauses_between_queued_kernels_are_found(tmp_path: Path) -> None:
    program = DeviceProgram()
    for number in range(5):
        program.kernel("aten::add", 10.0 * number, 100 + 12.0 * number, 10)
    advice = one(program.load(tmp_path), "kernel_switches")
    assert (advice.count, advice.at_stake_us) == (4, 8.0)
    assert "for 2.0 us in the mean" in advice.message
