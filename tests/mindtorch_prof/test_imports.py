"""Imports: the engine needs nothing of the library, its arrows point one way, and it is light."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fact_files import FACTS

SOURCE = Path(__file__).parents[2] / "src"
TRACE = FACTS / "torch_trace.json.gz"

# A module may import modules of its own level and of those above it in this list.
LEVELS = (
    (
        "version",
        "core",
        "arrays",
        "allocations",
        "communication",
        "files",
        "flops",
        "number_formats",
        "frames",
        "json_types",
        "json_text",
        "memory_limit",
        "sensitive_data",
        "text_escaping",
        "text_width",
    ),
    ("kernel_names", "text_tables"),
    ("inputs", "settings"),
    ("trace", "native_file", "spill_file"),
    ("tree", "steps", "recorded_health"),
    ("averages", "call_paths", "python_rows", "forward_backward", "synthetic_rows"),
    ("sealing",),
    ("torch_api", "analysis", "export"),
    ("load", "rewrite"),
    ("fleet", "live"),
    ("integrations", "pytest_plugin"),
    ("commands",),
    ("cli", "__init__", "__main__"),
)
LEVEL = {name: number for number, names in enumerate(LEVELS) for name in names}

WITHOUT_LIBRARY = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mindtorch_v2", "torch", "scipy", "ml_dtypes", "pandas"):
            raise ImportError(name + " must not be imported")

sys.meta_path.insert(0, Refuse())
import mindtorch_prof
"""

COMMANDS = [
    "show {0}",
    "show {0} --group-by module,step,category --format json",
    "tree {0}",
    "summary {0}",
    "doctor {0}",
    "advise {0}",
    "roofline {0}",
    "critical-path {0} -o path.json.gz",
    "diff {0} {0}",
    "check {0} --baseline {0}",
    "slice {0} -o cut.json",
    "merge {0} copy.json.gz -o merged.json",
    "redact {0} -o clean.json.gz",
    "ranks {0} copy.json.gz",
    "device {0}",
    "fleet {0} copy.json.gz -o fleet.html",
    "stacks {0}",
    "convert {0} --to csv -o out.csv",
    "convert {0} --to speedscope -o out.speedscope.json",
    "convert {0} --to chrome -o out.json",
    "query {0} --tables",
    "explain",
    "report {0} -o report.html",
    "run --help",
    "recover --help",
    "--help",
]


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """The absolute names that a module of `src` imports, also inside functions, with their lines."""
    package = path.relative_to(SOURCE).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            home = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{home}.{alias.name}", node.lineno) for alias in node.names)


def modules(package: str) -> list[Path]:
    paths = sorted((SOURCE / package).rglob("*.py"))
    assert len(paths) > 20
    return paths


def test_the_engine_imports_neither_the_library_nor_torch() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {name}"
        for path in modules("mindtorch_prof")
        for name, line in imported(path)
        if name.partition(".")[0] in ("mindtorch_v2", "torch")
    ]
    assert wrong == []


def test_arrows_inside_the_engine_point_from_commands_to_the_trace() -> None:
    wrong = []
    for path in modules("mindtorch_prof"):
        own = path.relative_to(SOURCE / "mindtorch_prof").with_suffix("").parts[0]
        for name, line in imported(path):
            parts = name.split(".")
            if parts[0] == "mindtorch_prof" and parts[1] in LEVEL and LEVEL[parts[1]] > LEVEL[own]:
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {name}")
    assert wrong == []


def test_every_module_of_the_engine_has_a_level() -> None:
    tops = {path.relative_to(SOURCE / "mindtorch_prof").parts[0] for path in modules("mindtorch_prof")}
    assert {name.removesuffix(".py") for name in tops} == set(LEVEL)


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_every_command_works_where_the_library_cannot_be_imported(tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "copy.json.gz")
    words = [command.format(TRACE).split() for command in COMMANDS]
    code = f"""{WITHOUT_LIBRARY}
import contextlib, io
from mindtorch_prof.cli import _COMMANDS
words = {words!r}
assert set(_COMMANDS) == {{each[0] for each in words}} - {{"--help"}}, "a command is not tried"
for each in words:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = mindtorch_prof.main(each)
        except SystemExit as end:
            code = end.code
    assert code in (0, 1), (each, code, out.getvalue())
print("done")
"""
    done = python(code, tmp_path)
    assert done.stdout == "done\n", done.stderr


def test_events_averages_trees_and_exports_need_no_library(tmp_path: Path) -> None:
    code = f"""{WITHOUT_LIBRARY}
trace = mindtorch_prof.load({str(TRACE)!r})
events, averages = trace.events(), trace.key_averages(group_by_input_shape=True)
assert len(events) > 10 and "aten::" in averages.table()
roots = trace.experimental_event_tree()
ops = [e for root in roots for e in root.children if e.typed[0].name == "TorchOp"]
shapes = [tensor.sizes for op in ops for tensor in op.typed[1].inputs if hasattr(tensor, "sizes")]
assert shapes and str(events[0].name)
trace.export_chrome_trace("t.json"), trace.export_html("t.html")
print("done")
"""
    done = python(code, tmp_path)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    "name", ["scipy", "ml_dtypes", "mindtorch_v2", "torch", "pandas", "rich", "argparse"]
)
def test_importing_the_engine_brings_no_heavy_package(name: str, tmp_path: Path) -> None:
    done = python(f"import sys, mindtorch_prof; print({name!r} in sys.modules)", tmp_path)
    assert done.stdout == "False\n", done.stderr


def test_the_library_and_the_engine_give_one_class() -> None:
    import mindtorch_prof
    import mindtorch_v2 as torch
    from mindtorch_prof.torch_api import function_events as events

    assert torch.profiler.load is mindtorch_prof.load
    assert torch.autograd.profiler_util.FunctionEvent is events.FunctionEvent
    assert torch.autograd.profiler_util.FunctionEventAvg is events.FunctionEventAvg
