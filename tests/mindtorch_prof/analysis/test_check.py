"""Build gates: counters fail on the slightest growth, times only beyond their noise; baselines are files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trace_file_builder import TraceFileBuilder, noisy_ops, training

from mindtorch_prof.analysis.check import check
from mindtorch_prof.load import load


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[TraceFileBuilder], Any]:
    """A function from the events of a trace file to the trace."""
    return lambda trace: load(trace.dump(tmp_path / "trace.json"))


OPS = {"mm": (2, 200.0), "relu": (3, 80.0), "sum": (1, 60.0)}


def failures(report: Any) -> set[tuple[str, str]]:
    return {(f.metric, f.name) for f in report.failures}


def test_the_same_program_passes(opened: Callable[[TraceFileBuilder], Any]) -> None:
    report = check([opened(noisy_ops(OPS, seed=1))], [opened(noisy_ops(OPS, seed=2))])
    assert report
    assert report.checked["count"] == 4
    assert report.repeats == "6 steps vs 6"
    assert 0 < report.floor < 0.2


def test_one_call_more_fails_its_counter_by_name_and_number(
    opened: Callable[[TraceFileBuilder], Any],
) -> None:
    report = check([opened(noisy_ops({**OPS, "relu": (4, 80.0)}))], [opened(noisy_ops(OPS))], on=["count"])
    assert [(f.name, f.before, f.after, f.limit) for f in report.failures] == [("relu", 3, 4, 3)]
    assert report.failures[0].sentence() == "relu: count 3 -> 4 (+33.3%; limit 3)"
    assert check(
        [opened(noisy_ops({**OPS, "relu": (4, 80.0)}))], [opened(noisy_ops(OPS))], on=["count"], tolerance=0.5
    )


def test_new_ops_new_shapes_and_more_memory_fail(opened: Callable[[TraceFileBuilder], Any]) -> None:
    grown = {**OPS, "sum": (1, 60.0), "erf": (1, 60.0)}
    failed = failures(check([opened(noisy_ops(grown))], [opened(noisy_ops(OPS))]))
    assert ("ops", "erf") in failed
    assert ("peak_memory", "(all)") in failed
    other = noisy_ops(OPS)
    for event in other.events:
        if event["name"] == "sum":
            event["args"]["Input Dims"] = [[9, 9]]
    report = check([opened(other)], [opened(noisy_ops(OPS))], on=["shapes"])
    assert [(f.name, f.detail, f.before, f.after) for f in report.failures] == [("sum", "[[9, 9]]", 0, 1)]


def test_fewer_calls_and_ops_pass_unless_the_check_is_exact(
    opened: Callable[[TraceFileBuilder], Any],
) -> None:
    fewer, whole = opened(noisy_ops({"mm": (1, 200.0), "relu": (3, 80.0)})), opened(noisy_ops(OPS))
    assert check([fewer], [whole], on=["ops", "count"])
    exact = check([fewer], [whole], on=["ops", "count"], exact=True)
    assert failures(exact) == {("ops", "sum"), ("count", "mm")}


def test_kernels_are_counted_where_both_sides_have_a_device(
    opened: Callable[[TraceFileBuilder], Any],
) -> None:
    more = training(6)
    for step in range(6):
        more.launch(1 + 9 * step, 100 * step + 10, 100 * step + 92, 2)
    report = check([opened(more)], [opened(training(6))], on=["kernels"])
    assert report.failures
    assert check([opened(training(6))], [opened(noisy_ops(OPS))], on=["kernels"]).skipped == {
        "kernels": "not recorded in the baseline"
    }


def test_a_slower_op_fails_and_noise_does_not(opened: Callable[[TraceFileBuilder], Any]) -> None:
    slow = {**OPS, "mm": (2, 260.0)}
    report = check(
        [opened(noisy_ops(slow, seed=1))],
        [opened(noisy_ops(OPS, seed=2))],
        on=["self_cpu"],
        max_regression=0.05,
    )
    assert failures(report) == {("self_cpu", "mm")}
    failure = report.failures[0]
    assert failure.change == pytest.approx(0.3, abs=0.05)
    assert failure.noise is not None
    assert failure.noise < failure.after - failure.before
    assert check(
        [opened(noisy_ops(slow, seed=1))],
        [opened(noisy_ops(OPS, seed=2))],
        on=["self_cpu"],
        max_regression=0.5,
    )


def test_several_files_are_repeats_and_their_spread_is_noise(
    opened: Callable[[TraceFileBuilder], Any],
) -> None:
    # runs differ by up to 15 % from each other, steps inside a run do not
    runs = [
        opened(noisy_ops({"mm": (2, 200.0 * factor)}, seed=i))
        for i, factor in enumerate([1.0, 1.15, 0.9, 1.1, 0.95])
    ]
    again = [
        opened(noisy_ops({"mm": (2, 200.0 * factor)}, seed=9 + i))
        for i, factor in enumerate([1.12, 0.98, 1.05, 1.14, 0.93])
    ]
    report = check(again, runs, on=["self_cpu"])
    assert report.repeats == "5 runs vs 5"
    assert report
    slow = [
        opened(noisy_ops({"mm": (2, 340.0 * factor)}, seed=9 + i))
        for i, factor in enumerate([1.12, 0.98, 1.05, 1.14, 0.93])
    ]
    assert ("self_cpu", "mm") in failures(check(slow, runs, on=["self_cpu"]))


def test_short_rows_are_not_judged_by_time(opened: Callable[[TraceFileBuilder], Any]) -> None:
    report = check(
        [opened(noisy_ops({"tiny": (1, 20.0)}))], [opened(noisy_ops({"tiny": (1, 4.0)}))], on=["self_cpu"]
    )
    assert report.checked["self_cpu"] == 0
    assert ("self_cpu", "tiny") in failures(
        check(
            [opened(noisy_ops({"tiny": (1, 20.0)}))],
            [opened(noisy_ops({"tiny": (1, 4.0)}))],
            on=["self_cpu"],
            min_us=2,
        )
    )


def test_a_baseline_per_step_is_not_compared_with_a_trace_without_steps(
    opened: Callable[[TraceFileBuilder], Any],
) -> None:
    plain = TraceFileBuilder()
    plain.op("mm", 1, 100)
    with pytest.raises(ValueError, match="has no steps"):
        check([opened(plain.close(200))], [opened(noisy_ops(OPS))])
