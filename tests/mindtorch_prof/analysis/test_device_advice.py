"""Rules about the work of devices: what costs device time, and how much of it is at stake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from device_program import DeviceProgram, codes, one
from kineto_documents import waiting_device

from mindtorch_prof import load
from mindtorch_prof.analysis.advice import advise


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
        program.kernel("aten::cudnn_convolution", 20.0 * number, 100 + 60.0 * number, 30, kernel)
        program.kernel("aten::cudnn_convolution", 20.0 * number + 10, 130 + 60.0 * number, 30, "conv_fprop")
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


def test_copies_that_nothing_overlaps_are_found(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 10, 20, 100)
    for number in range(2):
        program.kernel(
            "aten::copy_", 20.0 * (number + 1), 120 + 50.0 * number, 50, "Memcpy DtoH (Device -> Pinned)"
        )
    program.events[-1]["cat"] = program.events[-4]["cat"] = "gpu_memcpy"
    advice = one(program.load(tmp_path), "exposed_copies")
    assert (advice.count, advice.at_stake_us) == (2, 100.0)


def test_ops_far_from_the_peak_are_found_with_what_they_would_save(tmp_path: Path) -> None:
    """A product of 4096 x 4096 in 16 bits: 137 GFLOP, 139 us at 989 TFLOP/s."""
    program = DeviceProgram()
    program.kernel("aten::mm", 0, 10, 1000)
    shapes = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
    program.events[0]["args"].update(shapes)
    h100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_018_279_936}
    advice = one(program.load(tmp_path, deviceProperties=[h100]), "far_from_peak")
    roof = 2 * 4096**3 / 989.4e12 * 1e6
    assert advice.at_stake_us == pytest.approx(1000 - roof, abs=1)
    assert advice.evidence[0]["where"] == "4096x4096 4096x4096: 14% of the compute peak"


def test_work_beside_the_critical_path_is_not_at_stake(tmp_path: Path) -> None:
    """The host takes 1,000 us per op; that kernels on another stream take long does not matter."""
    program = DeviceProgram()
    for number in range(3):
        program.op("aten::big", 1000.0 * number, 990)
        program.kernel("aten::mm", 1000.0 * number + 10, 1000.0 * number + 20, 900, "volta_sgemm_128x64_nn")
    program.op("aten::big", 3000, 990)
    loaded = program.load(tmp_path, deviceProperties=[])
    advice = [a for a in advise(loaded, 0.0) if a.code == "tensor_cores_unused"]
    assert advice == []  # the recording ends with the host's last op, whatever the kernels take


def test_how_long_the_step_would_take_is_said(tmp_path: Path) -> None:
    program = DeviceProgram()
    program.kernel("aten::mm", 1, 10, 1000, "volta_sgemm_128x64_nn")
    advice = one(program.load(tmp_path, deviceProperties=[]), "tensor_cores_unused")
    assert (advice.step_us, advice.step_without_us) == (1010.0, 10.0)


def test_of_several_devices_the_one_that_advice_is_about_is_named(ecosystem: Path) -> None:
    (advice,) = advise(load(ecosystem / "nsys" / "h100_2gpu_1s.sqlite.gz"))
    assert advice.message == "217 copies run while the device (GPU 0) neither computes nor communicates"
