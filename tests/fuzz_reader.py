"""Compare the compiled reader with the Python one on many inputs: same Trace, same health, same errors.

    python tests/fuzz_reader.py [--inputs 200000] [--seed 0] [--processes 2] [--traces FOLDER]

Inputs are pieces of the trace files in FOLDER, with and without changed bytes and tokens, generated
events, and documents of random JSON (hypothesis); each is read in chunks of a random size. An error other
than a TraceError, which says what is wrong with a file, counts as a difference. Prints the first
differences, with the input in a file, and ends with 1 if there are any. The same, on a few inputs, is part
of the test suite (tests/mindtorch_prof/load/test_core.py).
"""

from __future__ import annotations

import argparse
import functools
import gzip
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import kineto_documents
from hypothesis import HealthCheck, Phase, given, seed, settings
from reader_inputs import change_bytes, change_tokens, documents, file_of, generated, pieces
from reader_outcomes import difference

FOLDERS = [parent / "shared" / "ecosystem" for parent in Path(__file__).parents]
TRACES = next((folder for folder in FOLDERS if folder.exists()), FOLDERS[2])
CHUNKS = (64, 257, 1000, 4096, 160 << 10)
SHARE_OF_DOCUMENTS = (
    0.1  # of the inputs: hypothesis takes longer to make one than the readers take to read it
)


@functools.cache
def sources(folder: Path) -> list[list[bytes]]:
    """The events of each file from which pieces are taken; they are read once in a process."""
    return [events for data in contents(folder) if (events := pieces(data))]


def contents(folder: Path) -> list[bytes]:
    """The files from which pieces are taken."""
    own = [kineto_documents.cpu(), kineto_documents.document([])]
    found = [kineto_documents.json.dumps(document).encode() for document in own]
    for path in sorted(folder.rglob("*.json*")):
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if b'"ph"' in data[:100_000] or b'"traceEvents"' in data[:100_000]:
            found.append(data[: 4 << 20])
    return found


def inputs(random_: random.Random, events_of: list[list[bytes]]) -> bytes:
    """A file: consecutive events of a real one, or generated ones, mostly changed."""
    kind = random_.randrange(10)
    count = random_.choice((1, 2, 3, 5, 8, 20))
    if kind < 3:
        events = [generated(random_) for _ in range(count)]
    else:
        source = random_.choice(events_of)
        first = random_.randrange(max(1, len(source) - count))
        events = source[first : first + count]
        if kind == 3:
            events = [*events, *[generated(random_) for _ in range(3)], *events[:2]]
    data = file_of(events, random_)
    change = random_.randrange(4)
    if change == 1:
        return change_bytes(data, random_)
    if change > 1:
        return change_tokens(data, random_)
    return data


def report(found: str, data: bytes, chunk: int) -> None:
    with tempfile.NamedTemporaryFile(prefix="reader_", suffix=".json", delete=False) as out:
        out.write(data)
    print(f"DIFFERENCE, chunks of {chunk}: {out.name}\n{found[:2000]}\n", flush=True)


def run(first: int, count: int, folder: Path) -> int:
    """Compare on `count` inputs; how many differed."""
    warnings.simplefilter("ignore")
    random_ = random.Random(first)
    events_of = sources(folder)
    differing = 0
    of_documents = int(count * SHARE_OF_DOCUMENTS)
    for _ in range(count - of_documents):
        data, chunk = inputs(random_, events_of), random_.choice(CHUNKS)
        found = difference(data, chunk, strict=random_.random() < 0.02)
        if found is not None:
            differing += 1
            if differing <= 5:
                report(found, data, chunk)

    @seed(first)
    @settings(
        max_examples=of_documents,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(documents())
    def compare(data: bytes) -> None:
        nonlocal differing
        chunk = CHUNKS[len(data) % len(CHUNKS)]
        found = difference(data, chunk)
        if found is not None:
            differing += 1
            if differing <= 5:
                report(found, data, chunk)

    if of_documents:
        compare()
    return differing


def _run_task(task: tuple[int, int, Path]) -> int:
    return run(*task)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--traces", type=Path, default=TRACES, help="a folder of trace files")
    options = parser.parse_args()
    if not options.traces.is_dir():
        parser.error(f"--traces: there is no folder {options.traces}")
    begin = time.time()
    share = 2_000  # inputs of one task
    tasks = [
        (options.seed + number, min(share, options.inputs - number * share), options.traces)
        for number in range(-(-options.inputs // share))
    ]
    done = differing = 0
    with multiprocessing.Pool(options.processes) as pool:
        for task, found in zip(tasks, pool.imap(_run_task, tasks)):
            done, differing = done + task[1], differing + found
            print(f"{done:,} done, {differing:,} differences, {time.time() - begin:.0f} s", flush=True)
    print(f"{options.inputs:,} inputs, {differing:,} differences, {time.time() - begin:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
