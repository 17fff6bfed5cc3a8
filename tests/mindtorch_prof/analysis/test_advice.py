"""Advice: programs with a costly habit get the advice for it, with evidence and time; others get none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from kineto_documents import waiting_device

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.analysis.advice import RULES, Advice, advise
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import core, python_core

ALL: dict[str, Any] = {"with_stack": True, "record_shapes": True}


def codes(source: Any, least: float = 0.0) -> list[str]:
    return [advice.code for advice in advise(source, least)]


def one(source: Any, code: str) -> Advice:
    (match,) = [advice for advice in advise(source, 0.0) if advice.code == code]
    return match


# ---------------------------------------------------------------- live recordings


def test_a_plain_program_gets_no_advice() -> None:
    x = torch.ones(200, 200)
    with profile(**ALL) as prof:
        for _ in range(3):
            (x @ x).relu().sum()
    assert advise(prof) == []


def test_a_loop_over_rows_is_found_with_its_place() -> None:
    x = torch.ones(50, 50)
    with profile(**ALL) as prof:
        for i in range(30):
            x[i].sum()
    advice = one(prof, "indexing_loop")
    assert advice.count == 1
    assert "30 iterations" in advice.message
    assert 0 < advice.share <= 1
    (row,) = advice.evidence
    assert row["name"] == "aten::select"
    assert "test_a_loop_over_rows_is_found_with_its_place" in row["where"]
    events = [e for e in prof.events() if e.activity_type != "python_function"]
    total = sum(e.cpu_time_total for e in events if e.cpu_parent not in events)
    assert 0.5 * total < advice.at_stake_us <= total + 1
    assert row["total_us"] == advice.at_stake_us


def test_few_rows_are_no_loop() -> None:
    x = torch.ones(50, 50)
    with profile(**ALL) as prof:
        for i in range(9):
            x[i].sum()
    assert "indexing_loop" not in codes(prof)


def test_synchronous_loading_is_found() -> None:
    loader = torch.utils.data.DataLoader(torch.ones(40, 10), batch_size=10)
    with profile() as prof:
        for batch in loader:
            batch.sum()
    advice = one(prof, "loader_wait")
    assert advice.count == 5  # and the one that finds nothing left
    assert "num_workers" in advice.advice
    assert advice.evidence[0]["name"] == "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize("stacks", [False, True])
def test_zeroed_gradients_are_found_in_optimizers_and_modules(stacks: bool) -> None:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).sum().backward()
    with profile(with_stack=stacks) as prof:
        optimizer.zero_grad(set_to_none=False)
        model.zero_grad(set_to_none=False)
    assert one(prof, "zeroed_gradients").count == (4 if stacks else 2)
    with profile(with_stack=stacks) as prof:
        optimizer.zero_grad()
    assert "zeroed_gradients" not in codes(prof)


def test_a_bias_before_a_batch_norm_is_found() -> None:
    image = torch.ones(1, 3, 8, 8)
    for bias, expected in ((True, 1), (False, 0)):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3, bias=bias), torch.nn.BatchNorm2d(3))
        with profile(**ALL) as prof:
            model(image)
        assert codes(prof).count("bias_before_norm") == expected
    apart = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3), torch.nn.ReLU(), torch.nn.BatchNorm2d(3))
    with profile(**ALL) as prof:
        apart(image)
    assert "bias_before_norm" not in codes(prof)


def test_thousands_of_tiny_ops_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2)
    ticks = itertools.count(1_000_000, 1_000)
    monkeypatch.setattr(python_core, "clock", lambda: next(ticks))
    monkeypatch.setattr(core, "core", python_core)  # the compiled core has no clock that can be replaced
    monkeypatch.setattr(core, "Core", python_core.Core)
    with profile() as prof:
        for _ in range(1000):
            x.add(x)
    advice = one(prof, "tiny_ops")
    assert 500 <= advice.count <= 1000
    assert advice.evidence[0]["name"] == "aten::add"


def test_advice_comes_by_the_time_at_stake_and_only_if_it_pays() -> None:
    x = torch.ones(50, 50)
    loader = torch.utils.data.DataLoader(torch.ones(40, 10), batch_size=10)
    with profile(**ALL) as prof:
        for i in range(30):
            x[i].sum()
        for batch in loader:
            batch.sum()
    suggestions = advise(prof, 0.0)
    assert [a.at_stake_us for a in suggestions] == sorted((a.at_stake_us for a in suggestions), reverse=True)
    assert advise(prof, 1.01) == []
    assert all(set(row) == {"name", "where", "count", "total_us"} for a in suggestions for row in a.evidence)


def test_an_empty_recording_gets_none() -> None:
    with profile() as prof:
        pass
    assert advise(prof) == []


# ---------------------------------------------------------------- files


def test_a_saved_trace_gets_the_advice_of_the_recording(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3), torch.nn.BatchNorm2d(3))
    x = torch.ones(50, 50)
    with profile(**ALL) as prof:
        model(torch.ones(1, 3, 8, 8))
        for i in range(30):
            x[i].sum()
    prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    live, saved = advise(prof, 0.0), advise(load(tmp_path / "t.json.gz"), 0.0)
    assert {a.code for a in live} == {a.code for a in saved} >= {"indexing_loop", "bias_before_norm"}
    for ours in live:
        (theirs,) = [a for a in saved if a.code == ours.code]
        assert theirs.at_stake_us == pytest.approx(ours.at_stake_us, rel=0.01, abs=1)
        assert [row["name"] for row in theirs.evidence] == [row["name"] for row in ours.evidence]


def test_an_optimizer_of_torch_that_goes_one_by_one_is_found(tmp_path: Path) -> None:
    step = documents.event("Optimizer.step#Adam.step", 0.0, 1000.0, "user_annotation")
    ops = [documents.event("aten::add_", 10.0 * i, 5.0) for i in range(1, 31)]
    advice = one(load(documents.write(tmp_path / "a.json", [step, *ops])), "single_tensor_optimizer")
    assert (advice.count, advice.at_stake_us) == (1, 1000.0)
    together = [*ops, documents.event("aten::_foreach_add_", 900.0, 5.0)]
    assert codes(load(documents.write(tmp_path / "b.json", [step, *together]))) == []


class Device:
    """A file of a program that launches kernels: times in microseconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def op(self, name: str, start: float, length: float, cat: str = "cpu_op") -> None:
        self.events.append(documents.event(name, start, length, cat))

    def kernel(
        self, op: str, launch: float, start: float, length: float, name: str = "gemm", **more: Any
    ) -> None:
        """An op around a launch of 4 us, and the kernel."""
        ids = {"External id": len(self.events), "correlation": len(self.events)}
        self.events += [
            documents.event(op, launch - 1, 6, **ids),
            documents.event("cudaLaunchKernel", launch, 4, "cuda_runtime", **ids),
            documents.kernel(name, start, length, **ids, **more),
        ]

    def load(self, path: Path, **top: Any) -> Any:
        return load(documents.write(path / "device.json", self.events, **top))


def test_a_wait_in_an_op_is_charged_with_the_idle_time_that_follows(tmp_path: Path) -> None:
    program = Device()
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
    program = Device()
    program.kernel("aten::mm", 10, 20, 500)
    program.kernel("aten::mm", 20, 520, 500)
    program.op("cudaStreamSynchronize", 40, 485, "cuda_runtime")
    assert codes(program.load(tmp_path)) == []


def test_launches_that_take_longer_than_kernels_are_found(tmp_path: Path) -> None:
    program = Device()
    for number in range(100):
        program.kernel("aten::add", 10.0 * number + 2, 10.0 * number + 5, 2)
    advice = one(program.load(tmp_path), "launch_bound")
    assert (advice.count, advice.at_stake_us) == (99, 99 * 8.0)
    assert "2.0 us in the median" in advice.message
    assert [(row["name"], row["count"]) for row in advice.evidence] == [("aten::add", 99)]


def test_work_of_the_host_between_launches_is_found_with_what_it_was(tmp_path: Path) -> None:
    program = Device()
    for step in range(4):
        program.op(f"ProfilerStep#{step}", 2000.0 * step, 1990, "user_annotation")
        program.op("augment", 2000.0 * step + 100, 1800, "user_annotation")
        program.kernel("aten::mm", 2000.0 * step + 10, 2000.0 * step + 20, 50)
    advice = one(program.load(tmp_path), "host_bound")
    assert (advice.count, advice.at_stake_us) == (3, 3 * 1950.0)
    assert [(row["name"], row["count"]) for row in advice.evidence] == [("augment", 3)]  # over all steps


def test_one_op_that_keeps_the_host_is_told_from_slow_launches(tmp_path: Path) -> None:
    program = Device()
    program.kernel("aten::mm", 10, 20, 50)
    program.op("aten::conv2d", 100, 9000)
    program.kernel("aten::cudnn_convolution", 8990, 9010, 50)
    advice = one(program.load(tmp_path), "long_calls")
    assert advice.at_stake_us == 9010 - 70
    assert advice.evidence[0]["name"] == "aten::conv2d"
    assert "launch_bound" not in codes(program.load(tmp_path))


def test_idle_time_while_a_batch_is_loaded_counts_once(tmp_path: Path) -> None:
    program = Device()
    for step in range(4):
        at = 1000.0 * step
        program.op(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 100, 800, "user_annotation"
        )
        program.kernel("aten::mm", at + 10, at + 20, 200)
    loaded = program.load(tmp_path)
    assert codes(loaded) == ["loader_wait"]
    # each batch begins at 100 and ends at 900; the device is idle from 220 on
    assert one(loaded, "loader_wait").at_stake_us == 3 * 680.0


def test_communication_without_computation_is_found(tmp_path: Path) -> None:
    program = Device()
    program.kernel("aten::mm", 10, 20, 100)
    program.kernel("nccl:all_reduce", 20, 80, 240, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=9)
    program.kernel("aten::mm", 30, 300, 100)
    advice = one(program.load(tmp_path), "exposed_communication")
    assert advice.at_stake_us == 300 - 120
    assert "communication takes 63% of the busy time, and for 75% of it nothing is computed" in advice.message
    assert advice.evidence[0]["where"] == "launched by nccl:all_reduce"


def test_conversions_of_layouts_are_found(tmp_path: Path) -> None:
    program = Device()
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
    program = Device()
    program.kernel("aten::mm", 10, 20, 100, kernel)
    loaded = program.load(tmp_path, deviceProperties=[{"id": 0, **device}])
    assert ("tensor_cores_unused" in codes(loaded)) is expected
    assert ("tensor_cores_unused" in codes(loaded, 1.01)) is False


def test_a_device_that_the_file_does_not_describe_is_known_by_its_kernels(tmp_path: Path) -> None:
    for kernel, expected in (("volta_scudnn_128x64_relu_interior_nn_v1", True), ("some_sgemm_kernel", False)):
        program = Device()
        program.kernel("aten::mm", 10, 20, 100, kernel)
        loaded = program.load(tmp_path, deviceProperties=[])
        assert ("tensor_cores_unused" in codes(loaded)) is expected


def test_elementwise_kernels_are_found_where_they_take_much_of_the_device_time(tmp_path: Path) -> None:
    for length, expected in ((60, True), (10, False)):
        program = Device()
        program.kernel("aten::mm", 10, 20, 100)
        program.kernel("aten::mul", 20, 120, length, "void at::native::vectorized_elementwise_kernel<4>")
        assert ("unfused_kernels" in codes(program.load(tmp_path))) is expected


@pytest.mark.parametrize(
    ("optimizer", "kernel", "expected"),
    [
        ("Adam", "elementwise_kernel", True),
        ("Adam", "void multi_tensor_apply_kernel<TensorListMetadata<4>>", False),  # Apex, and torch's foreach
        ("FusedAdam", "elementwise_kernel", False),
    ],
)
def test_optimizers_that_update_many_parameters_at_once_are_left_alone(
    optimizer: str, kernel: str, expected: bool, tmp_path: Path
) -> None:
    program = Device()
    program.op(f"Optimizer.step#{optimizer}.step", 0, 1000, "user_annotation")
    for number in range(30):
        program.kernel("aten::add_", 10.0 * number + 5, 10.0 * number + 10, 3, kernel)
    assert ("single_tensor_optimizer" in codes(program.load(tmp_path))) is expected


def test_collectives_of_gloo_are_found_where_no_op_runs_meanwhile(tmp_path: Path) -> None:
    events = [
        documents.event("aten::mm", 0, 100),
        documents.event("gloo:all_reduce", 50, 150, "user_annotation", tid=9),
        documents.event("aten::add", 220, 30),
    ]
    advice = one(load(documents.write(tmp_path / "t.json", events)), "exposed_communication")
    assert (advice.count, advice.at_stake_us) == (1, 100.0)


def test_exposed_communication_is_that_of_tracelens(ecosystem: Path) -> None:
    """TraceLens counts only kernels that it links to an op: 47.2 ms of collectives, 38.3 ms exposed."""
    advice = one(
        load(ecosystem / "traces" / "mi300_resnet_ddp_act_checkpoint.json.gz"), "exposed_communication"
    )
    (linked,) = [row for row in advice.evidence if row["where"]]
    assert linked["count"] == 12
    # kernels without an op compute meanwhile as well, so that less is exposed than there
    assert 35_000 < linked["total_us"] < 38_343.2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "traces/v100_resnet50_train_2021.pt.trace.json.gz",
            ["tensor_cores_unused", "loader_wait", "launch_bound", "zeroed_gradients"],
        ),
        (
            "traces/nvidia_ddp_train_nccl.json.gz",
            ["launch_bound", "long_calls", "exposed_communication", "layout_conversion"],
        ),
        ("traces/mi300_resnet_ddp_act_checkpoint.json.gz", ["exposed_communication", "layout_conversion"]),
        ("traces/h100_qwen_infer_stack_memory.json.gz", ["unfused_kernels"]),
        ("critical_path/alexnet.json.gz", ["long_calls", "synchronisation"]),
        ("graphs/vllm_piecewise/graph_execution.json.gz", []),
    ],
)
def test_recorded_traces_get_the_advice_that_a_reader_would_give(
    name: str, expected: list[str], ecosystem: Path
) -> None:
    suggestions = advise(load(ecosystem / name))
    assert [advice.code for advice in suggestions] == expected
    for advice in suggestions:
        assert advice.evidence
        assert advice.advice
        assert 0 < advice.share <= 1
        assert not any("ProfilerStep#" in row["where"] for row in advice.evidence)


def test_copies_from_memory_that_is_not_pinned_are_found(tmp_path: Path) -> None:
    assert "pageable_copies" not in codes(load(waiting_device(tmp_path / "a.json")))
    path = waiting_device(tmp_path / "b.json", memcpy="Memcpy HtoD (Pageable -> Device)")
    advice = one(load(path), "pageable_copies")
    assert (advice.count, advice.at_stake_us) == (3, 90.0)
    assert advice.evidence[0]["name"] == "aten::to"


def test_rules_keep_quiet_on_any_made_up_tree(tmp_path: Path) -> None:
    choose = np.random.default_rng(0)
    names = [
        "aten::select",
        "aten::sum",
        "aten::zero_",
        "aten::conv2d",
        "aten::batch_norm",
        "Optimizer.step#X.step",
    ]
    for number in range(20):
        events = [
            documents.event(
                names[choose.integers(len(names))],
                float(choose.integers(0, 50)),
                float(choose.integers(0, 50)),
                tid=int(choose.integers(1, 3)),
            )
            for _ in range(choose.integers(0, 30))
        ]
        loaded = load(documents.write(tmp_path / f"{number}.json", events))
        for advice in advise(loaded, 0.0):
            assert advice.at_stake_us >= 0
            assert advice.count > 0
    assert len(RULES) == 13
