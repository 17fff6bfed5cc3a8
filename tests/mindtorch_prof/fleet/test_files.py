"""Files of a job: patterns, folders and lists, each file once; what matches nothing is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindtorch_prof.fleet.files import expanded, is_recording_folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (
        "run/a/rank0.json.gz",
        "run/b/rank1.json",
        "run/notes.txt",
        "run/host_1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"traceEvents": []}')
    return tmp_path


ALL = ["run/a/rank0.json.gz", "run/b/rank1.json", "run/host_1_ascend_pt"]


def test_a_folder_stands_for_the_recordings_below_it(run: Path) -> None:
    assert expanded("run") == (ALL, [])
    assert is_recording_folder("run/host_1_ascend_pt")


def test_a_pattern_may_reach_into_folders(run: Path) -> None:
    assert expanded(["run/**/rank*"])[0] == ALL[:2]
    assert expanded(["run/*_ascend_pt", "run/**/*.json"])[0][-1] == "run/host_1_ascend_pt"


def test_a_list_has_one_file_or_pattern_per_line(run: Path) -> None:
    (run / "list.txt").write_text("# the job\nrun/a/*.gz\n\nrun/b\n")
    assert expanded("@list.txt") == (ALL[:2], [])
    assert [each.reason for each in expanded("@no.txt")[1]] == [
        "list of files cannot be read: No such file or directory"
    ]


def test_a_file_that_is_named_twice_is_read_once(run: Path) -> None:
    assert expanded([run / "run/b/rank1.json", "run/b/*.json", "run/b"])[0] == [str(run / "run/b/rank1.json")]


def test_what_matches_nothing_is_named_and_a_missing_file_is_left_to_the_reader(run: Path) -> None:
    (run / "empty").mkdir()
    paths, missing = expanded(["no/*.json", "empty", "gone.json"])
    assert paths == ["gone.json"]
    assert [(each.file, each.reason.split(" (")[0]) for each in missing] == [
        ("no/*.json", "no file matches this pattern"),
        ("empty", "a folder without trace files"),
    ]
