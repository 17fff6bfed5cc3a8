"""Tests of mindtorch_prof.load.event_values, and of the memory that opening files takes."""

from __future__ import annotations

import dataclasses
import random
import re
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
from mindtorch_prof.load.event_values import StackTable

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


def _flow(i: int) -> str:
    """Of each four events an op, a flow that begins in it and ends at a kernel, and the kernel."""
    phase, place = (("X", 1), ("s", 1), ("f", 7), ("X", 7))[i % 4]
    time = i - i % 4 + 2 if place == 7 else i
    cat = ("cpu_op", "async_npu", "async_npu", "kernel")[i % 4]
    return f'"ph":"{phase}","cat":"{cat}","pid":1,"tid":{place},"ts":{time},"id":{i // 4},"dur":1,"name":"a"'


STACK = ";".join(f"package/module_{n}.py({n}): function" for n in range(10))
ON_ONE_THREAD = '"cat":"cpu_op","pid":1,"tid":1,'
KERNEL = '"cat":"kernel","ph":"X","pid":0,"dur":1,"name":"k",'
# events of which most memory would be taken by what is not kept
MANY: dict[str, Callable[[int], str]] = {
    "names": lambda i: f'{ON_ONE_THREAD}"ph":"X","ts":{i},"dur":1,"name":"the op {i}"',
    "arguments": lambda i: f'{ON_ONE_THREAD}"ph":"X","ts":{i},"dur":1,"name":"a","args":{{"x":{i}}}',
    "begin and end events": lambda i: f'{ON_ONE_THREAD}"ph":"{"BE"[i % 2]}","ts":{i},"name":"a"',
    "begin events": lambda i: f'{ON_ONE_THREAD}"ph":"B","ts":{i},"name":"a"',
    "names of begin and end events": lambda i: (
        f'{ON_ONE_THREAD}"ph":"{"BE"[i % 2]}","ts":{i},"name":"op {i // 2}"'
    ),
    "arguments of begin and end events": lambda i: (
        f'{ON_ONE_THREAD}"ph":"{"BE"[i % 2]}","ts":{i},"name":"a","args":{{"x":{i // 2}}}'
    ),
    "threads of begin and end events": lambda i: (
        f'"cat":"cpu_op","ph":"{"BE"[i % 2]}","pid":1,"tid":{i // 2},"ts":{i},"name":"a"'
    ),
    "categories of begin and end events": lambda i: (
        f'"cat":"c{i // 2}","ph":"{"BE"[i % 2]}","pid":1,"tid":1,"ts":{i},"name":"a"'
    ),
    "further keys of begin and end events": lambda i: (
        f'{ON_ONE_THREAD}"ph":"{"BE"[i % 2]}","ts":{i},"tts":{i},"name":"a"'
    ),
    "stacks": lambda i: (
        f'{ON_ONE_THREAD}"ph":"X","ts":{i},"dur":1,"name":"a","args":{{"Call stack":"{STACK};t.py({i}): f"}}'
    ),
    "threads": lambda i: f'"cat":"cpu_op","ph":"X","pid":1,"tid":{i},"ts":{i},"dur":1,"name":"a"',
    "processes": lambda i: f'"cat":"cpu_op","ph":"X","pid":{i},"tid":1,"ts":{i},"dur":1,"name":"a"',
    "streams": lambda i: f'{KERNEL}"tid":{i},"ts":{i},"args":{{"device":0,"stream":{i}}}',
    "keys of kernels": lambda i: f'{KERNEL}"tid":7,"ts":{i},"args":{{"device":0,"stream":7,"k{i}":1}}',
    "Python calls": lambda i: (
        f'"cat":"python_function","ph":"X","pid":1,"tid":1,"ts":{i},"dur":1,"name":"f",'
        f'"args":{{"Python id":{i},"Python parent id":{i // 2}}}'
    ),
    "deep Python calls with ops": lambda i: (
        f'{ON_ONE_THREAD}"ph":"X","ts":{i - 0.5},"dur":0.1,"name":"a"'
        if i % 2
        else '"cat":"python_function","ph":"X","pid":1,"tid":1,'
        f'"ts":{i - 1},"dur":{3 * EVENTS - 2 * i},"name":"f{i % 9}"'
    ),
    "flows": _flow,
    "ids of flows": lambda i: re.sub('"id":([0-9]+)', r'"id":"the flow \1"', _flow(i)),
    "categories of flows": lambda i: _flow(i).replace("async_npu", f"category {i // 4}"),
    "marks of kernels": lambda i: (
        f'"cat":"{"kernel" if i % 2 else "overhead"}","ph":"X","pid":1,"tid":{i % 2},'
        f'"ts":{i - i % 2},"dur":0,"name":"k"'
    ),
    "forward threads": lambda i: (
        f'{ON_ONE_THREAD}"ph":"X","ts":{i},"dur":1,"name":"a",'
        f'"args":{{"Sequence number":{i // 2},"Fwd thread id":{i % 2 * i}}}'
    ),
    "names of threads": lambda i: (
        f'"ph":"M","pid":1,"tid":{i % 9},"name":"thread_name","args":{{"name":"t"}}'
        if i % 2
        else f'{ON_ONE_THREAD}"ph":"X","ts":{i},"dur":1,"name":"a"'
    ),
}


@pytest.mark.parametrize("what", MANY)
def test_opening_a_file_takes_at_most_twice_what_is_kept(what: str, tmp_path: Path) -> None:
    events = ["{" + MANY[what](i) + "}" for i in range(EVENTS // 2)]
    (tmp_path / "t.json").write_text('{"traceEvents":[' + ",".join(events) + "]}")
    del events
    load(tmp_path / "t.json")  # imports what is needed
    tracemalloc.start()
    try:
        trace = load(tmp_path / "t.json").trace
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trace) or len(trace.device) or len(trace.frames)
    slices = 4 << 20  # what is parsed at a time
    assert peak <= 2 * kept + slices


def test_links_by_flows_take_no_more_memory_than_the_columns_they_link(tmp_path: Path) -> None:
    ids = '"args":{"External id":%d}'
    kernels = '"args":{"device":0,"stream":7}'
    further = [ids, '"s":1', '"bp":"e"', kernels]
    events = ["{" + _flow(i) + "," + further[i % 4].replace("%d", str(i)) + "}" for i in range(2 * EVENTS)]
    (tmp_path / "t.json").write_text('{"traceEvents":[' + ",".join(events) + "]}")
    del events
    load(tmp_path / "t.json")  # imports what is needed
    tracemalloc.start()
    try:
        trace = load(tmp_path / "t.json").trace
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (trace.device.op >= 0).all()
    slices = 4 << 20  # what is parsed at a time
    assert peak <= 1.75 * kept + slices


def test_stacks_of_the_same_frames_get_the_same_number() -> None:
    table = StackTable()
    left_out = "torch/autograd/__init__.py(99): backward"
    texts = [
        "a.py(1): f;b.py(2): g",
        "b.py(2): g",
        f"a.py(1): f;;{left_out};b.py(2): g",
        "a.py(1): f;b.py(2): g",
    ]
    assert [table[text] for text in texts] == [0, 1, 0, 0]
    assert len(table) == 2
    assert table.taken() == [("a.py(1): f", "b.py(2): g"), ("b.py(2): g",)]


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
