"""Diffs: what differs between two traces is told, noise is not; swapping the sides changes signs only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_traces import linear_with_synthetic_ops
from trace_file_builder import TraceFileBuilder, repeated_ops, training

import mindtorch_v2 as torch
from mindtorch_prof.analysis.diff import Change, Row, diff
from mindtorch_prof.analysis.figures import figures
from mindtorch_prof.load import load
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_v2.profiler import profile

VALUES = ("count", "self_cpu", "cpu", "self_device", "device", "memory", "flops", "kernels")
OPPOSITE = {"added": "gone", "gone": "added", "slower": "faster", "faster": "slower"}


def opened(trace: TraceFileBuilder, folder: Path, name: str) -> Any:
    return load(trace.dump(folder / name))


def by_name(difference: Any) -> dict[str, Row]:
    return {row.name: row for row in difference.rows}


def test_ops_added_gone_slower_faster_and_called_more_often_are_told(tmp_path: Path) -> None:
    a = opened(
        repeated_ops([("same", 1, 50), ("slow", 1, 50), ("fast", 1, 50), ("often", 1, 5), ("old", 1, 5)], 8),
        tmp_path,
        "a.json",
    )
    b = opened(
        repeated_ops([("same", 1, 50), ("slow", 1, 90), ("fast", 1, 20), ("often", 3, 5), ("new", 2, 5)], 8),
        tmp_path,
        "b.json",
    )
    difference = diff(a, b)
    assert {row.name: row.status for row in difference.findings if row.name != "ProfilerStep*"} == {
        "slow": "slower",
        "fast": "faster",
        "often": "calls",
        "new": "added",
        "old": "gone",
    }
    rows = by_name(difference)
    assert rows["slow"].self_cpu.delta == pytest.approx(40)
    assert rows["slow"].time.relative == pytest.approx(0.8, rel=0.01)
    assert (rows["often"].count.a, rows["often"].count.b) == (1, 3)
    assert difference.per == "step"
    assert difference.steps == (8, 8)


def test_values_are_per_step_whatever_the_number_of_steps(tmp_path: Path) -> None:
    ops = [("mm", 2, 40), ("relu", 3, 10)]
    difference = diff(
        opened(repeated_ops(ops, 12), tmp_path, "a.json"), opened(repeated_ops(ops, 6), tmp_path, "b.json")
    )
    assert not difference
    assert by_name(difference)["mm"].count == Change(2, 2)


def test_a_few_slow_steps_among_many_are_noise(tmp_path: Path) -> None:
    a, b = (
        repeated_ops([("mm", 1, 50), ("relu", 1, 10)], 10),
        repeated_ops([("mm", 1, 50), ("relu", 1, 10)], 10),
    )
    slow = [event for event in b.events if event["name"] == "relu"][3]
    slow["dur"] = 11.9
    assert not diff(opened(a, tmp_path, "a.json"), opened(b, tmp_path, "b.json"))


def test_kernels_and_device_times_are_compared(tmp_path: Path) -> None:
    a, b = opened(training(6), tmp_path, "a.json"), opened(training(6, slow=1.2), tmp_path, "b.json")
    row = by_name(diff(a, b))["aten::addmm"]
    assert (row.kernels.a, row.kernels.b) == (1, 1)
    assert (row.self_device.a, row.self_device.b) == pytest.approx((30, 36))
    assert (row.status, row.by) == ("slower", "self_device")


def test_rows_by_shape_and_module_hold_the_same_total(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = (
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)),
        torch.randn(5, 3),
    )
    with profile(record_shapes=True, with_modules=True, with_stack=True) as prof:
        for _ in range(3):
            model(x)
    totals = {
        by: diff(prof, prof, by).total["self_cpu"].a
        for by in (("op",), ("op", "shape"), ("op", "module", "stack"))
    }
    assert len({round(total, 6) for total in totals.values()}) == 1
    keys = {row.key for row in diff(prof, prof, ("op", "module")).rows}
    assert ("aten::addmm", "Sequential_0.Linear_1") in keys


def test_a_machine_that_is_slower_all_over_is_said_and_not_a_finding_of_every_row(tmp_path: Path) -> None:
    names = [f"op{i}" for i in range(12)]
    a = repeated_ops([(name, 1, 100 + 5 * i) for i, name in enumerate(names)], 8)
    b = repeated_ops([(name, 1, round((100 + 5 * i) * 1.2)) for i, name in enumerate(names)], 8)
    difference = diff(opened(a, tmp_path, "a.json"), opened(b, tmp_path, "b.json"))
    assert difference.shift == pytest.approx(1.2, rel=0.01)
    assert [row.name for row in difference.findings if row.name.startswith("op")] == []


def test_a_comparison_per_step_needs_steps(tmp_path: Path) -> None:
    plain = opened(repeated_ops([("mm", 1, 5)]), tmp_path, "a.json")
    with pytest.raises(ValueError, match="neither trace has steps"):
        diff(plain, plain, per="step")
    with pytest.raises(ValueError, match="cannot group by 'colour'"):
        diff(plain, plain, by=("op", "colour"))


sides = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 3), st.integers(1, 90)),
    max_size=5,
    unique_by=lambda op: op[0],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diff")


@settings(max_examples=40)
@given(first=sides, second=sides, steps=st.sampled_from([(0, 0), (5, 5), (5, 7), (0, 4)]))
def test_swapping_the_sides_changes_signs_only_and_totals_add_up(
    folder: Path, first: list, second: list, steps: tuple[int, int]
) -> None:
    a, b = (
        opened(repeated_ops(first, steps[0]), folder, "a.json"),
        opened(repeated_ops(second, steps[1]), folder, "b.json"),
    )
    forth, back = diff(a, b), diff(b, a)
    assert not diff(a, a)
    assert not diff(b, b)
    other = by_name(back)
    assert set(other) == set(by_name(forth))
    for row in forth.rows:
        mirror = other[row.name]
        assert mirror.status == OPPOSITE.get(row.status, row.status)
        for value in VALUES:
            assert getattr(row, value).delta == pytest.approx(-getattr(mirror, value).delta)
    assert math.log(forth.shift) == pytest.approx(-math.log(back.shift), abs=1e-12)
    if forth.per != "call":
        for value in ("self_cpu", "self_device", "count", "kernels"):
            assert sum(getattr(row, value).a for row in forth.rows) == pytest.approx(forth.total[value].a)
            assert sum(getattr(row, value).delta for row in forth.rows) == pytest.approx(
                forth.total[value].delta, abs=1e-6
            )


def test_synthetic_calls_count_as_calls_and_change_no_time() -> None:
    shown = linear_with_synthetic_ops()
    rows = by_name(diff(as_recorded(shown), shown, per="call"))
    assert (rows["aten::t"].self_cpu.a, rows["aten::t"].self_cpu.b) == (2.0, 2.0)
    rows = by_name(diff(as_recorded(shown), shown))
    assert (rows["aten::t"].count.a, rows["aten::t"].count.b, rows["aten::t"].self_cpu.b) == (1, 3, 2.0)
    assert {name for name, row in rows.items() if row.status == "added"} == {"aten::transpose", "aten::addmm"}
    assert {row.self_cpu.delta for row in rows.values()} == {0.0}


def test_the_device_time_of_a_comparison_is_that_of_the_kernels_once(ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces" / "v100_resnet50_train_2021.pt.trace.json.gz")
    total = diff(loaded, loaded).total["self_device"]
    assert total.a == total.b
    assert total.a * 6 == pytest.approx(figures(loaded).device_work_us)  # six steps


def test_device_time_without_an_op_is_said_to_be_left_out(ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces" / "mi300_resnet_ddp_act_checkpoint.json.gz")
    comparison = diff(loaded, loaded, per="total")
    known = figures(loaded)
    assert comparison.total["self_device"].a == pytest.approx(
        known.device_work_us - known.device_without_op_us
    )
    note = "32% of the first trace's device time belongs to no op and is not compared"
    assert note in comparison.notes
