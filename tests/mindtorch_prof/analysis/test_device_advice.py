"""Rules about devices: what costs device time, and what the host did while the device was idle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from device_program import DeviceProgram, codes, one
from kineto_documents import waiting_device

from mindtorch_prof import load


def test_a_wait_in_an_op_is_charged_with_the_idle_time_that_follows(tmp_path: Path) -> None:
    program = DeviceProgram()
    for step in range(3):
        at = 1000.0 * step
        program.op(f"ProfilerStep#{step}", at, 999, "user_annotation")
        program.kernel("aten::mm", at + 10, at + 20, 500)
        program.op("aten::item", at + 30, 500)
        program.op("cudaStreamSynchronize", at + 40, 485, "cuda_runtime")
    advice = one(program.load(tmp_path), "synchronisation")
    # from the end of a kernel (520) to the start of the next (1020), after the first two steps
    assert (advice.count, advice.at_stake_us) == (2, 1000.0)
    assert [(row["name"], row["count"], row["total_us"]) for row in advice.evidence] == [
        ("aten::item", 2, 1000.0)
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
    assert (advice.count, advice.at_stake_us) == (3, 3 * 1950.0)
    assert [(row["name"], row["count"]) for row in advice.evidence] == [("augment", 3)]  # over all steps


def test_one_op_that_keeps_the_host_is_told_from_slow_launches(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 10, 20, 50)
    program.op("aten::conv2d", 100, 9000)
    program.kernel("aten::cudnn_convolution", 8990, 9010, 50)
    advice = one(program.load(tmp_path), "long_calls")
    assert advice.at_stake_us == 9010 - 70
    assert advice.evidence[0]["name"] == "aten::conv2d"
    assert "launch_bound" not in codes(program.load(tmp_path))


def test_communication_without_computation_is_found(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 10, 20, 100)
    program.kernel("nccl:all_reduce", 20, 80, 240, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=9)
    program.kernel("aten::mm", 30, 300, 100)
    advice = one(program.load(tmp_path), "exposed_communication")
    assert advice.at_stake_us == 300 - 120
    assert "communication takes 63% of the busy time, and for 75% of it nothing is computed" in advice.message
    assert advice.evidence[0]["where"] == "launched by nccl:all_reduce"


def test_conversions_of_layouts_are_found(tmp_path: Path) -> None:
    program = DeviceProgram()
    for number in range(3):
        kernel = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(float const*)"
        program.kernel("aten::cudnn_convolution", 100.0 * number + 5, 100.0 * number + 10, 30, kernel)
        program.kernel("aten::cudnn_convolution", 100.0 * number + 15, 100.0 * number + 40, 30, "conv_fprop")
    advice = one(program.load(tmp_path), "layout_conversion")
    assert (advice.count, advice.at_stake_us) == (3, 90.0)
    assert "channels_last" in advice.advice


@pytest.mark.parametrize(
    ("kernel", "device", "expected"),
    [
        ("ampere_sgemm_128x64_tn", {"name": "NVIDIA A100", "computeMajor": 8}, True),
        (
            "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6>",
            {"name": "Tesla V100", "computeMajor": 7},
            True,
        ),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8",
            {"name": "NVIDIA A100", "computeMajor": 8},
            True,
        ),
        (
            "Cijk_Ailk_Bljk_SB_MT64x64x16_MI32x32x2x1",
            {"name": "AMD Instinct MI300X", "computeMajor": 9},
            True,
        ),
        (
            "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128",
            {"name": "NVIDIA A100", "computeMajor": 8},
            False,
        ),
        ("ampere_s1688gemm_128x128_nn", {"name": "NVIDIA A100", "computeMajor": 8}, False),
        ("Cijk_Alik_Bljk_BBS_BH_MT128x128x32", {"name": "AMD Instinct MI300X", "computeMajor": 9}, False),
        ("volta_sgemm_128x64_nn", {"name": "GeForce GTX 1660", "computeMajor": 7}, False),
        ("maxwell_sgemm_128x64_tn", {"name": "GeForce GTX 1080", "computeMajor": 6}, False),
        (
            "void at::native::vectorized_elementwise_kernel<4, float>",
            {"name": "NVIDIA A100", "computeMajor": 8},
            False,
        ),
    ],
)
def test_products_in_32_bits_are_found_where_there_are_tensor_cores(
    kernel: str, device: dict[str, Any], expected: bool, tmp_path: Path
) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 10, 20, 100, kernel)
    loaded = program.load(tmp_path, deviceProperties=[{"id": 0, **device}])
    assert ("tensor_cores_unused" in codes(loaded)) is expected
    assert ("tensor_cores_unused" in codes(loaded, 1.01)) is False


def test_a_device_that_the_file_does_not_describe_is_known_by_its_kernels(tmp_path: Path) -> None:
    for kernel, expected in (("volta_scudnn_128x64_relu_interior_nn_v1", True), ("some_sgemm_kernel", False)):
        program = DeviceProgram()
        program.kernel("aten::mm", 10, 20, 100, kernel)
        loaded = program.load(tmp_path, deviceProperties=[])
        assert ("tensor_cores_unused" in codes(loaded)) is expected


def test_elementwise_kernels_are_found_where_they_take_much_of_the_device_time(tmp_path: Path) -> None:
    for length, expected in ((60, True), (10, False)):
        program = DeviceProgram()
        program.kernel("aten::mm", 10, 20, 100)
        program.kernel("aten::mul", 20, 120, length, "void at::native::vectorized_elementwise_kernel<4>")
        assert ("unfused_kernels" in codes(program.load(tmp_path))) is expected


def test_exposed_communication_is_that_of_tracelens(ecosystem: Path) -> None:
    """TraceLens counts only kernels that it links to an op: 47.2 ms of collectives, 38.3 ms exposed."""
    advice = one(
        load(ecosystem / "traces" / "mi300_resnet_ddp_act_checkpoint.json.gz"), "exposed_communication"
    )
    (linked,) = [row for row in advice.evidence if row["where"]]
    assert linked["count"] == 12
    # kernels without an op compute meanwhile as well, so that less is exposed than there
    assert 35_000 < linked["total_us"] < 38_343.2


def test_copies_from_memory_that_is_not_pinned_are_found(tmp_path: Path) -> None:
    assert "pageable_copies" not in codes(load(waiting_device(tmp_path / "a.json")))
    path = waiting_device(tmp_path / "b.json", memcpy="Memcpy HtoD (Pageable -> Device)")
    advice = one(load(path), "pageable_copies")
    assert (advice.count, advice.at_stake_us) == (3, 90.0)
    assert advice.evidence[0]["name"] == "aten::to"
