"""`load`: a trace opens, anything else is refused in one sentence, whatever the bytes."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest
from average_rows import row
from fact_files import FACTS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kineto_documents import load_document
from synthetic_traces import linear_with_synthetic_ops

from mindtorch_prof import load
from mindtorch_prof.export.chrome import export_chrome_trace
from mindtorch_prof.load import NotATraceError, TraceError

SOURCE = Path(__file__).parents[3] / "src"
RECORDED_BY_OTHERS = (
    "h100_qwen_infer_stack_memory.json.gz",
    "mi300_resnet_ddp_act_checkpoint.json.gz",
    "nvidia_ddp_train_nccl.json.gz",
    "torch213_cpu_train_all_on.pt.trace.json.gz",
    "torch213_cpu_train_ddp_threads.pt.trace.json.gz",
    "v100_resnet50_train_2021.pt.trace.json.gz",
)


def test_python_calls_are_rows_of_torchs_files_where_they_are_wanted() -> None:
    call = documents.event(
        "model.py(3): forward", 1005.0, 60.0, "python_function", **{"Python id": 1, "Python parent id": None}
    )
    document = documents.cpu()
    document["traceEvents"].append(call)
    assert "model.py(3): forward" not in {r.key for r in load_document(document).key_averages()}
    document["host_name"] = "there"  # as torch does since 2.13, whose tables list Python calls
    loaded = load_document(document)
    assert row(loaded, "model.py(3): forward").self_cpu_time_total == 60.0 - 50.25
    assert row(loaded, "ProfilerStep*").self_cpu_time_total == 40.0
    without = load_document(document, python_functions=False)
    assert [r.key for r in without.key_averages()][1] == "aten::linear"
    linear = next(e for e in loaded.events() if e.name == "aten::linear")
    assert linear.stack == ["model.py(3): forward"]


def test_opening_a_file_and_printing_its_table_loads_no_tensor_code(tmp_path: Path) -> None:
    path = documents.write(tmp_path / "t.json", documents.gpu()["traceEvents"])
    program = f"""
import sys
from mindtorch_prof import load
loaded = load({str(path)!r})
loaded.export_chrome_trace({str(tmp_path / "again.json")!r})
assert "aten::addmm" in loaded.key_averages().table()
print([name for name in ("mindtorch_v2", "torch", "scipy", "rich", "pandas") if name in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_told_to_a_function_or_shown_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(documents.as_bytes(documents.cpu()))
    told: list[tuple[int, int | None]] = []
    load(path, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    load(path)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    load(path)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
    monkeypatch.setattr(sys.modules["mindtorch_prof.load.open_trace"], "_BAR_FROM", 100)
    load(path)
    assert "t.json" in sys.stderr.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", RECORDED_BY_OTHERS)
def test_a_directory_of_traces_gives_sums_that_hold(name: str, ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces" / name)
    averages = loaded.key_averages()
    assert len(averages) > 20
    whole = sum(r.self_cpu_time_total for r in averages)
    devices = loaded.device_breakdown()
    busy = sum(stream.busy_us for each in devices for stream in each.streams)
    busy += sum(each.launched_before_ns for each in devices) / 1000
    for r in averages:
        assert r.self_cpu_time_total >= 0
        assert r.cpu_time_total <= whole * (1 + 1e-9)
        assert 0 <= r.self_device_time_total <= busy * (1 + 1e-9) + 1e-6


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


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_trace_is_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(OTHERS[case])
    with pytest.raises(NotATraceError) as refused:
        load(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("data", [b"[]", b'{"traceEvents": []}', b'{"schemaVersion": 1, "traceEvents": [ ]}'])
def test_a_trace_without_events_is_a_trace(data: bytes) -> None:
    loaded = load_document(data, strict=True)
    assert loaded.events() == []
    assert loaded.key_averages().table() == ""
    assert loaded.device_breakdown() == []


WHOLE = documents.as_bytes(documents.cpu())
SEEDS = [
    WHOLE,
    documents.as_bytes(documents.cpu()["traceEvents"], indent=1),
    *(documents.as_bytes(documents.gpu(style)) for style in ("cuda", "2021", "rocm", "ascend")),
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
        documents.as_bytes(
            draw(
                st.sampled_from(
                    [documents.cpu(), documents.gpu(), documents.gpu("2021"), documents.gpu("ascend")]
                )
            )
        )
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
    loaded.device_breakdown()
    for event in loaded.events():
        assert event.kernels is not None
        assert event.cpu_parent is not event
    if not loaded.health:
        assert loaded.health.line()


several = settings(
    max_examples=int(os.environ.get("MINDTORCH_EXAMPLES", "100")),
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


def test_a_loaded_trace_answers_from_what_ran_alone(tmp_path: Path) -> None:
    export_chrome_trace(linear_with_synthetic_ops(), tmp_path / "t.json")
    loaded = load(tmp_path / "t.json")
    ran = loaded.as_recorded()
    assert isinstance(ran, type(loaded))
    assert [event.name for event in ran.events()] == ["forward", "aten::linear", "aten::t", "aten::linear"]
    assert (len(loaded.events()), len(ran.to_dict()["name"]), ran.health.line()) == (10, 4, "")
