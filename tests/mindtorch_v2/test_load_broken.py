"""Broken traces: what can be saved is, the health says what was not; what is no trace is refused clearly."""

from __future__ import annotations

import copy
import gzip
import importlib.util
import io
import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindtorch_prof import load
from mindtorch_prof.load import BrokenTraceError, NotATraceError, RefusedTraceError, TraceError

FACTS = Path(__file__).with_name("facts")


def fact(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FACTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = fact("stranger_traces")
WHOLE = made.as_bytes(made.cpu())


def opened(data: bytes | Any, **how: Any) -> Any:
    return load(io.BytesIO(data if isinstance(data, bytes) else made.as_bytes(data)), **how)


def names(loaded: Any) -> list[str]:
    return [event.name for event in loaded.events()]


ALL = ["ProfilerStep*", "aten::linear", "aten::t", "aten::addmm"]


def replaced(old: bytes, new: bytes) -> bytes:
    assert WHOLE.count(old) == 1, old
    return WHOLE.replace(old, new)


# -------------------------------------------------------------------------------- what is saved

MENDED = {
    "a control character in a name": (replaced(b"aten::t", b"aten\n\x01::t"), "aten  ::t"),
    "a quote in a name, as torch writes it": (
        replaced(b'"aten::t"', b'"say "hello" twice"'),
        'say "hello" twice',
    ),
    "a path of Windows": (replaced(b"aten::t", rb"C:\Users\x::t"), "C:\\Users\\x::t"),
    "an escape that is cut": (replaced(b"aten::t", rb"\u12::t"), "\\u12::t"),
    "half of a surrogate pair": (replaced(b"aten::t", rb"\ud800::t"), "?::t"),
    "bytes that are no UTF-8": (replaced(b"aten::t", b"\xff\xfe::t"), "\ufffd\ufffd::t"),
}


@pytest.mark.parametrize("what", MENDED)
def test_an_event_that_is_no_valid_json_is_mended(what: str) -> None:
    data, name = MENDED[what]
    loaded = opened(data)
    assert names(loaded) == ["ProfilerStep*", "aten::linear", name, "aten::addmm"]
    assert (loaded.health.repaired, loaded.health.dropped) == (1, 0)
    assert "byte" in loaded.health.line()
    assert "Incomplete" in loaded.key_averages().table() or "Repaired" in loaded.key_averages().table()
    with pytest.raises(BrokenTraceError, match="mended"):
        opened(data, strict=True)


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b"inf", b"-nan", b"nan(ind)"])
def test_numbers_that_json_does_not_have_are_taken_for_missing(value: bytes) -> None:
    loaded = opened(replaced(b'"External id": 3', b'"External id": 3, "loss": ' + value))
    assert names(loaded) == ALL
    assert loaded.health.repaired == 1
    gone = opened(replaced(b'"ts": 1011.0', b'"ts": ' + value))
    assert names(gone) == ["ProfilerStep*", "aten::linear", "aten::addmm"]
    assert gone.health.dropped == 1
    assert "no time" in gone.health.line()


@pytest.mark.parametrize("end", range(1, 500, 7))
def test_a_file_that_ends_too_early_gives_what_is_there(end: int) -> None:
    data = WHOLE[:-end]
    loaded = opened(data)
    complete = [
        n
        for n, text in (("ProfilerStep*", b"ProfilerStep#3"), *((n, n.encode()) for n in ALL[1:]))
        if text in data
    ]
    assert names(loaded) in (complete, complete[:-1])
    if end > 1:
        assert loaded.health.notes
    with pytest.raises(TraceError):
        opened(data, strict=True)


def test_a_packed_file_that_ends_too_early_gives_what_is_there() -> None:
    many = made.document([made.event(f"op{i % 7}", float(i), 0.5) for i in range(5000)])
    packed = gzip.compress(made.as_bytes(many))
    loaded = opened(packed[: len(packed) // 2])
    assert 500 < len(loaded.trace) < 5000
    assert "ends too early" in loaded.health.line()
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 255
    assert opened(bytes(damaged)).health.notes


def test_a_broken_head_does_not_cost_the_events() -> None:
    loaded = opened(replaced(b'"record_shapes": 1', b'"user": "say "hi"", "record_shapes": 1'))
    assert names(loaded) == ALL
    assert "before the events" in loaded.health.line()
    assert loaded.trace.origin_ns == made.BASE


def test_events_that_lack_what_an_event_needs_are_counted_and_left_out() -> None:
    document = made.cpu()
    document["traceEvents"] += [
        {"name": "no phase", "ts": 1},
        {"ph": "X", "name": "no time", "pid": 1, "tid": 1, "dur": 3},
        17,
        None,
        {"ph": "X", "name": "no duration", "pid": 1, "tid": 1, "ts": 1500.0},
        {"ph": "X", "name": "negative", "pid": 1, "tid": 1, "ts": 1600.0, "dur": -5, "cat": "cpu_op"},
        {"ph": "X", "cat": "cpu_op", "name": "texts", "pid": "1", "tid": "1", "ts": "1700.5", "dur": "2"},
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": ["a", "list"],
            "pid": [],
            "tid": {},
            "ts": 1800,
            "dur": 1,
            "args": [],
        },
    ]
    loaded = opened(document)
    assert loaded.health.dropped == 4
    assert loaded.health.repaired == 3
    assert names(loaded)[4:] == ["no duration", "negative", "texts", "['a', 'list']"]
    assert all(event.self_cpu_time_total >= 0 for event in loaded.events())


def test_events_at_time_0_are_left_out_where_time_is_that_of_a_clock() -> None:
    document = made.gpu("2021")
    document["traceEvents"] += [
        made.kernel("lost", 0, 5, cat="Kernel"),
        made.event("lost too", 0, 5, "Operator"),
    ]
    loaded = opened(document)
    assert loaded.health.dropped == 2
    assert "at time 0" in loaded.health.line()
    assert "lost" not in names(loaded)
    short = opened([made.event("begins at 0", 0, 5), made.event("later", 7, 5)])
    assert names(short) == ["begins at 0", "later"]
    assert short.health


def test_beginnings_and_ends_without_each_other_are_told() -> None:
    marks = [("E", 1.0, ""), ("B", 2.0, "open"), ("B", 3.0, "closed"), ("E", 4.0, "")]
    events = [{"ph": p, "ts": t, "name": n, "cat": "cpu_op", "pid": 1, "tid": 1} for p, t, n in marks]
    loaded = opened(events)
    assert names(loaded) == ["open", "closed"]
    assert (loaded.health.dropped, loaded.health.repaired, loaded.health.unfinished) == (1, 1, 1)


def test_events_that_overlap_keep_times_that_add_up() -> None:
    loaded = opened([made.event("a", 0.0, 10.0), made.event("b", 5.0, 10.0), made.event("c", 6.0, 2.0)])
    by_name = {row.key: row for row in loaded.key_averages()}
    assert [by_name[n].self_cpu_time_total for n in "abc"] == [10.0, 8.0, 2.0]
    assert loaded.health.repaired == 1
    assert "overlap" in loaded.health.line()


def test_numbers_that_events_share_do_not_mix_up_devices() -> None:
    document = made.gpu()
    late = [made.event("aten::later", 1300.0, 10.0, **{"External id": 2})]
    late.append(made.kernel("late", 1310.0, 3.0, correlation=77, **{"External id": 2}))
    document["traceEvents"] += late
    loaded = opened(document)
    by_name = {row.key: row.self_device_time_total for row in loaded.key_averages()}
    assert (by_name["aten::addmm"], by_name["aten::later"]) == (150.0, 3.0)
    assert "External ids that several events share" in loaded.health.line()


def test_callers_that_name_each_other_do_not_hang() -> None:
    calls = [
        made.event(f"f{i}", 1.0, 9.0, "python_function", **{"Python id": i, "Python parent id": 3 - i})
        for i in (1, 2)
    ]
    loaded = opened([*calls, made.event("op", 2.0, 1.0)], python_functions=True)
    assert set(names(loaded)) == {"f1", "f2", "op"}


MANY = 20_000


def crowd(what: str) -> list[dict[str, Any]]:
    """Files that take for ever where each level, each repeated number or each deep call costs a pass."""
    if what == "equal slices":
        memory = {
            "ph": "i",
            "name": "[memory]",
            "pid": made.PID,
            "tid": made.PID,
            "ts": 20.0,
            "args": {"Bytes": 8},
        }
        return [made.event(f"a{i % 3}", 1.0, 9.0) for i in range(MANY)] + [memory] * 1000
    if what == "slices inside each other":
        return [made.event("a", float(i), 2.0 * (MANY - i)) for i in range(MANY)]
    if what == "calls inside each other":
        ids = [{"Python id": i + 1, "Python parent id": i or None} for i in range(MANY)]
        calls = [
            made.event("f", float(i), 2.0 * (MANY - i), "python_function", **ids[i]) for i in range(MANY)
        ]
        return [*calls, made.event("a", MANY - 1.0, 1.0)]
    if what == "stairs":
        return [made.event("a", float(i), 5.0) for i in range(MANY)]
    same = {"External id": 7, "correlation": 5}
    ops = [made.event("a", 10.0 * i, 9.0, **same) for i in range(MANY)]
    return ops + [made.kernel("k", 10.0 * i + 5, 1.0, **same) for i in range(MANY)]


@pytest.mark.parametrize(
    "what", ["equal slices", "slices inside each other", "calls inside each other", "stairs", "equal numbers"]
)
def test_no_file_is_too_deep(what: str) -> None:
    loaded = opened(crowd(what))
    rows = loaded.key_averages(group_by_stack_n=2)
    assert all(row.self_cpu_time_total >= 0 for row in rows)
    assert loaded.total_average().count > 0


# -------------------------------------------------------------------------------- what is refused

OTHERS: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t ",
    "text": b"hello\n",
    "a page": b"<html></html>",
    "binary": bytes(range(256)),
    "an object without events": b'{"a": 1}',
    "an execution trace": b'{"schema": "1.1.1-chakra.0.0.4", "nodes": []}',
    "events that are no list": b'{"traceEvents": 5}',
    "a list of numbers": b"[1, 2, 3]",
    "a list of lists": b"[[1, 2], [3, 4]]",
    "a list of other objects": b'[{"a": 1}, {"b": 2}]',
    "packed text": gzip.compress(b"hello"),
    "packed nothing": gzip.compress(b""),
    "half a gzip header": b"\x1f\x8b\x08",
    "a number": b"17",
    "a string": b'"traceEvents"',
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_trace_is_refused_in_one_sentence(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(OTHERS[what])
    with pytest.raises(NotATraceError) as refused:
        load(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("data", [b"[]", b'{"traceEvents": []}', b'{"schemaVersion": 1, "traceEvents": [ ]}'])
def test_a_trace_without_events_is_a_trace(data: bytes) -> None:
    loaded = opened(data, strict=True)
    assert loaded.events() == []
    assert loaded.key_averages().table() == ""
    assert loaded.device_usage() == []


def test_a_directory_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="directory"):
        load(tmp_path)


class Endless:
    """A file that goes on for ever."""

    def __init__(self, head: bytes, more: bytes) -> None:
        self.head, self.more, self.given = head, more, 0

    def read(self, size: int) -> bytes:
        head, self.head = self.head[:size], self.head[size:]
        data = head or (self.more * (size // len(self.more) + 1))[:size]
        self.given += len(data)
        return data


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b'{"traceEvents": [{"name": "', b"x"),
        (b'{"traceEvents": [{"name": "', b"}"),
        (b'{"traceEvents": [', b"["),
        (b'{"traceEvents": [', b'{"a":'),
        (b'{"a": "', b"x"),
        (b"{", b'"a": 1,'),
        (b'[{"ph": "X", "args": [', b"1,"),
    ],
)
def test_an_endless_event_is_refused_before_it_fills_the_memory(head: bytes, more: bytes) -> None:
    file = Endless(head, more)
    with pytest.raises(RefusedTraceError, match="no end within"):
        load(file, max_event_bytes=1 << 20)
    assert file.given < 16 << 20


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mindtorch_prof.load.byte_source"], "_RATIO_FROM", 1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(b'{"traceEvents": [' + b" " * (8 << 20)) + packer.flush()
    with pytest.raises(RefusedTraceError, match="500 times"):
        opened(bomb)
    with pytest.raises(RefusedTraceError, match="larger than"):
        opened(WHOLE, max_bytes=100)


# -------------------------------------------------------------------------------- whatever comes

SEEDS = [
    WHOLE,
    made.as_bytes(made.cpu()["traceEvents"], indent=1),
    *(made.as_bytes(made.gpu(style)) for style in ("cuda", "2021", "rocm", "ascend")),
    gzip.decompress((FACTS / "torch_trace.json.gz").read_bytes())[:20_000],
    gzip.compress(WHOLE),
]
TOKENS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"NaN",
    b"\0",
    b"\xff",
    b"null",
    b"1e999",
    b"\\ud800",
    b"]}",
    b"-",
]
JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    1e300,
    "x",
    "",
    [],
    {},
    [1],
    {"a": 1},
    2**63,
    -(2**63),
    "12",
    3.7,
    '"',
    "\n",
]


@st.composite
def broken_bytes(draw: Callable[[Any], Any]) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        place, length = draw(st.integers(0, len(data))), draw(st.sampled_from([1, 2, 8, 64, 1000]))
        other = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(["cut", "end", "insert", "overwrite", "splice", "swap"]))
        if how == "cut":
            del data[place : place + length]
        elif how == "end":
            del data[place:]
        elif how == "insert":
            data[place:place] = draw(st.sampled_from(TOKENS))
        elif how == "overwrite":
            data[place : place + length] = draw(st.binary(max_size=8))
        elif how == "splice":
            data[place:place] = data[other : other + length]
        else:
            first, second = sorted((place, other))
            data[first:] = data[second:] + data[first:second]
    return bytes(data)


@st.composite
def strange_documents(draw: Callable[[Any], Any]) -> bytes:
    document = json.loads(
        made.as_bytes(draw(st.sampled_from([made.cpu(), made.gpu(), made.gpu("2021"), made.gpu("ascend")])))
    )
    events = document["traceEvents"]
    for _ in range(draw(st.integers(1, 12))):
        event = events[draw(st.integers(0, len(events) - 1))]
        if not isinstance(event, dict):
            continue
        args = event.get("args")
        holder = args if isinstance(args, dict) and args and draw(st.booleans()) else event
        if holder:
            holder[draw(st.sampled_from(sorted(holder)))] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        more = copy.deepcopy(draw(st.sampled_from([event, *JUNK])))
        events.insert(draw(st.integers(0, len(events))), more)
    return json.dumps(document).encode()


def check(data: bytes) -> None:
    try:
        loaded = load(io.BytesIO(data))
    except TraceError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert "\n" not in message
        return
    averages = loaded.key_averages(group_by_input_shape=True, group_by_stack_n=2)
    assert all(row.self_cpu_time_total >= 0 and row.self_device_time_total >= 0 for row in averages)
    averages.table()
    loaded.device_usage()
    for event in loaded.events():
        assert event.kernels is not None
        assert event.cpu_parent is not event
    if not loaded.health:
        assert loaded.health.line()


several = settings(
    max_examples=int(os.environ.get("MINDTORCH_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@several
@given(broken_bytes())
def test_changed_bytes_give_a_trace_or_a_clean_error(data: bytes) -> None:
    check(data)


@several
@given(strange_documents())
def test_values_of_wrong_types_give_a_trace_or_a_clean_error(data: bytes) -> None:
    check(data)
