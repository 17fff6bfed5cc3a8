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


def test_waiting_for_a_device_is_charged_to_the_op_that_waits(tmp_path: Path) -> None:
    loaded = load(waiting_device(tmp_path / "d.json"))
    advice = one(loaded, "synchronisation")
    assert (advice.count, advice.at_stake_us) == (3, 750.0)
    assert [(row["name"], row["count"]) for row in advice.evidence] == [("aten::item", 3)]


def test_an_idle_device_is_found_with_what_the_host_did(tmp_path: Path) -> None:
    advice = one(load(waiting_device(tmp_path / "d.json")), "idle_device")
    assert advice.at_stake_us == pytest.approx(2250 - 20 - 3 * 130)
    assert {row["name"] for row in advice.evidence} <= {"aten::item", "aten::to", "aten::mm"}


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
    assert len(RULES) == 9
