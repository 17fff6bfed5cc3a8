"""Advice: ranked by the time at stake, the same of a recording and its file, none where nothing is to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from device_program import DeviceProgram, one
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.analysis.advice import RULES, advise, review
from mindtorch_prof.analysis.figures import span
from mindtorch_prof.analysis.graph_capture import with_captured_ops
from mindtorch_v2.profiler import profile

ALL: dict[str, Any] = {"with_stack": True, "record_shapes": True}


def test_a_plain_program_gets_no_advice() -> None:
    x = torch.ones(200, 200)
    with profile(**ALL) as prof:
        for _ in range(3):
            (x @ x).relu().sum()
    assert advise(prof) == []


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


def test_idle_time_while_a_batch_is_loaded_counts_once(tmp_path: Path) -> None:
    program = DeviceProgram()
    for step in range(4):
        at = 1000.0 * step
        program.op(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 100, 800, "user_annotation"
        )
        program.kernel("aten::mm", at + 10, at + 20, 200)
    loaded = program.load(tmp_path)
    # each batch begins at 100 and ends at 900; the device is idle from 220 on, until 1020
    assert one(loaded, "loader_wait").at_stake_us == 3 * 680.0
    assert sum(advice.at_stake_us for advice in advise(loaded, 0.0)) == 3 * 800.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "traces/v100_resnet50_train_2021.pt.trace.json.gz",
            ["loader_wait", "tensor_cores_unused", "launch_bound", "zeroed_gradients", "far_from_peak"],
        ),
        (
            "traces/nvidia_ddp_train_nccl.json.gz",
            ["launch_bound", "long_calls", "host_bound"],
        ),
        ("traces/mi300_resnet_ddp_act_checkpoint.json.gz", ["exposed_communication", "far_from_peak"]),
        (
            "traces/h100_qwen_infer_stack_memory.json.gz",
            ["unfused_kernels", "far_from_peak", "kernel_switches"],
        ),
        ("critical_path/alexnet.json.gz", ["long_calls", "launch_bound"]),
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
    assert len(RULES) == 16


@pytest.mark.parametrize(
    "name",
    [
        "traces/v100_resnet50_train_2021.pt.trace.json.gz",
        "traces/nvidia_ddp_train_nccl.json.gz",
        "traces/mi300_resnet_ddp_act_checkpoint.json.gz",
        "traces/h100_qwen_infer_stack_memory.json.gz",
        "traces/torch213_cpu_train_all_on.pt.trace.json.gz",
        "critical_path/alexnet.json.gz",
        "graphs/vllm_piecewise/graph_execution.json.gz",
        "ranks/dlrm_8/rank0.pt.trace.json.gz",
        "ascend/text_level1/rank0_ascend_pt",
        "ascend/db_level1/rank1_ascend_pt",
        "nsys/h100_2gpu_1s.sqlite.gz",
    ],
)
def test_times_at_stake_together_are_no_longer_than_the_recording(name: str, ecosystem: Path) -> None:
    loaded = load(ecosystem / name)
    suggestions = advise(loaded, 0.0)
    begin, end = span(loaded.trace)
    assert 0 < sum(advice.at_stake_us for advice in suggestions) <= (end - begin) / 1000
    assert sum(advice.share for advice in suggestions) <= 1
    for advice in suggestions:
        if advice.step_us is not None and advice.step_without_us is not None:
            assert 0 <= advice.step_without_us <= advice.step_us


_WORK = st.tuples(
    st.sampled_from(
        [
            "ampere_sgemm_128x64_tn",
            "vectorized_elementwise_kernel",
            "nchwToNhwcKernel",
            "ncclDevKernel_AllReduce",
        ]
    ),
    st.integers(0, 500),  # when it is launched
    st.integers(0, 300),  # how much later it starts
    st.integers(0, 400),  # how long it runs
    st.sampled_from([7, 9]),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(work=st.lists(_WORK, min_size=1, max_size=12), loads=st.lists(st.integers(0, 900), max_size=3))
def test_no_time_is_charged_twice_in_any_program(
    work: list[tuple[str, int, int, int, int]], loads: list[int], tmp_path: Path
) -> None:
    program = DeviceProgram()
    for begin in loads:
        program.op(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin, 150, "user_annotation"
        )
    for name, launch, delay, length, stream in work:
        program.kernel("aten::mm", launch, launch + delay, length, name, stream=stream)
    loaded = program.load(tmp_path)
    begin, end = span(loaded.trace)
    total = sum(advice.at_stake_us for advice in advise(loaded, 0.0))
    assert 0 <= total <= (end - begin) / 1000


def test_graph_replays_are_said_to_have_no_ops_and_get_them_from_a_capture(ecosystem: Path) -> None:
    folder = ecosystem / "graphs" / "vllm_piecewise"
    replay, capture = (load(folder / f"graph_{name}.json.gz").trace for name in ("execution", "capture"))
    alone, together = review(replay), review(with_captured_ops(replay, capture))
    assert any("belongs to no op of the trace" in note and "--capture" in note for note in alone.notes)
    assert not any("belongs to no op" in note for note in together.notes)
    assert [advice.code for advice in together.suggestions] == ["far_from_peak"]
    assert together.suggestions[0].evidence[0]["name"] == "aten::addmm"


def test_what_decided_the_step_is_noted(ecosystem: Path) -> None:
    notes = review(load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz")).notes
    assert "ProfilerStep#4, the step of median length of 3: host 99%, communication 1%" in notes[0]
