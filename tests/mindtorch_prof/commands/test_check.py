"""`mindtorch-prof check`: baselines are written and compared, in every format, with exit codes for builds."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from trace_file_builder import noisy_ops

from mindtorch_prof import cli

OPS = {"mm": (2, 200.0), "relu": (3, 80.0), "sum": (1, 60.0)}


def test_the_command_writes_a_baseline_passes_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [noisy_ops(OPS, seed=i).dump(tmp_path / f"good{i}.json") for i in range(2)]
    bad = noisy_ops({**OPS, "mm": (3, 200.0), "erf": (1, 5.0)}).dump(tmp_path / "bad.json.gz")
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
    good = noisy_ops(OPS).dump(tmp_path / "good.json")
    bad = noisy_ops({**OPS, "mm": (3, 200.0)}).dump(tmp_path / "bad.json")
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
    good = noisy_ops(OPS).dump(tmp_path / "good.json")
    try:
        code = cli.main(["check", good, *[good if a == "GOOD" else a for a in arguments]])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
