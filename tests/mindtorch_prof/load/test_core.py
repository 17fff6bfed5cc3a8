"""The compiled reader: the same Trace, health and errors as the Python reader, for every input."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import kineto_documents as documents_of_torch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_inputs import change_bytes, change_tokens, documents, file_of, generated, pieces
from reader_outcomes import difference, outcome, was_taken

from mindtorch_prof import core
from mindtorch_prof.load.core import MODULE

needs_the_module = pytest.mark.skipif(
    core.compiled(MODULE) is None,
    reason="the compiled reader was not built, or is not wanted (MINDTORCH_CORE)",
)
pytestmark = needs_the_module


def as_file(*events: Any, **top: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": events}).encode()


def op(**fields: Any) -> dict[str, Any]:
    event = documents_of_torch.event("aten::add", 1000.5, 3.25, **{"External id": 1})
    return {**event, **fields}


@pytest.mark.parametrize("document", [documents_of_torch.cpu(), documents_of_torch.gpu()], ids=["cpu", "gpu"])
def test_torch_files_are_read_alike_in_chunks_of_any_size(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode()
    assert was_taken(data) == len(document["traceEvents"])
    assert [difference(data, chunk) for chunk in (50, 100, 333, 1000, None)] == [None] * 5


def test_recorded_files_are_read_alike(ecosystem: Path) -> None:
    for path in sorted((ecosystem / "ranks").rglob("*.json.gz"))[:3]:
        data = gzip.decompress(path.read_bytes())
        assert was_taken(data) > 3_000
        assert difference(data) is None


@pytest.mark.parametrize(
    "event",
    [
        op(name=5),
        op(name="caf\u00e9 \U0001f600"),
        op(name='"quoted" \\ \n'),
        op(ts="1000.5"),
        op(ts=True),
        op(ts=-0.0),
        op(ts=9e15),
        op(dur=-1),
        op(dur=None),
        op(pid=None, tid=[1]),
        op(pid=1.0, tid=True),
        op(ph=None),
        op(ph="B"),
        op(cat=None),
        op(cat=7),
        op(cat="never met"),
        op(args=None),
        op(args=[1]),
        op(args={"External id": "7"}),
        op(args={"External id": 2**63}),
        op(args={"External id": -0.0}),
        op(args={"Input Dims": [[2, 3], []], "Call stack": "a.py(1): f;b.py(2): g", "flops": 12.0}),
        op(args={"external id": 3, "finished": False, "Collective name": "allreduce"}),
        op(cat="kernel", args={"device": 0, "stream": 7, "correlation": 3, "grid": [1, 1, 1]}),
        op(cat="kernel", args={"stream": "stream 7"}),
        op(cat="kernel", pid=10_000_003, args={"device": 0, "stream": 7}),
        op(cat="python_function", args={"Python id": 1, "Python parent id": None}),
        op(cat="cuda_runtime", args={"External id": 0, "external id": 4, "correlation": 9}),
        [1, 2],
        "no event",
        {},
    ],
    ids=str,
)
def test_an_event_with_a_rare_field_is_read_alike_among_others(event: Any) -> None:
    kernel = op(cat="kernel", args={"device": 0, "stream": 7, "correlation": 9, "block": [1]})
    data = as_file(op(), kernel, event, op(name="aten::mul", ts=1001.0, dur=1.0), kernel)
    assert [difference(data, chunk) for chunk in (64, None)] == [None, None]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"1000.5", b"01"),
        (b"1000.5", b"1."),
        (b"1000.5", b"NaN"),
        (b"1000.5", b"1e400"),
        (b"1000.5", b"-0"),
        (b"1000.5", b"1623142623460111.4995"),
        (b"1000.5", b"9007199254740992.5"),
        (b"1000.5", b"0.00049999999999999999999"),
        (b"aten::add", b"a\\u00e9\\ud83d\\ude00"),
        (b"aten::add", b"lone \\ud83d"),
        (b"aten::add", b"C:\\path"),
        (b"aten::add", b"not UTF-8 \xff"),
        (b"aten::add", b"control \x01"),
        (b'"External id"', b'"External \\u0069d"'),
        (b'"External id": 1', b'"External id": 1, "External id": 2'),
        (b'"name"', b'"name": "first", "name"'),
        (b'"args"', b'"args": {"a": 1}, "args"'),
        (b'{"External id": 1}', b'{"a": %s1%s}' % (b"[" * 100, b"]" * 100)),
        (b'"External id": 1', b'"b": 1, "External id": 1, "a": [{"x": 1}, {"y": 2}]'),
    ],
)
def test_unusual_json_is_read_alike(old: bytes, new: bytes) -> None:
    data = as_file(op(), op(ts=1002.0)).replace(old, new, 1)
    assert [difference(data, chunk) for chunk in (64, None)] == [None, None]
    assert difference(data, strict=True) is None


def test_rows_stay_in_the_order_of_the_file_where_python_adds_some() -> None:
    """Events that start together and are equally long are in the order of the file."""
    same = [op(name=f"op {number}", args={"External id": number}) for number in range(60)]
    for number in range(0, 60, 7):
        same[number]["args"]["External id"] = f"{number}"
    data = as_file(*same)
    assert difference(data, 500) is None
    assert dict(outcome("c", data, 500))["external"][1] == list(range(60))


def test_more_layouts_and_categories_than_are_kept_are_read_alike() -> None:
    events = [op(args={f"key {number}": number, "External id": number}) for number in range(400)]
    events += [op(cat=f"category {number}") for number in range(100)]
    assert difference(as_file(*events), 5000) is None


def test_texts_beyond_what_is_cached_are_read_alike() -> None:
    events = [op(name=f"{number} " + "x" * 9_000, args={"note": "y" * 9_000}) for number in range(1_200)]
    assert difference(as_file(*events)) is None


@settings(max_examples=300, deadline=None, suppress_health_check=[*HealthCheck])
@given(documents(), st.sampled_from((64, 1000, None)))
def test_random_documents_are_read_alike(data: bytes, chunk: int | None) -> None:
    assert difference(data, chunk) is None


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((64, 1000, None)))
def test_changed_files_are_read_alike(seed: int, chunk: int | None) -> None:
    random_ = random.Random(seed)
    torch_events = pieces(
        json.dumps(random_.choice((documents_of_torch.cpu(), documents_of_torch.gpu()))).encode()
    )
    data = file_of([*torch_events, *(generated(random_) for _ in range(5))], random_)
    for changed in (data, change_bytes(data, random_), change_tokens(data, random_)):
        assert difference(changed, chunk) is None
