"""Tests of mindtorch_prof.load.event_values, and of the memory that opening files takes."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof import load, tree
from mindtorch_prof.load import kernel_links

EVENTS = 200_000
SHAPES: dict[str, Callable[[int, random.Random], str]] = {
    "all at the same time": lambda i, _: '"tid":1,"ts":5,"dur":1',
    "nested to the last": lambda i, _: f'"tid":1,"ts":{i},"dur":{2 * (EVENTS - i)}',
    "in no order": lambda i, random_: f'"tid":{i % 7},"ts":{random_.random() * 1e6},"dur":{random_.random()}',
}


def column_bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if not dataclasses.is_dataclass(value):
        return 0
    return sum(column_bytes(getattr(value, each.name)) for each in dataclasses.fields(value))


@pytest.mark.parametrize("shape", SHAPES)
def test_opening_takes_at_most_twice_the_memory_of_the_columns(shape: str, tmp_path: Path) -> None:
    random_ = random.Random(0)
    head = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"args":{},'
    events = [head + SHAPES[shape](i, random_) + "}" for i in range(EVENTS)]
    (tmp_path / "t.json").write_text('{"traceEvents":[' + ",".join(events) + "]}")
    del events
    load(tmp_path / "t.json")  # imports what is needed
    tracemalloc.start()
    try:
        trace = load(tmp_path / "t.json").trace
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    slices = 4 << 20  # what is parsed or compared at a time
    assert peak <= 2 * column_bytes(trace) + slices


DISTINCT: dict[str, Callable[[int], str]] = {
    "names": lambda i: f'"ph":"X","ts":{i},"dur":1,"name":"the op {i}"',
    "arguments": lambda i: f'"ph":"X","ts":{i},"dur":1,"name":"a","args":{{"x":{i}}}',
    "names of begin and end events": lambda i: f'"ph":"{"BE"[i % 2]}","ts":{i},"name":"op {i // 2}"',
    "arguments of begin and end events": lambda i: (
        f'"ph":"{"BE"[i % 2]}","ts":{i},"name":"a","args":{{"x":{i // 2}}}'
    ),
}


@pytest.mark.parametrize("texts", DISTINCT)
def test_opening_a_file_of_distinct_texts_takes_at_most_three_times_what_is_kept(
    texts: str, tmp_path: Path
) -> None:
    events = ['{"cat":"cpu_op","pid":1,"tid":1,' + DISTINCT[texts](i) + "}" for i in range(EVENTS // 2)]
    (tmp_path / "t.json").write_text('{"traceEvents":[' + ",".join(events) + "]}")
    del events
    load(tmp_path / "t.json")  # imports what is needed
    tracemalloc.start()
    try:
        trace = load(tmp_path / "t.json").trace
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trace)
    slices = 4 << 20  # what is parsed at a time
    assert peak <= 3 * kept + slices


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads the peak of memory from Linux's /proc"
)
@pytest.mark.parametrize("args", ['{"x":%d}', '{"Input Dims":[[%d]],"Input type":["float"]}'])
def test_a_text_per_event_takes_no_kilobytes_per_event(args: str, tmp_path: Path) -> None:
    head = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"dur":1,"ts":%d,"args":' + args + "}"
    events = [head % (i, i) for i in range(60_000)]
    (tmp_path / "t.json").write_text('{"traceEvents":[' + ",".join(events) + "]}")
    code = (
        "import sys, re, mindtorch_prof.load.open_trace\n"
        "from mindtorch_prof import load\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak(); load(sys.argv[1]); print(peak() - before)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t.json")]
    kilobytes = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert kilobytes * 1024 < 1200 * 60_000  # 4,500 bytes each before


THREADS = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
)


@given(THREADS)
def test_many_threads_at_once_nest_as_each_by_itself(threads: list[list[tuple[int, int]]]) -> None:
    rows = [
        (thread, start, start + length)
        for thread, events in enumerate(threads)
        for start, length in sorted(events, key=lambda event: (event[0], -event[1]))
    ]
    thread, start, end = np.array(rows, np.int64).T.copy()
    numbers = np.full(len(rows), -1)
    answers = []
    for many in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree, "_MANY_THREADS", many)
            ends, moved = kernel_links.snapped(thread, start, end, 3)
            nesting = tree.nesting(thread, start, end)
            callers, _ = kernel_links.callers(thread, start, end, numbers, numbers)
            answers.append([*[column.tolist() for column in (ends, *nesting, callers)], moved])
    assert answers[0] == answers[1]
