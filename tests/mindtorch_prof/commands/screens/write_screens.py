"""The screens: what each command prints in terminals of several widths. To write them after a change:

    PYTHONPATH=src python tests/mindtorch_prof/commands/screens/write_screens.py

`demo` and `run` print times of this machine and are not among them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mindtorch_prof import cli

HERE = Path(__file__).parent
WIDTHS = (60, 80, 100, 140, 200)
SCREENS = {
    "summary": "summary h100.json.gz",
    "file_alone": "dlrm_rank0.json.gz --top 5",
    "show": "show h100.json.gz --top 12",
    "show_stats": "show h100.json.gz --stats --top 8",
    "show_legend": "show h100.json.gz --sort-by p95 --top 3 --legend",
    "show_by_shape": "show h100.json.gz --group-by shape,category --top 8",
    "show_by_step": "show dlrm_rank0.json.gz --group-by step,category --no-name --top 8",
    "tree": "tree h100.json.gz --depth 5 --top 15",
    "doctor": "doctor h100.json.gz",
    "advise": "advise dlrm_rank0.json.gz",
    "advise_kernels": "advise h100.json.gz",
    "diff": "diff h100.json.gz h100_later.json.gz --top 10",
    "diff_by_kernel": "diff h100.json.gz h100_later.json.gz --by kernel --top 10",
    "check": "check h100_later.json.gz --baseline h100.json.gz --top 8",
    "slice": "slice h100.json.gz -o part.json --name aten::mm",
    "merge": "merge dlrm_rank0.json.gz dlrm_rank1.json.gz -o merged.json",
    "redact": "redact h100.json.gz -o clean.json",
    "ranks": "ranks dlrm_rank0.json.gz dlrm_rank1.json.gz",
    "fleet": "fleet dlrm_rank0.json.gz dlrm_rank1.json.gz",
    "device": "device dlrm_rank0.json.gz --top 5",
    "roofline": "roofline h100.json.gz --top 8",
    "critical_path": "critical-path dlrm_rank0.json.gz --top 8",
    "diff_by_tree": "diff h100.json.gz h100_later.json.gz --by tree --top 8",
    "stacks": "stacks h100.json.gz --by ops",
    "convert": "convert h100.json.gz --to csv -o out.csv",
    "query_tables": "query h100.json.gz --tables --top 12",
    "query": "query h100.json.gz '"
    "select name, count(*) as n, sum(duration_us) as us from device group by name order by us desc limit 8'",
    "explain": "explain",
    "explain_column": "explain self_cpu",
    "report": "report h100.json.gz -o report.html",
}
# lines that are data, not a table or a sentence, stay as they are
DATA = ("stacks",)


class Terminal(io.StringIO):
    """Standard output as a terminal."""

    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def folder_of_traces() -> Iterator[None]:
    """A current folder with the traces, which commands may write to."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for path in (HERE / "traces").glob("*.gz"):
            shutil.copy(path, folder)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def screen(name: str, width: int) -> str:
    """What a command prints in a terminal of this width. What differs between machines is masked."""
    variables = {"COLUMNS": str(width), "NO_COLOR": "1"}
    old = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    terminal, errors = Terminal(), io.StringIO()
    try:
        with contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(errors):
            code = cli.main(shlex.split(SCREENS[name]))
    finally:
        for key, value in old.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
    assert code in (0, 1), (name, errors.getvalue())
    text = terminal.getvalue()
    text = re.sub(r"core: \w+", "core: CORE", text)
    text = re.sub(r"\S*/report\.html(\s+)\([\d.]+ MB\)", r"FOLDER/report.html\1(SIZE)", text)
    if name in DATA:
        text = "".join(text.splitlines(keepends=True)[:5])
    return text


def path_of(name: str, width: int) -> Path:
    """The file of a screen."""
    return HERE / name / f"{width}.txt"


def main() -> None:
    """Write all screens."""
    with folder_of_traces():
        for name in SCREENS:
            for width in WIDTHS:
                path = path_of(name, width)
                path.parent.mkdir(exist_ok=True)
                path.write_text(screen(name, width), encoding="utf-8")


if __name__ == "__main__":
    main()
