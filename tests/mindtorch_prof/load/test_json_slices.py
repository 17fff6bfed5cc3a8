"""JSON by slices: every form of a file gives the same events; broken JSON is mended and counted."""

from __future__ import annotations

import gzip
import io
import sys

import kineto_documents as documents
import pytest
from average_rows import row, rows
from kineto_documents import event_names, load_document

from mindtorch_prof import load
from mindtorch_prof.load import BrokenTraceError, RefusedTraceError, TraceError

WHOLE = documents.as_bytes(documents.cpu())
ALL = ["ProfilerStep*", "aten::linear", "aten::t", "aten::addmm"]


def replaced(old: bytes, new: bytes) -> bytes:
    assert WHOLE.count(old) == 1, old
    return WHOLE.replace(old, new)


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


@pytest.mark.parametrize("case", MENDED)
def test_an_event_that_is_no_valid_json_is_mended(case: str) -> None:
    data, name = MENDED[case]
    loaded = load_document(data)
    assert event_names(loaded) == ["ProfilerStep*", "aten::linear", name, "aten::addmm"]
    assert (loaded.health.repaired, loaded.health.dropped) == (1, 0)
    assert "byte" in loaded.health.line()
    assert "Incomplete" in loaded.key_averages().table() or "Repaired" in loaded.key_averages().table()
    with pytest.raises(BrokenTraceError, match="mended"):
        load_document(data, strict=True)


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b"inf", b"-nan", b"nan(ind)"])
def test_numbers_that_json_does_not_have_are_taken_for_missing(value: bytes) -> None:
    loaded = load_document(replaced(b'"External id": 3', b'"External id": 3, "loss": ' + value))
    assert event_names(loaded) == ALL
    assert loaded.health.repaired == 1
    gone = load_document(replaced(b'"ts": 1011.0', b'"ts": ' + value))
    assert event_names(gone) == ["ProfilerStep*", "aten::linear", "aten::addmm"]
    assert gone.health.dropped == 1
    assert "no time" in gone.health.line()


@pytest.mark.parametrize("end", range(1, 500, 7))
def test_a_file_that_ends_too_early_gives_what_is_there(end: int) -> None:
    data = WHOLE[:-end]
    loaded = load_document(data)
    complete = [
        n
        for n, text in (("ProfilerStep*", b"ProfilerStep#3"), *((n, n.encode()) for n in ALL[1:]))
        if text in data
    ]
    assert event_names(loaded) in (complete, complete[:-1])
    if end > 1:
        assert loaded.health.notes
    with pytest.raises(TraceError):
        load_document(data, strict=True)


def test_a_broken_head_does_not_cost_the_events() -> None:
    loaded = load_document(replaced(b'"record_shapes": 1', b'"user": "say "hi"", "record_shapes": 1'))
    assert event_names(loaded) == ALL
    assert "before the events" in loaded.health.line()
    assert loaded.trace.origin_ns == documents.BASE


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


def forms() -> dict[str, bytes]:
    document = documents.cpu()
    plain = documents.as_bytes(document)
    compact = documents.as_bytes(document, separators=(",", ":"))
    tail_first = {
        "traceEvents": document["traceEvents"],
        **{k: v for k, v in document.items() if k != "traceEvents"},
    }
    return {
        "object": plain,
        "compact": compact,
        "pretty": documents.as_bytes(document, indent=2),
        "events first": documents.as_bytes(tail_first),
        "array": documents.as_bytes(document["traceEvents"]),
        "array without an end": documents.as_bytes(document["traceEvents"])[:-1],
        "with a byte order mark": b"\xef\xbb\xbf" + plain,
        "blanks around": b"\n\n  " + plain + b"\n\n",
        "gzip": gzip.compress(plain),
        "gzip in two parts": gzip.compress(plain[:300]) + gzip.compress(plain[300:]),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_of_a_file_gives_the_same_rows(form: str) -> None:
    data = forms()[form]
    loaded = load(io.BytesIO(data), strict=True)
    assert rows(loaded.key_averages()) == rows(load_document(documents.cpu()).key_averages())
    assert row(loaded, "aten::linear", group_by_input_shape=True).input_shapes == [[2, 4], [3, 4], [3]]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_where_a_file_is_cut_into_slices_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mindtorch_prof.load.byte_source"], "CHUNK", size)
    document = documents.gpu()
    document["traceEvents"][2]["args"]["note"] = 'a "}, {" inside, and \\ too: ]}'
    document["traceEvents"][3]["args"]["nested"] = [{"ph": "X"}, {"ph": "X"}]
    for data in (documents.as_bytes(document), documents.as_bytes(document["traceEvents"], indent=1)):
        loaded = load(io.BytesIO(data), strict=True)
        assert rows(loaded.key_averages()) == rows(load_document(documents.gpu()).key_averages())
