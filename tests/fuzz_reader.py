"""Compare the compiled reader with the Python one on many inputs: same Trace, same health, same errors.

    python tests/fuzz_reader.py [--inputs 200000] [--seed 0] [--processes 2] [--traces FOLDER]

Half of the inputs are pieces of the trace files in FOLDER, with changed bytes or tokens; the others are such
pieces unchanged, generated events, and documents of random JSON (hypothesis). Each is read in chunks of a
random size. An error other than a TraceError, which says what is wrong with a file, counts as a difference,
and so does an input that takes too much time or memory. Prints the first differences, with the input in a
file, then how many inputs of each kind there were, and ends with 1 if there are differences. The same, on a
few inputs, is part of the test suite (tests/mindtorch_prof/load/test_core.py).
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
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import kineto_documents
import process_bounds
from hypothesis import HealthCheck, Phase, given, seed, settings
from reader_inputs import change_bytes, change_tokens, documents, file_of, generated, pieces
from reader_outcomes import difference

FOLDERS = [parent / "shared" / "ecosystem" for parent in Path(__file__).parents]
TRACES = next((folder for folder in FOLDERS if folder.exists()), FOLDERS[2])
CHUNKS = (64, 257, 1000, 4096, 160 << 10)
COUNTS = (1, 2, 3, 5, 8, 20)  # of events
CHANGED, UNCHANGED, GENERATED, DOCUMENT = (
    "changed pieces of files",
    "unchanged pieces of files",
    "generated files",
    "random documents",
)
# shares of the kinds of inputs; hypothesis takes longer to make a document than the readers take to read it
SHARES = {CHANGED: 0.5, UNCHANGED: 0.02, GENERATED: 0.38, DOCUMENT: 0.1}
TASK = 2_000  # inputs of one task
DIFFERENCES = "differences"


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


def piece(random_: random.Random, events_of: list[list[bytes]]) -> bytes:
    """A file of consecutive events of a real one, and sometimes of generated ones among them."""
    source = random_.choice(events_of)
    count = random_.choice(COUNTS)
    first = random_.randrange(max(1, len(source) - count))
    events = source[first : first + count]
    if random_.random() < 0.15:
        events = [*events, *[generated(random_) for _ in range(3)], *events[:2]]
    return file_of(events, random_)


def changed(data: bytes, random_: random.Random) -> bytes:
    """The same with changed bytes or tokens."""
    result = data
    while result == data:
        change = change_bytes if random_.random() < 1 / 3 else change_tokens
        result = change(data, random_)
    return result


def input_of(kind: str, random_: random.Random, events_of: list[list[bytes]]) -> bytes:
    """A file of a kind."""
    if kind == UNCHANGED:
        return piece(random_, events_of)
    if kind == CHANGED:
        return changed(piece(random_, events_of), random_)
    data = file_of([generated(random_) for _ in range(random_.choice(COUNTS))], random_)
    return data if random_.random() < 0.25 else changed(data, random_)


def bounded_difference(data: bytes, chunk: int, strict: bool = False) -> str | None:
    """Where the two cores differ, or that they take too much time or memory; None: nowhere."""
    try:
        with process_bounds.limited_time():
            return difference(data, chunk, strict=strict)
    except process_bounds.Hangs:
        return f"takes longer than {process_bounds.SECONDS} s"
    except MemoryError:
        return f"takes more than {process_bounds.MEMORY:,} bytes"


def report(found: str, data: bytes, chunk: int) -> None:
    with tempfile.NamedTemporaryFile(prefix="reader_", suffix=".json", delete=False) as out:
        out.write(data)
    print(f"DIFFERENCE, chunks of {chunk}: {out.name}\n{found[:2000]}\n", flush=True)


def run(first: int, count: int, folder: Path) -> Counter[str]:
    """Compare on `count` inputs; how many there were of each kind, and how many differed."""
    warnings.simplefilter("ignore")
    process_bounds.raise_on_time_limit()
    process_bounds.limit_memory()
    random_ = random.Random(first)
    events_of = sources(folder)
    counts = Counter({kind: int(count * share) for kind, share in SHARES.items()})
    counts[CHANGED] += count - counts.total()

    def check(data: bytes, chunk: int, strict: bool = False) -> None:
        found = bounded_difference(data, chunk, strict)
        if found is not None:
            counts[DIFFERENCES] += 1
            if counts[DIFFERENCES] <= 5:
                report(found, data, chunk)

    for kind in (CHANGED, UNCHANGED, GENERATED):
        for _ in range(counts[kind]):
            data = input_of(kind, random_, events_of)
            check(data, random_.choice(CHUNKS), strict=random_.random() < 0.02)

    @seed(first)
    @settings(
        max_examples=counts[DOCUMENT],
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(documents())
    def compare(data: bytes) -> None:
        check(data, CHUNKS[len(data) % len(CHUNKS)])

    if counts[DOCUMENT]:
        compare()
    return counts


def _run_task(task: tuple[int, int, Path]) -> Counter[str]:
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
    tasks = [
        (options.seed + number, min(TASK, options.inputs - number * TASK), options.traces)
        for number in range(-(-options.inputs // TASK))
    ]
    counts: Counter[str] = Counter()
    differing = 0
    with multiprocessing.Pool(options.processes) as pool:
        for some in pool.imap(_run_task, tasks):
            counts += some
            done, differing = counts.total() - counts[DIFFERENCES], counts[DIFFERENCES]
            print(f"{done:,} done, {differing:,} differences, {time.time() - begin:.0f} s", flush=True)
    of_kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in SHARES)
    print(f"{options.inputs:,} inputs ({of_kinds}), {differing:,} differences, {time.time() - begin:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
