"""Whether files are of one job: what their facts say, and what `ranks` does with files of two jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fleet_jobs import GLOO, make_job
from trace_file_builder import rank_steps

from mindtorch_prof import fleet
from mindtorch_prof.fleet.same_job import JobFacts, unrelated

NOW = 1_790_000_000 * 10**9
FIRST = JobFacts("a", 2, "nccl", frozenset({"nccl:all_reduce"}), (NOW, NOW + 10**9))
SECOND = replace(FIRST, file="b")


def test_ranks_of_one_job_are_not_unrelated() -> None:
    assert unrelated([FIRST, SECOND]) == ""
    nothing_known = JobFacts("c", None, "", frozenset(), None)
    assert unrelated([nothing_known, replace(nothing_known, file="d")]) == ""


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(SECOND, world_size=8), "the world sizes of a and b are 2 and 8"),
        (replace(SECOND, backend="gloo"), "the backends of a and b are nccl and gloo"),
        (
            replace(SECOND, world_size=None, collectives=frozenset({"gloo:broadcast"})),
            "a and b have no collective in common (nccl:all_reduce in one, gloo:broadcast in the other)",
        ),
        (
            replace(SECOND, world_size=None, collectives=frozenset()),
            "a has collectives (nccl:all_reduce) and b has none",
        ),
        (replace(SECOND, window_ns=(NOW + 3 * 86400 * 10**9,) * 2), "a and b were recorded 3 days apart"),
    ],
)
def test_files_of_two_jobs_are_told_by_what_differs(other: JobFacts, reason: str) -> None:
    assert unrelated([FIRST, other]) == reason
    assert bool(unrelated([other, FIRST]))


def test_clocks_that_differ_a_little_are_no_reason() -> None:
    assert unrelated([FIRST, replace(SECOND, window_ns=(NOW + 5 * 10**9, NOW + 6 * 10**9))]) == ""


def test_files_of_two_jobs_get_rows_and_a_sentence_instead_of_a_verdict(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    one, two = rank_steps(0, 90), rank_steps(1, 160)
    two.top["distributedInfo"]["world_size"] = 16
    paths = [one.dump(tmp_path / "one.json"), two.dump(tmp_path / "two.json")]
    report = fleet(paths)
    assert (len(report.rank_rows()), report.verdict.straggler, report.findings) == (2, None, ())
    text = " ".join(printed("ranks", *map(str, paths)).split())
    assert "no verdict: the files are not ranks of one job: the world sizes of one.json and two.json" in text
    assert "holds the others up" not in text


def test_recorded_ranks_of_one_job_get_a_verdict_and_those_of_two_do_not(ecosystem: Path) -> None:
    ranks = ecosystem / "ranks"
    assert fleet(sorted((ranks / "dlrm_8").glob("*.gz"))).verdict.straggler == 7
    assert "no verdict" not in fleet(sorted((ranks / "hta_2_of_128").glob("*.gz"))).verdict.sentence
    of_two_jobs = [ranks / "dlrm_8" / "rank0.pt.trace.json.gz", ranks / "hta_2_of_128" / "rank-1.json.gz"]
    assert "8 and 128" in fleet(of_two_jobs).verdict.sentence


def test_files_of_one_rank_and_two_jobs_are_not_joined_silently(tmp_path: Path) -> None:
    make_job(tmp_path / "first", GLOO, 2, 2)
    make_job(tmp_path / "second", GLOO, 3, 2, clock_us=10**9)  # other times: its rank 1 is not refused
    files = [*sorted((tmp_path / "first").glob("*.gz")), tmp_path / "second" / "rank1.json.gz"]
    verdict = fleet(files, workers=1).verdict
    assert verdict.straggler is None
    assert verdict.sentence.startswith("no verdict: the files are not ranks of one job: the world sizes of")
