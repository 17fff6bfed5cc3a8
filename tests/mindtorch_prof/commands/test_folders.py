"""Folders of traces are accepted wherever a trace is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mindtorch_prof import cli
from mindtorch_prof.load.formats import trace_paths

ONE = ["summary", "show", "tree", "doctor", "advise", "stacks"]


@pytest.fixture
def folder(three_steps_path: str, tmp_path: Path) -> Path:
    """A folder with one trace among other files."""
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(three_steps_path, logs / "rank10.json.gz")
    (logs / "config.json").write_text('{"lr": 0.1}')
    (logs / "notes.txt").write_text('{"traceEvents": []}')
    (logs / "broken.json.gz").write_bytes(b"\x1f\x8bnothing")
    return logs


@pytest.mark.parametrize("command", ONE)
def test_the_trace_of_a_folder_is_used(
    command: str, folder: Path, three_steps_path: str, printed: Callable[..., str]
) -> None:
    code = cli.main([command, three_steps_path, *(["--by", "ops"] if command == "stacks" else [])])
    words = [command, str(folder), *(["--by", "ops"] if command == "stacks" else [])]
    printed("explain")
    assert printed(*words, code=code)


def test_commands_that_write_files_take_a_folder(folder: Path, tmp_path: Path) -> None:
    for words in (
        ["slice", str(folder), "-o", str(tmp_path / "a.json")],
        ["convert", str(folder), "--to", "csv", "-o", str(tmp_path / "a.csv")],
        ["report", str(folder), "-o", str(tmp_path / "a.html")],
        ["merge", str(folder), "-o", str(tmp_path / "b.json")],
        ["diff", str(folder), str(folder)],
        ["check", str(folder), "--baseline", str(folder)],
    ):
        assert cli.main(words) == 0


def test_several_traces_are_listed_or_all_taken(
    folder: Path, capsys: pytest.CaptureFixture[str], printed: Callable[..., str]
) -> None:
    shutil.copy(folder / "rank10.json.gz", folder / "rank2.json.gz")
    assert cli.main(["summary", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "a folder with 2 traces, where one is expected: rank2.json.gz, rank10.json.gz" in error
    merged = json.loads(printed("merge", str(folder), "-o", str(folder / "all.json"), "--format", "json"))
    assert len(merged["rows"] if "rows" in merged else merged["files"]) == 2


def test_a_folder_without_traces_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    for words in (["summary"], ["ranks"], ["redact"], ["slice", "-o", str(tmp_path / "out.json")]):
        assert cli.main([words[0], str(tmp_path), *words[1:]]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert error.startswith(f"mindtorch-prof: {tmp_path}: ")


def test_traces_in_folders_below_are_found(folder: Path, tmp_path: Path) -> None:
    assert cli.main(["doctor", str(tmp_path)]) == 0


def test_a_folder_of_torch_npu_is_one_trace(ecosystem: Path) -> None:
    text = ecosystem / "ascend" / "text_level1"
    assert trace_paths([str(text)]) == [str(text / f"rank{i}_ascend_pt") for i in (0, 1)]
    assert trace_paths([str(text / "rank0_ascend_pt")]) == [str(text / "rank0_ascend_pt")]
    assert len(trace_paths([str(ecosystem / "ranks" / "dlrm_8")])) == 8
    names = [Path(path).name for path in trace_paths([str(ecosystem / "traces")])]
    assert "torch213_memory.json" not in names
    assert "torch213_execution_trace.json.gz" not in names
    assert "h100_qwen_infer_stack_memory.json.gz" in names
