"""Every command that prints names, on a trace whose names hold everything that an output could obey."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import pytest

from mindtorch_prof import cli

HIDDEN = [
    c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}
]
FORGED = "\n::error::forged\n##[error]forged\nFORGED LINE"
NAMES = ["".join(HIDDEN[i : i + 12]) + "x" for i in range(0, len(HIDDEN), 12)] + [
    FORGED,
    "::warning::w",
    "=1+1",
    "-1",
    "@x",
]
TABLES = ["show --top 0", "tree --top 0", "summary", "show --group-by step,module,category --top 0"]
COMMANDS = [
    *[f"{table} {{0}} --format {format}" for table in TABLES for format in ("table", "md", "json", "csv")],
    "tree --python --depth 0 --top 0 {0}",
    "doctor {0}",
    "advise {0}",
    "device --top 0 {0}",
    "device --top 0 {0} --format md",
    "roofline --all --top 0 {0}",
    "roofline --all --top 0 {0} --format csv",
    "critical-path --top 0 {0}",
    "critical-path --top 0 --segments {0}",
    "diff {0} {1} --top 0",
    "diff {0} {1} --top 0 --format md",
    "diff {0} {1} --by tree --top 0",
    "check {0} --baseline {1} --top 0",
    "check {0} --baseline {1} --github --top 0 --format md",
    "ranks {0} {1}",
    "fleet --workers 1 {0}",
    "stacks {0} --by ops",
    "stacks {0} --by both",
    "stacks {0} --by python",
    "convert {0} --to csv -o {2}",
    "convert {0} --to csv --table averages -o {2}",
    "query {0} --tables",
    "slice {0} -o {2} --name x",
    "merge {0} {1} -o {2}",
    "redact {0} -o {2}",
]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A trace with hostile names of ops, annotations, modules, kernels and threads; and a faster run."""
    folder = tmp_path_factory.mktemp("hostile")
    return _write(folder / "a.json", 10.0), _write(folder / "b.json", 5.0)


def _write(path: Path, us: float) -> Path:
    events = []
    names = [f"{number}{name}" if number % 2 else name for number, name in enumerate(NAMES)]
    for number, name in enumerate(names):
        start = 100.0 * number
        op = {
            "External id": number,
            "Input Dims": [[2, 3], [3, 4]],
            "Input type": ["float", name],
            "Call stack": name,
        }
        launch = {"correlation": number, "External id": number}
        kernel = {**launch, "device": 0, "stream": 7, "Collective name": name}
        call = {"Python id": number, "Python parent id": None, "Python module id": 0}
        events += [
            _slice(f"nn.Module: {name}", "python_function", start, 9 * us, 1, call),
            _slice(name, "cpu_op", start + 1, 8 * us, 1, op),
            _slice(name, "user_annotation", start, 9 * us, 2, {}),
            _slice("cudaLaunchKernel", "cuda_runtime", start + 2, 1, 1, launch),
            _slice(name, "kernel", start + 4, 2 * us, 7, kernel, pid=0),
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": name}},
        ]
    events.append(_slice("ProfilerStep#1", "user_annotation", 0, 100.0 * len(names), 1, {}))
    top = {"deviceProperties": [{"id": 0, "name": FORGED}], "distributedInfo": {"rank": 0, "backend": FORGED}}
    path.write_text(json.dumps({"schemaVersion": 1, FORGED: FORGED, **top, "traceEvents": events}))
    return path


def _slice(name: str, category: str, start: float, us: float, tid: int, args: object, pid: int = 1) -> object:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": us,
        "args": args,
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_no_hidden_character_and_no_forged_line_is_printed(
    command: str, traces: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out_file = tmp_path / "out.txt"
    words = [word.format(*traces, out_file) for word in command.split()]
    code = cli.main(words)
    out, err = capsys.readouterr()
    assert code in {0, 1}, err
    texts = [out, err] + ([out_file.read_text()] if out_file.suffix == ".txt" and "csv -o" in command else [])
    own = [line for line in out.splitlines() if line.startswith("::error title=")]
    for text in texts:
        left = {f"{ord(c):x}" for c in HIDDEN if c in text} - {"a"}
        assert left == set()
        for line in text.splitlines():
            assert line in own or not line.lstrip().startswith("::")
            assert "##[" not in line
            assert not line.startswith("FORGED LINE")
    assert bool(own) == ("--github" in command)


def test_names_of_columns_in_a_query_are_escaped(
    traces: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    for format in ("table", "md", "json", "csv"):
        sql = 'select name as "a\x1b\u202e" from events'
        assert cli.main(["query", str(traces[0]), sql, "--format", format]) == 0
        out = capsys.readouterr().out
        assert not {c for c in HIDDEN if c in out} - {"\n"}


def test_a_message_about_a_file_shows_its_name_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "\x1b[31m\n::error::x"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert not any(line.startswith("::") for line in err.splitlines())
