"""Run the commands on many damaged and hostile traces of all formats: each gives an answer or a sentence.

    python tests/fuzz_commands.py [--files 2000] [--minutes M] [--seed 0] [--processes 2] [--traces FOLDER]
                                  [--kind NAME ...] [--command NAME ...] [--per-file N]

The kinds of files are those of tests/helpers/damaged_traces.py; FOLDER has real traces, of which pieces are
taken. Each file is given to N commands, drawn at random (0: to all). Prints each Python exception, each run
that took too long, and each that took too much memory, once per place in the source, with the file. Ends
with 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from damaged_traces import KINDS
from process_bounds import SECONDS, Hangs, limit_memory, limited_time, raise_on_time_limit

from mindtorch_prof.cli import main as run_command

FOLDERS = [parent / "shared" / "ecosystem" for parent in Path(__file__).parents]
TRACES = next((folder for folder in FOLDERS if folder.exists()), FOLDERS[2])
SHARE = 500  # files of one task
# {}: the file; {out}: a path to write to, without its suffix
COMMANDS: dict[str, list[str]] = {
    "summary": ["summary", "{}"],
    "summary --format md": ["summary", "{}", "--format", "md"],
    "show": ["show", "{}"],
    "show --group-by": ["show", "{}", "--group-by", "module,step,category", "--format", "json"],
    "show --format csv": ["show", "{}", "--format", "csv", "--as-recorded"],
    "tree": ["tree", "{}"],
    "tree --python": ["tree", "{}", "--python", "--depth", "0", "--format", "md"],
    "doctor": ["doctor", "{}"],
    "advise": ["advise", "{}"],
    "roofline": ["roofline", "{}"],
    "roofline --all": ["roofline", "{}", "--all", "--format", "json"],
    "critical-path": ["critical-path", "{}"],
    "critical-path -o": ["critical-path", "{}", "--segments", "-o", "{out}.json"],
    "diff": ["diff", "{}", "{}"],
    "diff --tree": ["diff", "{}", "{}", "--tree"],
    "check": ["check", "{}", "--baseline", "{}"],
    "check --write-baseline": ["check", "{}", "--write-baseline", "{out}.baseline.json"],
    "check --github": ["check", "{}", "--baseline", "{}", "--github"],
    "slice": ["slice", "{}", "--time", "0..1s", "-o", "{out}.json"],
    "slice --steps": ["slice", "{}", "--steps", "0-3", "-o", "{out}.json.gz"],
    "slice --name": ["slice", "{}", "--name", "aten", "--drop", "cpu_op,memory", "-o", "{out}.json"],
    "merge": ["merge", "{}", "{}", "-o", "{out}.json"],
    "redact": ["redact", "{}", "-o", "{out}.redacted.json"],
    "ranks": ["ranks", "{}", "{}"],
    "fleet": ["fleet", "{}", "--workers", "1", "-o", "{out}.html"],
    "device": ["device", "{}"],
    "device --format json": ["device", "{}", "--format", "json"],
    "stacks": ["stacks", "{}"],
    "stacks --by both": ["stacks", "{}", "--by", "both", "--metric", "device"],
    "convert --to csv": ["convert", "{}", "--to", "csv", "-o", "{out}.csv"],
    "convert --to csv --table": ["convert", "{}", "--to", "csv", "--table", "memory", "-o", "{out}.csv"],
    "convert --to chrome": ["convert", "{}", "--to", "chrome", "-o", "{out}.json"],
    "convert --to native": ["convert", "{}", "--to", "native", "-o", "{out}.mtrace"],
    "convert --to speedscope": ["convert", "{}", "--to", "speedscope", "-o", "{out}.speedscope.json"],
    "convert --to parquet": ["convert", "{}", "--to", "parquet", "-o", "{out}.parquet"],
    "query": ["query", "{}", "select name, count(*) from events group by name"],
    "query --tables": ["query", "{}", "--tables"],
    "report": ["report", "{}", "-o", "{out}.html"],
    "report of two": ["report", "{}", "{}", "-o", "{out}.html"],
}


class Task(NamedTuple):
    """The part of the work that one call in a process does."""

    seed: int
    files: int
    until: float  # on time.time()'s clock
    traces: str
    kinds: tuple[str, ...]
    commands: tuple[str, ...]
    per_file: int


def outcome(command: list[str], folder: str) -> str | None:
    """Run a command; the place of the exception that it ended in, or None."""
    out, err = io.StringIO(), io.StringIO()
    arguments = [part.replace("{out}", os.path.join(folder, "out")) for part in command]
    try:
        with limited_time(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = run_command(arguments)
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else -1
    except Hangs:
        return f"{arguments[0]}: takes longer than {SECONDS} s"
    except BaseException as error:
        return f"{arguments[0]}: {type(error).__name__} passes through main: {error}"[:300]
    text = err.getvalue()
    if code not in {0, 1, 2}:
        return f"{arguments[0]}: exit code {code}: {text[-160:]}"
    if "Traceback" not in text:
        return None
    places = re.findall(r'File "[^"]*mindtorch_prof[/\\]([^"]*)", line (\d+)', text)
    last = text.strip().splitlines()[-1][:160]
    return f"{arguments[0]}: {':'.join(places[-1]) if places else '?'} {last}"


def _keep(path: Path, kept: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, kept, dirs_exist_ok=True)
    else:
        shutil.copy(path, kept)


def run(task: Task) -> tuple[Counter[str], Counter[str]]:
    """Run commands on files; how many files of each kind and runs, and how often each place failed."""
    warnings.simplefilter("ignore")
    raise_on_time_limit()
    limit_memory()
    random_ = random.Random(task.seed)
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for number in range(task.files):
        if time.time() > task.until:
            break
        with tempfile.TemporaryDirectory() as work:
            kind = random_.choice(task.kinds)
            path = KINDS[kind](random_, Path(task.traces), Path(work))
            counts[kind] += 1
            names = random_.sample(task.commands, task.per_file) if task.per_file else task.commands
            for name in names:
                counts["runs"] += 1
                failure = outcome([part.replace("{}", str(path)) for part in COMMANDS[name]], work)
                if failure is not None:
                    if failure not in failures:
                        kept = Path(tempfile.gettempdir(), f"damaged_{task.seed}_{number}_{path.name}")
                        _keep(path, kept)
                        print(f"{failure}\n    {name} {kept}", flush=True)
                    failures[failure] += 1
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--traces", type=Path, default=TRACES)
    parser.add_argument("--kind", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--command", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--per-file", type=int, default=0)
    options = parser.parse_args()
    if not options.traces.is_dir():
        parser.error(f"--traces: there is no folder {options.traces}")
    until = time.time() + 60 * options.minutes
    per_file = min(options.per_file, len(options.command))
    kinds, commands = tuple(options.kind), tuple(options.command)
    tasks = [
        Task(
            options.seed + n,
            min(SHARE, options.files - n * SHARE),
            until,
            str(options.traces),
            kinds,
            commands,
            per_file,
        )
        for n in range(-(-options.files // SHARE))
    ]
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        with contextlib.suppress(KeyboardInterrupt):  # says what was done until then
            for some_counts, some_failures in pool.imap_unordered(run, tasks):
                counts += some_counts
                failures += some_failures
                print(f"{counts.total() - counts['runs']:,} files so far", flush=True)
    runs = counts.pop("runs", 0)
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    print(f"{counts.total():,} files ({listed}), {runs:,} runs, {failures.total():,} failures")
    for place, count in failures.most_common():
        print(f"{count:7,}  {place}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
