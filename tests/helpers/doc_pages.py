"""Pages of documentation: a Markdown file in; its examples out, with what the page shows of their output."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mindtorch_prof import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WIDTH: int | None = 100  # columns of the terminal that pages show; None: output as into a pipe

# Files that others recorded, by the names that pages use for them: where they are in shared/ecosystem.
# The same file gives the same output, so what pages show of these commands is compared.
RECORDED = {
    "h100.json.gz": "traces/h100_qwen_infer_stack_memory.json.gz",
    "mi300.json.gz": "traces/mi300_resnet_ddp_act_checkpoint.json.gz",
    "v100.json.gz": "traces/v100_resnet50_train_2021.pt.trace.json.gz",
    "a100.json.gz": "traces/nvidia_ddp_train_nccl.json.gz",
    "dlrm": "ranks/dlrm_8",
}
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"\s*(?:- )?(?:run: )?(mindtorch-prof [^#]*?)(?: +# (?:exit (\d))?.*)?")
_OMITTED = "..."


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines without indentation, and where it begins in the page."""

    language: str
    lines: list[str]
    first_line: int
    indent: str

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Command:
    """A command after `$ ` in a console block, and the lines that the page shows below it."""

    text: str
    exit_code: int
    output: list[str]
    line: int  # of the command in the page
    indent: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def recorded(self) -> list[str]:
        """The files of others that it reads."""
        return [name for name in RECORDED if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", self.text)]

    @property
    def is_compared(self) -> bool:
        """Whether the page must show what is printed, as that is the same each time."""
        return bool(self.output and (self.recorded or self.words[:2] == ["mindtorch-prof", "explain"]))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text = page.read_text()
    return [
        Block(
            match[2],
            [line.removeprefix(match[1]) for line in match[3].splitlines()],
            text.count("\n", 0, match.start(3)) + 1,
            match[1],
        )
        for match in _FENCE.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """The commands of a block: in consoles lines after `$ `, in recipes those of `mindtorch-prof`."""
    found: list[Command] = []
    for number, line in enumerate(block.lines, start=block.first_line):
        if block.language == "console":
            if line.startswith("$ "):
                text, _, code = line[2:].partition("  # exit ")
                found.append(Command(text, int(code or 0), [], number, block.indent))
            elif found:
                found[-1].output.append(line)
        elif block.language in {"sh", "yaml", ""} and (match := _LINE.fullmatch(line)):
            found.append(Command(match[1], int(match[2] or 0), [], number))
    return found


# ------------------------------------------------------------------------------------ running


class _Terminal(io.StringIO):
    """Standard output of a command: a terminal, as far as the command can tell, if the pages show one."""

    def isatty(self) -> bool:
        return WIDTH is not None


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """What contextlib.chdir is from Python 3.11 on."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_command(text: str, folder: Path) -> tuple[int, str]:
    """Run a command in a folder, as on a terminal of WIDTH columns: its exit code, and what it prints."""
    words = shlex.split(text)
    in_shell = any(word in {"|", ">", ">>", "&&", ";"} for word in words) or words[1] in {"run", "--version"}
    with _environment(COLUMNS=str(WIDTH or 80), NO_COLOR="1", TERM="dumb"), in_folder(folder):
        return _run_in_shell(text) if in_shell else _run_here(words[1:])


def _run_here(words: Sequence[str]) -> tuple[int, str]:
    out, errors = _Terminal(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = cli.main(list(words))
        except SystemExit as end:  # wrong usage
            code = end.code if isinstance(end.code, int) else 1
    return code, out.getvalue() + errors.getvalue()


def _run_in_shell(text: str) -> tuple[int, str]:
    here = f"{shlex.quote(sys.executable)} -m mindtorch_prof"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "GITHUB_STEP_SUMMARY": "step_summary.md"}
    done = subprocess.run(
        re.sub(r"(?<![\w./-])mindtorch-prof(?= )", here, text),
        shell=True,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


# ------------------------------------------------------------------------------------ comparing


def printed_lines(text: str) -> list[str]:
    """Lines as pages show them: without blanks at their ends, and without empty lines around them."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        del lines[-1]
    while lines and not lines[0]:
        del lines[0]
    return lines


def shows(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether a page shows an output; a line `...` stands for any lines."""
    parts = [r"(?:.*\n)*" if line == _OMITTED else re.escape(line.rstrip()) + r"\n" for line in expected]
    pattern = "".join(parts)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None


def pasted(old: Sequence[str], actual: Sequence[str]) -> list[str]:
    """What a page should show instead of `old`: the same parts of what is printed now.

    The parts between lines `...` are found again by their first and last lines, whose figures may differ.
    """
    if _OMITTED not in old:
        return list(actual)
    parts: list[list[str]] = [[]]
    for line in old:
        if line == _OMITTED:
            parts.append([])
        else:
            parts[-1].append(line)
    lines: list[str] = []
    at = 0
    for number, part in enumerate(parts):
        if number:
            lines.append(_OMITTED)
        if not part:
            continue
        start = 0 if number == 0 else _nearest(part[0], actual, at)
        is_last = number == len(parts) - 1
        end = len(actual) if is_last else _nearest(part[-1], actual, start, start + len(part) - 1) + 1
        lines += actual[start:end]
        at = end
    return lines


def _nearest(line: str, actual: Sequence[str], start: int, guess: int | None = None) -> int:
    """The line that is most like another one, from `start` on; of equal ones that nearest to a guess."""

    def likeness(number: int) -> tuple[float, int]:
        texts = _without_figures(line), _without_figures(actual[number])
        ratio = difflib.SequenceMatcher(None, *texts).ratio()
        return round(ratio, 2), -abs(number - (start if guess is None else guess))

    return max(range(min(start, len(actual) - 1), len(actual)), key=likeness)


def _without_figures(line: str) -> str:
    return re.sub(r"[\d.,]+", "0", line)
