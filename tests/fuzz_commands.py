"""Run the commands on many damaged and hostile trace files: each must give an answer or one sentence.

    python tests/fuzz_commands.py [--files 2000] [--seed 0] [--processes 2] [--traces FOLDER]
                                  [--command NAME ...]

Files are pieces of the traces in FOLDER whose fields were dropped, exchanged or replaced by values of
other types and sizes. Prints each Python exception, and each run that took too long, once per place in
the source, with the file. Ends with 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from mindtorch_prof.cli import main as run_command

FOLDERS = [parent / "shared" / "ecosystem" for parent in Path(__file__).parents]
TRACES = next((folder for folder in FOLDERS if folder.exists()), FOLDERS[2])
SECONDS = 20  # of processor time: a run that takes longer hangs
COMMANDS: dict[str, list[str]] = {
    "summary": ["summary", "{}"],
    "show": ["show", "{}"],
    "show --group-by": ["show", "{}", "--group-by", "module,step,category", "--format", "json"],
    "tree": ["tree", "{}"],
    "doctor": ["doctor", "{}"],
    "advise": ["advise", "{}"],
    "diff": ["diff", "{}", "{}"],
    "check": ["check", "{}", "--baseline", "{}"],
    "slice": ["slice", "{}", "--time", "0..1s", "-o", "{out}.json"],
    "merge": ["merge", "{}", "{}", "-o", "{out}.json"],
    "ranks": ["ranks", "{}", "{}"],
    "stacks": ["stacks", "{}"],
    "convert": ["convert", "{}", "--to", "csv", "-o", "{out}.csv"],
    "convert --to chrome": ["convert", "{}", "--to", "chrome", "-o", "{out}.json"],
    "query": ["query", "{}", "select count(*) from events"],
    "report": ["report", "{}", "-o", "{out}.html"],
    "device": ["device", "{}"],
    "roofline": ["roofline", "{}"],
    "convert --to native": ["convert", "{}", "--to", "native", "-o", "{out}.mtrace"],
}
NUMBERS = (0, 1, -1, 2**31, 2**53, 2**63, -(2**63), 10**25, 1.5, -0.0, 1e300, float("nan"), float("inf"))
TEXTS = (
    "", "x", "1", "0x10", "ProfilerStep#1", "ProfilerStep#99999999999999999999", "ProfilerStep#-1",
    "aten::add", "\x1b[31m\x07\x00", "\u202e\u200b", "=1+1", "a" * 5000,
)  # fmt: skip
OTHERS = (None, True, False, [], [1], [[[]]], ["x", None], {}, {"a": 1}, {"ph": "X"})
VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, *OTHERS)


class Hangs(BaseException):
    """A command took too long."""


def sources(folder: Path) -> list[dict[str, Any]]:
    """Real traces as documents, with the events of each."""
    documents = []
    for path in sorted(folder.rglob("*.json*")):
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if len(data) > 64 << 20 or not (b'"ph"' in data[:100_000] or b'"traceEvents"' in data[:100_000]):
            continue
        document = json.loads(data)
        documents.append(document if isinstance(document, dict) else {"traceEvents": document})
    return documents


def damaged(random_: random.Random, source: dict[str, Any]) -> Any:
    """A piece of a trace with some changes."""
    events = source["traceEvents"]
    count = random_.choice((1, 3, 10, 50, 300, 2000))
    first = random_.randrange(max(1, len(events) - count))
    piece = [event for event in events if isinstance(event, dict) and event.get("ph") == "M"][:40]
    piece = json.loads(json.dumps(piece + events[first : first + count]))
    document = {key: value for key, value in source.items() if key != "traceEvents"}
    document = json.loads(json.dumps(document))
    for _ in range(random_.choice((0, 1, 2, 5, 20, 100))):
        change(random_, piece)
    for _ in range(random_.choice((0, 0, 1, 3))):
        change_object(random_, document)
    if random_.random() < 0.1:  # only some categories
        category = random_.choice(sorted({str(e.get("cat")) for e in piece if isinstance(e, dict)}))
        keeps = random_.random() < 0.5
        piece = [e for e in piece if isinstance(e, dict) and (str(e.get("cat")) == category) == keeps]
    return {**document, "traceEvents": piece} if random_.random() < 0.9 else piece


def change(random_: random.Random, events: list[Any]) -> None:
    if not events:
        return
    place = random_.randrange(len(events))
    kind = random_.randrange(12)
    if kind == 0:
        events[place] = random_.choice(VALUES)
    elif kind == 1:
        events.append(json.loads(json.dumps(events[place])))
    elif kind == 2:
        events.insert(place, {"ph": random_.choice("XBEiCMsfabne"), "name": "x", "ts": 0, "pid": 0, "tid": 0})
    elif isinstance(events[place], dict):
        arguments = events[place].get("args")
        if kind < 7 and isinstance(arguments, dict):
            change_object(random_, arguments)
        elif kind == 7:
            events[place]["dur"] = random_.choice((-5, 0, 1e12, 10**18))
        elif kind == 8:
            events[place]["ts"] = random_.choice((-1e9, 0, 1e15, "12.5", 2**62))
        else:
            change_object(random_, events[place])


def change_object(random_: random.Random, fields: dict[str, Any]) -> None:
    if not fields:
        return
    key = random_.choice(list(fields))
    kind = random_.randrange(4)
    if kind == 0:
        del fields[key]
    elif kind == 1:
        fields[key] = random_.choice(list(fields.values()))
    elif kind == 2 and isinstance(fields[key], (int, float)):
        fields[key] = fields[key] + random_.choice((-1, 1, 1000, -1000))
    else:
        fields[key] = random_.choice(VALUES)


def outcome(command: list[str], folder: str) -> str | None:
    """Run a command; the place of the exception that it ended in, or None."""
    out, err = io.StringIO(), io.StringIO()
    arguments = [part.replace("{out}", os.path.join(folder, "out")) for part in command]
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                run_command(arguments)
            except SystemExit as error:
                return None if error.code in (0, 1, 2) else f"exit code {error.code}"
    except Hangs:
        return f"{arguments[0]}: takes longer than {SECONDS} s"
    except BaseException as error:
        return f"{arguments[0]}: {type(error).__name__} passes through main: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    text = err.getvalue()
    if "Traceback" not in text:
        return None
    places = re.findall(r'File "[^"]*mindtorch_prof[/\\]([^"]*)", line (\d+)', text)
    last = text.strip().splitlines()[-1][:160]
    return f"{arguments[0]}: {':'.join(places[-1]) if places else '?'} {last}"


def _hang(*_: object) -> None:
    raise Hangs


def run(task: tuple[int, int, str, tuple[str, ...]]) -> Counter[str]:
    """Run all commands on `count` files; how often each place failed."""
    seed, count, folder, names = task
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, _hang)
    random_, documents = random.Random(seed), sources(Path(folder))
    failures: Counter[str] = Counter()
    for number in range(count):
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "trace.json")
            Path(path).write_text(json.dumps(damaged(random_, random_.choice(documents))))
            for name in names:
                failure = outcome([part.replace("{}", path) for part in COMMANDS[name]], work)
                if failure is not None:
                    if failure not in failures:
                        kept = os.path.join(tempfile.gettempdir(), f"damaged_{seed}_{number}.json")
                        Path(kept).write_bytes(Path(path).read_bytes())
                        print(f"{failure}\n    {kept}", flush=True)
                    failures[failure] += 1
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--traces", type=Path, default=TRACES)
    parser.add_argument("--command", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    options = parser.parse_args()
    each = -(-options.files // (options.processes * 4))
    tasks = [
        (options.seed + number, each, str(options.traces), tuple(options.command))
        for number in range(options.processes * 4)
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        failures: Counter[str] = sum(pool.imap_unordered(run, tasks), Counter())
    runs = each * len(tasks) * len(options.command)
    print(f"{each * len(tasks):,} files, {runs:,} runs, {sum(failures.values()):,} failures")
    for place, count in failures.most_common():
        print(f"{count:7,}  {place}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
