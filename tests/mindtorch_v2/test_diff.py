"""Diffs: what differs between two traces is told, noise is not; swapping the sides changes signs only."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import MadeTrace, training

import mindtorch_v2 as torch
from mindtorch_prof import cli
from mindtorch_prof.analysis import noise
from mindtorch_prof.analysis.diff import Change, Row, diff
from mindtorch_prof.analysis.noise import compare, rank_test
from mindtorch_prof.load import load
from mindtorch_v2.profiler import profile

VALUES = ("count", "self_cpu", "cpu", "self_device", "device", "memory", "flops", "kernels")
OPPOSITE = {"added": "gone", "gone": "added", "slower": "faster", "faster": "slower"}


def made(ops: list[tuple[str, int, int]], steps: int = 0) -> MadeTrace:
    """A trace of (name, calls, microseconds of each), repeated in every step."""
    trace = MadeTrace()
    at = 0.0
    for step in range(max(steps, 1)):
        begun = at
        for name, calls, length in ops:
            for call in range(calls):
                # repeats differ a little, as they do in life
                trace.op(name, at + 1, length + (step * 7 + call * 3) % 5 * 0.1)
                at += length + 2
        if steps:
            trace.step(step, begun, at - begun + 1)
            at += 2
    return trace.close(at + 10)


def opened(trace: MadeTrace, folder: Path, name: str) -> Any:
    return load(trace.dump(folder / name))


def by_name(found: Any) -> dict[str, Row]:
    return {row.name: row for row in found.rows}


# --------------------------------------------------------------------------------------- what is told


def test_ops_added_gone_slower_faster_and_called_more_often_are_told(tmp_path: Path) -> None:
    a = opened(
        made([("same", 1, 50), ("slow", 1, 50), ("fast", 1, 50), ("often", 1, 5), ("old", 1, 5)], 8),
        tmp_path,
        "a.json",
    )
    b = opened(
        made([("same", 1, 50), ("slow", 1, 90), ("fast", 1, 20), ("often", 3, 5), ("new", 2, 5)], 8),
        tmp_path,
        "b.json",
    )
    found = diff(a, b)
    assert {row.name: row.status for row in found.findings if row.name != "ProfilerStep*"} == {
        "slow": "slower",
        "fast": "faster",
        "often": "calls",
        "new": "added",
        "old": "gone",
    }
    rows = by_name(found)
    assert rows["slow"].self_cpu.delta == pytest.approx(40)
    assert rows["slow"].time.relative == pytest.approx(0.8, rel=0.01)
    assert (rows["often"].count.a, rows["often"].count.b) == (1, 3)
    assert found.per == "step"
    assert found.steps == (8, 8)


def test_values_are_per_step_whatever_the_number_of_steps(tmp_path: Path) -> None:
    ops = [("mm", 2, 40), ("relu", 3, 10)]
    found = diff(opened(made(ops, 12), tmp_path, "a.json"), opened(made(ops, 6), tmp_path, "b.json"))
    assert not found
    assert by_name(found)["mm"].count == Change(2, 2)


def test_a_few_slow_steps_among_many_are_noise(tmp_path: Path) -> None:
    a, b = made([("mm", 1, 50), ("relu", 1, 10)], 10), made([("mm", 1, 50), ("relu", 1, 10)], 10)
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
    a = made([(name, 1, 100 + 5 * i) for i, name in enumerate(names)], 8)
    b = made([(name, 1, round((100 + 5 * i) * 1.2)) for i, name in enumerate(names)], 8)
    found = diff(opened(a, tmp_path, "a.json"), opened(b, tmp_path, "b.json"))
    assert found.shift == pytest.approx(1.2, rel=0.01)
    assert [row.name for row in found.findings if row.name.startswith("op")] == []


def test_a_comparison_per_step_needs_steps(tmp_path: Path) -> None:
    plain = opened(made([("mm", 1, 5)]), tmp_path, "a.json")
    with pytest.raises(ValueError, match="neither trace has steps"):
        diff(plain, plain, per="step")
    with pytest.raises(ValueError, match="cannot group by 'colour'"):
        diff(plain, plain, by=("op", "colour"))


# --------------------------------------------------------------------------------------- laws

sides = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 3), st.integers(1, 90)),
    max_size=5,
    unique_by=lambda op: op[0],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diff")


@settings(max_examples=40, deadline=None)
@given(first=sides, second=sides, steps=st.sampled_from([(0, 0), (5, 5), (5, 7), (0, 4)]))
def test_swapping_the_sides_changes_signs_only_and_totals_add_up(
    folder: Path, first: list, second: list, steps: tuple[int, int]
) -> None:
    a, b = opened(made(first, steps[0]), folder, "a.json"), opened(made(second, steps[1]), folder, "b.json")
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


floats = st.lists(st.floats(1, 100), min_size=1, max_size=25).map(np.array)


@settings(deadline=None)
@given(a=floats, b=floats)
def test_comparing_repeats_is_symmetric_and_equal_ones_never_differ(a: np.ndarray, b: np.ndarray) -> None:
    forth, back = compare(a, b), compare(b, a)
    assert forth.delta == -back.delta
    assert replace(forth, a=0, b=0, delta=0, repeats=(0, 0)) == replace(
        back, a=0, b=0, delta=0, repeats=(0, 0)
    )
    assert not compare(a, a).significant()
    assert forth.p is None or 0 <= forth.p <= 1


@given(a=floats, b=floats)
@settings(max_examples=25, deadline=None)
def test_the_rank_test_gives_scipys_p_value(a: np.ndarray, b: np.ndarray) -> None:
    from scipy import stats  # a dependency of the package

    tied = len(np.unique(np.concatenate([a, b]))) < len(a) + len(b)
    if len(np.unique(np.concatenate([a, b]))) == 1:
        assert rank_test(a, b) == 1
        return
    exact = not tied and max(len(a), len(b)) <= 20
    expected = stats.mannwhitneyu(a, b, method="exact" if exact else "asymptotic").pvalue
    assert rank_test(a, b) == pytest.approx(expected, rel=1e-6)


def test_equal_programs_are_told_apart_once_in_a_hundred_times_at_most() -> None:
    random = np.random.default_rng(0)
    told = sum(compare(random.gamma(9, 10, 8), random.gamma(9, 10, 8)).significant() for _ in range(1000))
    assert told <= 10


# --------------------------------------------------------------------------------------- the command


def test_the_command_prints_what_differs_and_fails_only_when_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = training(6).dump(tmp_path / "a.json"), training(6, slow=2, extra=True).dump(tmp_path / "b.json.gz")
    assert cli.main(["diff", a, b]) == 0
    text = capsys.readouterr().out
    assert "per step: 6 steps in A, 6 in B" in text
    assert "noise floor:" in text
    assert [line.split()[:2] for line in text.splitlines() if "aten::erf" in line] == [["added", "aten::erf"]]
    assert cli.main(["diff", a, b, "--fail-on-change"]) == 1
    assert cli.main(["diff", a, a, "--fail-on-change"]) == 0
    assert "no differences" in capsys.readouterr().out


def test_the_command_gives_json_csv_and_markdown_with_stable_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = training(6).dump(tmp_path / "a.json"), training(6, extra=True).dump(tmp_path / "b.json")
    cli.main(["diff", a, b, "--format", "json", "--by", "op,shape"])
    data = json.loads(capsys.readouterr().out)
    assert data["differences"] == len(data["rows"])
    added = [row for row in data["rows"] if row["op"] == "aten::erf"]
    assert [(row["status"], row["count_a"], row["count_b"]) for row in added] == [("added", 0, 1)]
    cli.main(["diff", a, b, "--format", "csv", "--top", "1"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("status,op,count_a,count_b,count_delta,self_cpu_a")
    assert len(rows) == 1
    cli.main(["diff", a, a, "--format", "md"])
    assert "no differences" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--by", "colour"], ["--threshold", "much"], ["--per", "step"]])
def test_the_command_refuses_what_it_cannot_do(arguments: list[str], tmp_path: Path) -> None:
    a = made([("mm", 1, 5)]).dump(tmp_path / "a.json")
    try:
        code = cli.main(["diff", a, a, *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2


def test_a_file_that_is_no_trace_ends_the_command_with_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text("hello")
    assert cli.main(["diff", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 8, 30, 31, 998, 999])
def test_the_noise_floor_uses_students_distribution(freedom: int) -> None:
    from scipy import special  # a dependency of the package

    assert noise._t_quantile(freedom) == pytest.approx(special.stdtrit(freedom, 0.9995), rel=1e-9)
