"""Build gates: counters fail on the slightest growth, times only beyond their noise; baselines are files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import MadeTrace, training

from mindtorch_prof import cli
from mindtorch_prof.analysis.baseline import make_baseline, read_baseline, write_baseline
from mindtorch_prof.analysis.check import METRICS, check
from mindtorch_prof.load import load


def made(ops: dict[str, tuple[int, float]], steps: int = 6, seed: int = 0) -> MadeTrace:
    """A trace of ops (calls, microseconds) in steps, with some noise of its own."""
    random = np.random.default_rng(seed)
    trace, at = MadeTrace(), 0.0
    for step in range(steps):
        begun = at
        for name, (calls, length) in ops.items():
            for _ in range(calls):
                real = round(length * random.normal(1, 0.02), 3)
                trace.op(name, at + 1, real, shapes=[[8, calls]])
                at = round(at + real + 2, 3)
        trace.memory(begun + 2, 1024 * len(ops), 1024 * len(ops))
        trace.step(step, begun, round(at - begun + 1, 3))
        at = round(at + 2, 3)
    return trace.close(at + 10)


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    def opened(trace: MadeTrace) -> Any:
        return load(trace.dump(tmp_path / "trace.json"))

    return opened


OPS = {"mm": (2, 200.0), "relu": (3, 80.0), "sum": (1, 60.0)}


def failures(report: Any) -> set[tuple[str, str]]:
    return {(f.metric, f.name) for f in report.failures}


def test_the_same_program_passes(opened: Any) -> None:
    report = check([opened(made(OPS, seed=1))], [opened(made(OPS, seed=2))])
    assert report
    assert report.checked["count"] == 4
    assert report.repeats == "6 steps vs 6"
    assert 0 < report.floor < 0.2


def test_one_call_more_fails_its_counter_by_name_and_number(opened: Any) -> None:
    report = check([opened(made({**OPS, "relu": (4, 80.0)}))], [opened(made(OPS))], on=["count"])
    assert [(f.name, f.before, f.after, f.limit) for f in report.failures] == [("relu", 3, 4, 3)]
    assert report.failures[0].sentence() == "relu: count 3 -> 4 (+33.3%; limit 3)"
    assert check([opened(made({**OPS, "relu": (4, 80.0)}))], [opened(made(OPS))], on=["count"], tolerance=0.5)


def test_new_ops_new_shapes_and_more_memory_fail(opened: Any) -> None:
    grown = {**OPS, "sum": (1, 60.0), "erf": (1, 60.0)}
    found = failures(check([opened(made(grown))], [opened(made(OPS))]))
    assert ("ops", "erf") in found
    assert ("peak_memory", "(all)") in found
    other = made(OPS)
    for event in other.events:
        if event["name"] == "sum":
            event["args"]["Input Dims"] = [[9, 9]]
    report = check([opened(other)], [opened(made(OPS))], on=["shapes"])
    assert [(f.name, f.detail, f.before, f.after) for f in report.failures] == [("sum", "[[9, 9]]", 0, 1)]


def test_fewer_calls_and_ops_pass_unless_the_check_is_exact(opened: Any) -> None:
    fewer, whole = opened(made({"mm": (1, 200.0), "relu": (3, 80.0)})), opened(made(OPS))
    assert check([fewer], [whole], on=["ops", "count"])
    exact = check([fewer], [whole], on=["ops", "count"], exact=True)
    assert failures(exact) == {("ops", "sum"), ("count", "mm")}


def test_kernels_are_counted_where_both_sides_have_a_device(opened: Any) -> None:
    more = training(6)
    for step in range(6):
        more.launch(1 + 9 * step, 100 * step + 10, 100 * step + 92, 2)
    report = check([opened(more)], [opened(training(6))], on=["kernels"])
    assert report.failures
    assert check([opened(training(6))], [opened(made(OPS))], on=["kernels"]).skipped == {
        "kernels": "not recorded in the baseline"
    }


def test_a_slower_op_fails_and_noise_does_not(opened: Any) -> None:
    slow = {**OPS, "mm": (2, 260.0)}
    report = check(
        [opened(made(slow, seed=1))], [opened(made(OPS, seed=2))], on=["self_cpu"], max_regression=0.05
    )
    assert failures(report) == {("self_cpu", "mm")}
    found = report.failures[0]
    assert found.change == pytest.approx(0.3, abs=0.05)
    assert found.noise is not None
    assert found.noise < found.after - found.before
    assert check(
        [opened(made(slow, seed=1))], [opened(made(OPS, seed=2))], on=["self_cpu"], max_regression=0.5
    )


def test_several_files_are_repeats_and_their_spread_is_noise(opened: Any) -> None:
    # runs differ by up to 15 % from each other, steps inside a run do not
    runs = [
        opened(made({"mm": (2, 200.0 * factor)}, seed=i))
        for i, factor in enumerate([1.0, 1.15, 0.9, 1.1, 0.95])
    ]
    again = [
        opened(made({"mm": (2, 200.0 * factor)}, seed=9 + i))
        for i, factor in enumerate([1.12, 0.98, 1.05, 1.14, 0.93])
    ]
    report = check(again, runs, on=["self_cpu"])
    assert report.repeats == "5 runs vs 5"
    assert report
    slow = [
        opened(made({"mm": (2, 340.0 * factor)}, seed=9 + i))
        for i, factor in enumerate([1.12, 0.98, 1.05, 1.14, 0.93])
    ]
    assert ("self_cpu", "mm") in failures(check(slow, runs, on=["self_cpu"]))


def test_short_rows_are_not_judged_by_time(opened: Any) -> None:
    report = check([opened(made({"tiny": (1, 20.0)}))], [opened(made({"tiny": (1, 4.0)}))], on=["self_cpu"])
    assert report.checked["self_cpu"] == 0
    assert ("self_cpu", "tiny") in failures(
        check(
            [opened(made({"tiny": (1, 20.0)}))], [opened(made({"tiny": (1, 4.0)}))], on=["self_cpu"], min_us=2
        )
    )


def test_a_baseline_per_step_is_not_compared_with_a_trace_without_steps(opened: Any) -> None:
    plain = MadeTrace()
    plain.op("mm", 1, 100)
    with pytest.raises(ValueError, match="has no steps"):
        check([opened(plain.close(200))], [opened(made(OPS))])


# --------------------------------------------------------------------------------------- baseline files

ops = st.dictionaries(
    st.text(min_size=1, max_size=6),
    st.tuples(st.integers(1, 3), st.floats(1, 300).map(lambda x: round(x, 2))),
    max_size=4,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("check")


@settings(max_examples=30, deadline=None)
@given(some=ops, steps=st.integers(1, 5))
def test_a_baseline_file_reads_back_equal_and_what_it_was_made_of_passes(
    folder: Path, some: dict, steps: int
) -> None:
    trace = load(made(some, steps).dump(folder / "t.json"))
    baseline = make_baseline([trace, trace])
    write_baseline(baseline, folder / "b.json")
    text = (folder / "b.json").read_bytes()
    again = read_baseline(folder / "b.json")
    assert (again.rows, again.total, again.steps, again.has) == (
        baseline.rows,
        baseline.total,
        baseline.steps,
        baseline.has,
    )
    write_baseline(again, folder / "b.json")
    assert (folder / "b.json").read_bytes() == text
    report = check([trace], again, exact=True, on=METRICS)
    assert report
    assert not report.findings


def test_a_baseline_is_small_and_has_a_line_a_row(opened: Any, tmp_path: Path) -> None:
    write_baseline(make_baseline([opened(made(OPS, steps=200))]), tmp_path / "b.json")
    text = (tmp_path / "b.json").read_text()
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert [row[0] for row in data["rows"]] == sorted([*OPS, "ProfilerStep*"])
    assert sum(line.startswith("    [") for line in text.splitlines()) == 4
    assert len(text) < 6000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ('{"format": "mindtorch-prof baseline", "version": 99}', "of version 99"),
        ('{"format": "mindtorch-prof baseline", "version": 1}', "a damaged baseline"),
        ('{"format": "other"}', "not a baseline"),
    ],
)
def test_a_bad_baseline_is_refused_with_its_name_and_the_reason(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=problem) as raised:
        read_baseline(path)
    assert str(path) in str(raised.value)


# --------------------------------------------------------------------------------------- the command


def test_the_command_writes_a_baseline_passes_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [made(OPS, seed=i).dump(tmp_path / f"good{i}.json") for i in range(2)]
    bad = made({**OPS, "mm": (3, 200.0), "erf": (1, 5.0)}).dump(tmp_path / "bad.json.gz")
    base = str(tmp_path / "base.json")
    assert cli.main(["check", *good, "--write-baseline", base]) == 0
    assert cli.main(["check", good[0], "--baseline", base]) == 0
    assert "ok: nothing above the baseline" in capsys.readouterr().out
    assert cli.main(["check", bad, "--baseline", base, "--github", "--junit", str(tmp_path / "j.xml")]) == 1
    text = capsys.readouterr().out
    assert "counters: ops FAILED, count FAILED" in text
    assert "noise floor" in text
    assert f"::error title=count above the baseline::{bad}: mm: count 2 -> 3 (+50.0%25; limit 2)" in text
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert {case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None} >= {
        "ops",
        "count",
    }
    assert cli.main(["check", good[1], "--baseline", good[0]]) == 0  # a trace is a baseline too


def test_the_command_gives_json_and_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = made(OPS).dump(tmp_path / "good.json")
    bad = made({**OPS, "mm": (3, 200.0)}).dump(tmp_path / "bad.json")
    assert cli.main(["check", bad, "--baseline", good, "--format", "json", "--on", "count"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["failures"], data["rows"][0]["name"]) == (False, 1, "mm")
    assert (
        cli.main(
            ["check", bad, "--baseline", good, "--format", "md", "--on", "count", "--tolerance", "count=60%"]
        )
        == 0
    )
    capsys.readouterr()
    assert cli.main(["check", bad, "--baseline", good, "--format", "md", "--on", "count"]) == 1
    assert "| fail | count | mm | 2 | 3 | +50.0% | 2 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--baseline", "missing.json"],
        ["--baseline", "GOOD", "--tolerance", "x=1%"],
        ["--baseline", "GOOD", "--on", "beauty"],
    ],
)
def test_misuse_ends_with_code_2(arguments: list[str], tmp_path: Path) -> None:
    good = made(OPS).dump(tmp_path / "good.json")
    try:
        code = cli.main(["check", good, *[good if a == "GOOD" else a for a in arguments]])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
