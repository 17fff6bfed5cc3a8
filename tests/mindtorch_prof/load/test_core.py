"""The compiled reader: the same Trace, health and errors as the Python reader, for every input."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kineto_documents as documents_of_torch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_inputs import change_bytes, change_tokens, documents, file_of, generated, pieces
from reader_outcomes import difference, outcome, was_taken

from mindtorch_prof import core
from mindtorch_prof.load.collect import Collector
from mindtorch_prof.load.core import MODULE, compiled_reader

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


@pytest.mark.parametrize("kernel", ["gemm", "", 'a "b" \\n', 5, None, ["gemm"], {"name": "gemm"}])
def test_the_kernels_of_launch_calls_are_read_alike(kernel: object) -> None:
    def call(start: float, **args: object) -> dict[str, Any]:
        return documents_of_torch.event("hipLaunchKernel", start, 1.0, "cuda_runtime", **args)

    data = as_file(
        op(), call(1.0, correlation=1), call(3.0, kernel=kernel, correlation=2), call(5.0, kernel=kernel)
    )
    assert was_taken(data) == 4
    assert difference(data) is None


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
        (b"aten::add", b"lone \\ude00"),
        (b"aten::add", b"surrogate in UTF-8 \xed\xa0\x80"),
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


def test_decimals_of_all_lengths_give_the_same_nanoseconds() -> None:
    random_ = random.Random(0)
    texts = [
        f"{random_.randrange(10 ** random_.randrange(1, 16))}.{random_.randrange(10**digits):0{digits}}"
        for digits in (1, 2, 3, 4, 5, 6, 9)
        for _ in range(300)
    ]
    texts += [
        f"{random_.randrange(2**52, 9 * 10**15)}.{random_.choice(('499', '5', '501'))}" for _ in range(300)
    ]
    events = b",".join(one_event().replace(b"1000.5", text.encode()) for text in texts)
    data = b'{"traceEvents": [' + events + b"]}"
    assert was_taken(data) == len(texts)
    assert difference(data) is None


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


@settings(max_examples=300, suppress_health_check=[*HealthCheck])
@given(documents(), st.sampled_from((64, 1000, None)))
def test_random_documents_are_read_alike(data: bytes, chunk: int | None) -> None:
    assert difference(data, chunk) is None


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from((64, 1000, None)))
def test_changed_files_are_read_alike(seed: int, chunk: int | None) -> None:
    random_ = random.Random(seed)
    torch_events = pieces(
        json.dumps(random_.choice((documents_of_torch.cpu(), documents_of_torch.gpu()))).encode()
    )
    data = file_of([*torch_events, *(generated(random_) for _ in range(5))], random_)
    for changed in (data, change_bytes(data, random_), change_tokens(data, random_)):
        assert difference(changed, chunk) is None


def one_event(**fields: Any) -> bytes:
    return json.dumps(op(**fields)).encode()


def a_handler(**methods: Any) -> SimpleNamespace:
    """What a Reader calls: every text has the number 0."""
    number = lambda text: 0
    usual = {
        "meaning": lambda cat: ("host", 0),
        "layout": lambda keys: (False, [], []),
        "counted": lambda cat, count: None,
        "columns": lambda table, columns, coarse: None,
        "group": lambda cat, text: None,
        **dict.fromkeys(("name", "thread", "inputs", "stack", "extra", "device_extra"), number),
    }
    return SimpleNamespace(**(usual | methods))


def a_reader(**methods: Any) -> Any:
    module = core.compiled(MODULE)
    assert module is not None
    return module.Reader(a_handler(**methods), "Synthetic", "Allocates", 10_000_000)


def test_the_rows_of_slices_are_handed_over_together_at_the_flush() -> None:
    handed: list[tuple[str, dict[str, list[int]], bool]] = []
    as_lists = lambda columns: {name: column.tolist() for name, column in columns.items()}
    reader = a_reader(
        columns=lambda table, columns, coarse: handed.append((table, as_lists(columns), coarse))
    )
    text = one_event(ts=1.5, dur=2) + b", " + one_event(ts=3, dur=0.25)
    assert (reader.take(text, len(text)), reader.take(b"", 0), handed) == (2, 0, [])
    reader.flush()
    ((table, columns, coarse),) = handed
    assert (table, coarse) == ("host", False)
    assert columns["start"] == [1500, 3000]
    assert columns["length"] == [2000, 250]
    assert columns["external"] == [1, 1]
    reader.flush()
    assert len(handed) == 1


def test_only_the_text_up_to_the_end_is_read() -> None:
    text = one_event() + b"," + one_event()
    reader = a_reader()
    assert reader.take(text, len(one_event())) == 1
    assert reader.take(text, len(one_event()) - 1) is None
    assert reader.take(text, len(one_event()) + 1) is None
    for end in (-1, len(text) + 1):
        with pytest.raises(ValueError, match="is outside of"):
            reader.take(text, end)


def test_what_is_new_is_asked_for_once() -> None:
    asked: list[str | bytes] = []
    reader = a_reader(name=lambda text: asked.append(text) or len(asked) - 1)
    text = b",".join(one_event(name=name) for name in ("a", "b\n", "a", "b\n"))
    assert [reader.take(text, len(text)) for _ in range(3)] == [4, 4, 4]
    assert asked == ["a", b'"b\\n"']


@pytest.mark.parametrize("method", ["meaning", "layout", "name", "thread", "counted", "group", "columns"])
def test_an_error_of_the_handler_is_raised_and_the_reader_goes_on(method: str) -> None:
    fails = True

    def fail(*args: Any) -> Any:
        if fails:
            raise LookupError(method)
        return getattr(a_handler(), method)(*args)

    reader = a_reader(**{method: fail})
    event = one_event(pid=None) if method == "group" else one_event()
    with pytest.raises(LookupError, match=method):
        reader.flush() if reader.take(event, len(event)) else None
    fails = False
    assert reader.take(event, len(event)) == 1


@pytest.mark.parametrize(
    ("method", "answer", "error"),
    [
        ("name", -5, OverflowError),
        ("name", 2**40, OverflowError),
        ("name", "a", TypeError),
        ("layout", (False, [7], []), ValueError),
        ("layout", (False, [], [-1]), ValueError),
        ("layout", (False, [0] * 300, []), ValueError),
        ("layout", (False, "a", []), TypeError),
        ("meaning", (1, 2), TypeError),
    ],
)
def test_answers_of_a_wrong_kind_are_refused(method: str, answer: Any, error: type[Exception]) -> None:
    event = one_event()
    with pytest.raises(error):
        a_reader(**{method: lambda text: answer}).take(event, len(event))


def test_a_reader_cannot_be_called_while_it_reads() -> None:
    event = one_event()
    reader = a_reader(name=lambda text: reader.take(event, len(event)))
    with pytest.raises(RuntimeError, match="another slice is being read"):
        reader.take(event, len(event))
    reader = a_reader(name=lambda text: reader.flush())
    with pytest.raises(RuntimeError, match="a slice is being read"):
        reader.take(event, len(event))


def test_a_reader_releases_its_handler() -> None:
    handler = a_handler()
    module = core.compiled(MODULE)
    assert module is not None
    before = sys.getrefcount(handler)
    for _ in range(3):
        reader = module.Reader(handler, "Synthetic", "Allocates", 0)
        reader.take(one_event(), len(one_event()))
    del reader
    assert sys.getrefcount(handler) == before


def test_the_collector_counts_what_is_taken() -> None:
    collector = Collector()
    reader = compiled_reader(collector)
    assert reader is not None
    text = one_event() + b"," + one_event(cat="kernel")
    assert reader.take(text, len(text)) == 2
    assert reader.take(b"no JSON", 7) is None
    assert (collector.count, dict(collector.categories)) == (2, {"cpu_op": 1, "kernel": 1})


def test_python_reads_where_the_variable_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(core.VARIABLE, "python")
    assert compiled_reader(Collector()) is None
