"""Every page of the documentation: its commands run with the exit codes it says, its Python and SQL run, and
what it shows of recorded traces is what is printed."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shutil
import warnings
from pathlib import Path

import pytest
from doc_folder import ecosystem, link_recorded, record_examples
from doc_pages import (
    PAGES,
    ROOT,
    Block,
    Command,
    blocks,
    commands,
    pasted,
    printed_lines,
    run_command,
    shows,
)

import mindtorch_v2
from mindtorch_prof import cli, load

# What the examples of a page leave to the reader; run before them.
PREPARATIONS = {
    "docs/guide.md": "import mindtorch_v2 as torch\nimages, labels = torch.rand(8, 784), torch.arange(8)",
    "docs/report.md": "import mindtorch_v2 as torch\ndef train(): torch.ones(3).sum()",
    "docs/execution_trace.md": "import mindtorch_v2 as torch\ndef train_step(): torch.ones(3).sum()",
}
# Commands that need what a test does not have.
NOT_RUN = {
    r"--every|--seconds|--on-signal|--my-arguments|train\.pt\.trace": "real torch",  # and programs that last
    r"(train|out)\.rank\*": "the files that torchrun's processes write",
    r"--scheduler tcp:": "a Dask cluster",
}
OF_REAL_TORCH = {"docs/with_real_torch.md", "docs/many_ranks.md"}  # their Python needs it
FRAGMENTS = {"docs/ops.md"}  # shows declarations of ops that the library has already
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that pages speak of."""
    folder = tmp_path_factory.mktemp("recordings")
    record_examples(folder)
    return folder


@pytest.fixture
def folder(recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy for one page, in which its examples run."""
    folder = tmp_path / "page"
    shutil.copytree(recordings, folder)
    link_recorded(folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_page_run(name: str, folder: Path) -> None:
    namespace: dict[str, object] = {"__name__": "example"}
    exec(PREPARATIONS.get(name, ""), namespace)
    absent: set[str] = set()
    for block in blocks(ROOT / name):
        if block.language == "python" and name in OF_REAL_TORCH:
            absent.add("real torch")
        elif block.language == "python" and name not in FRAGMENTS:
            absent |= run_python(block, name, namespace)
        elif block.language == "sql":
            absent |= run_sql(block)
        for command in commands(block):
            if lacking := [what for pattern, what in NOT_RUN.items() if re.search(pattern, command.text)]:
                absent.update(lacking)
            elif command.recorded and ecosystem() is None:
                absent.update(command.recorded)
            elif command.words[0] == "mindtorch-prof":
                run_and_compare(command, name, folder)
    if absent:
        pytest.skip(f"NOT CHECKED: examples that need {', '.join(sorted(absent))}, which is not here")


def run_and_compare(command: Command, name: str, folder: Path) -> None:
    """Run a command; what it prints of recorded traces must be what the page shows."""
    code, output = run_command(command.text, folder)
    assert code == command.exit_code, f"{name}:{command.line}: exit code {code}\n{output}"
    if command.is_compared:
        actual = printed_lines(output)
        assert shows(printed_lines("\n".join(command.output)), actual), (
            f"{name}:{command.line}: {command.text} prints something else. If it should: "
            "run python tests/docs/paste_outputs.py and read the difference.\n" + "\n".join(actual)
        )


def run_python(block: Block, name: str, namespace: dict[str, object]) -> set[str]:
    """Run a block in its page's namespace. `import torch` is real torch if installed, else this library."""
    source = compile("\n" * (block.first_line - 1) + block.text, str(ROOT / name), "exec")
    imports_torch = re.search(r"^\s*(import torch|from torch\b)", block.text, re.MULTILINE)
    real = importlib.util.find_spec("torch") is not None
    with mindtorch_v2.as_torch() if imports_torch and not real else contextlib.nullcontext():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # e.g. that there is no GPU
            try:
                exec(source, namespace)
            except ImportError as error:
                missing = getattr(error.__cause__ or error, "name", None)
                if missing not in {"pandas", "pyarrow", "duckdb"}:
                    raise
                return {missing}
    return set()


def run_sql(block: Block) -> set[str]:
    """Run the statements of a block over the trace of the page."""
    if importlib.util.find_spec("duckdb") is None:
        return {"duckdb"}
    trace = load("trace.json.gz")
    text = re.sub(r"--.*", "", block.text)
    statements = [part.strip() for part in text.split(";") if part.strip()]
    assert statements
    for statement in statements:
        trace.query(statement)
    return set()


# ------------------------------------------------------------------------------------ what pages must have


@pytest.mark.parametrize("command", cli.commands())
def test_every_command_has_a_page_with_an_example(command: str) -> None:
    page = ROOT / "docs" / "commands" / f"{command}.md"
    assert any(commands(block) for block in blocks(page))


@pytest.mark.parametrize("name", NAMES)
def test_figures_in_the_text_are_in_an_output_of_the_page(name: str) -> None:
    page = ROOT / name
    recorded = [command for block in blocks(page) for command in commands(block) if command.recorded]
    outputs = "\n".join(line for command in recorded for line in command.output)
    if not outputs:
        return  # no page about a recorded trace
    assert sorted(figure for figure in figures(page) if figure not in outputs) == []


def figures(page: Path) -> set[str]:
    """The figures in a page's text: inline code that is a number with a unit."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([\d.,]+ ?(?:%|s|ms|us|[KMG]i?B|TFLOP/s|TB/s|GB/s))`", text))


def test_outputs_are_compared() -> None:
    # otherwise the tests above compare nothing
    page = ROOT / "docs" / "gpu_time.md"
    shown = [c for block in blocks(page) for c in commands(block) if c.recorded and c.output]
    assert len(shown) >= 5
    assert len(figures(page)) >= 5


def test_a_page_shows_an_output_in_parts() -> None:
    actual = ["head", "a 1", "b 2", "", "tail 3"]
    assert shows(["head", "...", "tail 3"], actual)
    assert not shows(["head", "tail 3"], actual)
    assert not shows(["head", "...", "tail 4"], actual)
    assert not shows(["a 1", "...", "tail 3"], actual)


def test_parts_of_an_output_are_found_again() -> None:
    old = ["head 1", "...", "kernel x 10ms", "kernel y 9ms", "..."]
    actual = ["head 2", "other", "kernel x 11ms", "kernel y 8ms", "end"]
    assert pasted(old, actual) == ["head 2", "...", "kernel x 11ms", "kernel y 8ms", "..."]
    assert pasted(["all"], actual) == actual
