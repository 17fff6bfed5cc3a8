"""Every command on a trace of every format: it works, or refuses in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import captures
import pytest

from mindtorch_prof import cli, load
from mindtorch_prof.analysis.groups import groups

FORMATS: dict[str, Callable[[Path], Path]] = {
    "text": lambda folder: captures.text_capture(folder / "a_ascend_pt"),
    "db": lambda folder: captures.db_capture(folder / "a_ascend_pt"),
    "nsys": lambda folder: captures.nsys_export(folder / "a.sqlite"),
    "folder": lambda folder: captures.db_capture(folder / "ranks" / "a_ascend_pt").parent,
}
# {0}: the trace, {1}: a folder to write to, {2}: another trace
COMMANDS = [
    "summary {0}",
    "summary {0} --format json",
    "show {0}",
    "show {0} --group-by step,category",
    "doctor {0}",
    "tree {0}",
    "diff {0} {0}",
    "report {0} -o {1}/report.html",
    "slice {0} -o {1}/part.json --time 0..50us",
    "slice {0} -o {1}/part.json --name aten::mm",
    "convert {0} --to chrome -o {1}/trace.json",
    "convert {0} --to csv -o {1}/events.csv",
    "convert {0} --to speedscope -o {1}/a.speedscope.json",
    "ranks {0} {2}",
    "query {0} --tables",
    "stacks {0}",
    "check {0} --baseline {0}",
    "advise {0}",
    "merge {0} {2} -o {1}/merged.json",
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_command_takes_every_format(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = FORMATS[name](tmp_path / "one"), FORMATS[name](tmp_path / "two")
    code = cli.main(command.format(path, tmp_path, other).split())
    out, err = capsys.readouterr()
    # doctor and advise answer 1 where they have something to say
    assert code in ((0, 1) if command.startswith(("doctor", "advise")) else (0,)), err
    assert out or err


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(("ranks", "merge", "check"))])
def test_a_folder_of_several_traces_is_refused_in_one_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 1):
        captures.db_capture(tmp_path / f"rank{rank}_ascend_pt")
    assert cli.main(command.format(tmp_path, tmp_path).split()) == 2
    assert (
        "a folder with 2 traces, where one is expected: rank0_ascend_pt, rank1_ascend_pt"
        in capsys.readouterr().err
    )


def test_ranks_and_merge_take_a_folder_of_several_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 1):
        folder = captures.db_capture(tmp_path / f"rank{rank}_ascend_pt")
        info = json.loads((folder / "profiler_info_6.json").read_text())
        (folder / "profiler_info_6.json").write_text(json.dumps({**info, "rank_id": rank}))
    assert cli.main(["ranks", str(tmp_path), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["ranks"]
    assert [row["rank"] for row in rows] == [0, 1]
    assert [row["communication_us"] for row in rows] == [captures.COMMUNICATION_US] * 2
    assert cli.main(["merge", str(tmp_path), "-o", str(tmp_path / "all.json")]) == 0
    assert len(load(tmp_path / "all.json").trace.device) == 2 * 6


@pytest.mark.parametrize("name", ["text", "db", "nsys"])
def test_a_converted_trace_gives_the_same_answers(name: str, tmp_path: Path) -> None:
    path = FORMATS[name](tmp_path)
    out = tmp_path / "again.json.gz"
    assert cli.main(["convert", str(path), "--to", "chrome", "-o", str(out)]) == 0
    first, again = load(path), load(out)
    one, two = groups(first).sort("name"), groups(again).sort("name")
    assert one["name"].tolist() == two["name"].tolist()
    for key in ("self_cpu_time_total", "count", "self_device_time_total"):
        assert one[key].tolist() == pytest.approx(two[key].tolist(), abs=1e-3)
    assert sorted(first.trace.device.kind.tolist()) == sorted(again.trace.device.kind.tolist())
    assert first.trace.settings.device == again.trace.settings.device
    assert first.trace.settings.rank == again.trace.settings.rank


def test_doctor_says_what_a_format_lacks(tmp_path: Path, printed: Callable[..., str]) -> None:
    path = captures.nsys_export(tmp_path / "a.sqlite")
    findings: list[dict[str, Any]] = json.loads(printed("doctor", str(path), "--format", "json", code=1))[
        "rows"
    ]
    lacks = [f for f in findings if f["code"] == "lacks"]
    assert {f["severity"] for f in lacks} == {"info"}
    assert any("nsys" in f["message"] for f in lacks)


def test_ranks_of_a_real_job_communicate_as_long_as_their_own_tables_say(
    ecosystem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ranks", str(ecosystem / "ascend" / "text_level1"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["ranks"]
    assert [(row["rank"], row["communication_us"]) for row in rows] == [
        (0, pytest.approx(105_991.878, abs=0.01)),
        (1, pytest.approx(100_375.286, abs=0.01)),
    ]
