"""OpenTelemetry's spans: valid OTLP/JSON, one tree, the longest events, in files and sent to a collector."""

from __future__ import annotations

import gzip
import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from kineto_documents import BASE, HOSTILE_NAME, document, event, kernel, load_document

from mindtorch_prof import cli, load
from mindtorch_prof.export import otlp
from mindtorch_prof.export.otlp import export_otlp

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def spans_in(path: Path) -> list[dict[str, Any]]:
    """The spans of a file, each checked against the rules of OTLP/JSON."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    spans = []
    for line in text.splitlines():
        (of_resource,) = json.loads(line)["resourceSpans"]
        attributes(of_resource["resource"])
        (of_scope,) = of_resource["scopeSpans"]
        assert of_scope["scope"]["name"] == "mindtorch_prof"
        spans += of_scope["spans"]
    for span in spans:
        assert re.fullmatch(r"[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch(r"[0-9a-f]{16}", span["spanId"])
        assert re.fullmatch(r"[0-9a-f]{16}", span.get("parentSpanId", "0" * 16))
        assert span["kind"] == 1
        assert span["name"]
        assert 0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) < 1 << 63
        assert isinstance(span["startTimeUnixNano"], str)
        attributes(span)
    return spans


def attributes(of: dict[str, Any]) -> dict[str, Any]:
    values = {}
    for each in of["attributes"]:
        ((kind, value),) = each["value"].items()
        assert kind in ("stringValue", "intValue")
        assert isinstance(value, str)  # 64-bit integers too
        assert each["key"] not in values
        values[each["key"]] = int(value) if kind == "intValue" else value
    return values


def parents(spans: list[dict[str, Any]]) -> dict[str, str | None]:
    names = {span["spanId"]: span["name"] for span in spans}
    assert len(names) == len(spans)
    return {span["name"]: names.get(span.get("parentSpanId", "")) for span in spans}


def trace() -> Any:
    return load_document(
        document(
            [
                event("step", 0.0, 100, "user_annotation"),
                event("aten::linear", 10.0, 50, **{"External id": 1, "Input Dims": [[2, 4], [3]]}),
                event("aten::addmm", 20.0, 30, **{"External id": 2}),
                event("cudaLaunchKernel", 30.0, 5, "cuda_runtime", **{"External id": 2, "correlation": 7}),
                kernel("gemm", 60.0, 20, **{"External id": 2, "correlation": 7}),
            ],
            distributedInfo={"rank": 3, "world_size": 8},
        )
    )


def test_events_are_spans_of_one_tree_and_kernels_belong_to_the_op_that_launched_them(tmp_path: Path) -> None:
    path = tmp_path / "a.otlp.jsonl"
    assert export_otlp(trace(), path) == 6
    spans = spans_in(path)
    assert len({span["traceId"] for span in spans}) == 1
    assert parents(spans) == {
        "torch.profiler": None,
        "step": "torch.profiler",
        "aten::linear": "step",
        "aten::addmm": "aten::linear",
        "cudaLaunchKernel": "aten::addmm",
        "gemm": "aten::addmm",
    }
    by_name = {span["name"]: span for span in spans}
    assert int(by_name["gemm"]["startTimeUnixNano"]) == BASE + 60_000
    assert int(by_name["gemm"]["endTimeUnixNano"]) == BASE + 80_000
    assert attributes(by_name["gemm"]) == {
        "torch.kind": "kernel",
        "torch.device": "cuda:0",
        "torch.stream": 7,
    }
    assert attributes(by_name["aten::linear"])["torch.input_shapes"] == "[[2, 4], [3]]"
    resource = attributes(json.loads(path.read_text())["resourceSpans"][0]["resource"])
    assert (resource["service.name"], resource["torch.rank"], resource["torch.world_size"]) == ("torch", 3, 8)


def test_the_longest_events_stay_and_what_was_inside_others_belongs_to_those_that_stay(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.otlp.jsonl"
    assert export_otlp(trace(), path, max_spans=4) == 4
    spans = spans_in(path)
    assert list(parents(spans)) == ["torch.profiler", "step", "aten::linear", "aten::addmm"]
    assert attributes(spans[0]) == {"torch.events": 5, "torch.spans_left_out": 2}
    export_otlp(trace(), path, min_us=20)
    assert list(parents(spans_in(path))) == ["torch.profiler", "step", "aten::linear", "aten::addmm", "gemm"]
    export_otlp(trace(), path, min_us=40)
    assert parents(spans_in(path))["aten::linear"] == "step"
    document_of_kernels = document([event("aten::mm", 0.0, 1, **{"External id": 1}),
                                    kernel("gemm", 5.0, 20, **{"External id": 1})])  # fmt: skip
    export_otlp(load_document(document_of_kernels), path, min_us=10)
    assert parents(spans_in(path))["gemm"] == "torch.profiler"  # the op is shorter than 10 us


def test_a_recording_belongs_to_the_span_that_is_given_or_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.otlp.jsonl.gz"
    export_otlp(trace(), path, parent=PARENT)
    root = spans_in(path)[0]
    assert (root["traceId"], root["parentSpanId"]) == (PARENT[3:35], PARENT[36:52])
    context = SimpleNamespace(is_valid=True, trace_id=0xABC, span_id=0xDEF)
    api = ModuleType("opentelemetry.trace")
    api.get_current_span = lambda: SimpleNamespace(get_span_context=lambda: context)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)
    export_otlp(trace(), path)
    root = spans_in(path)[0]
    assert (int(root["traceId"], 16), int(root["parentSpanId"], 16)) == (0xABC, 0xDEF)
    context.is_valid = False
    export_otlp(trace(), path)
    assert "parentSpanId" not in spans_in(path)[0]


@pytest.mark.parametrize("parent", ["", "abc", "00-" + "0" * 32 + "-b7ad6b7169203331-01"])
def test_a_parent_that_is_no_traceparent_is_refused(parent: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no traceparent; expected 00-TRACE_ID-SPAN_ID-01"):
        export_otlp(trace(), tmp_path / "a.jsonl", parent=parent)
    with pytest.raises(ValueError, match="max_spans is -1"):
        export_otlp(trace(), tmp_path / "a.jsonl", max_spans=-1)
    assert not (tmp_path / "a.jsonl").exists()


def test_the_same_recording_has_the_same_ids_and_another_one_others(three_steps: Any, tmp_path: Path) -> None:
    one, two, other = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for path, recording in ((one, trace()), (two, trace()), (other, three_steps)):
        export_otlp(recording, path)
    assert one.read_bytes() == two.read_bytes()
    assert spans_in(one)[0]["traceId"] != spans_in(other)[0]["traceId"]


def test_many_spans_are_several_lines_that_collectors_accept(tmp_path: Path, ecosystem: Path) -> None:
    path = tmp_path / "a.otlp.jsonl"
    loaded = load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz")
    assert export_otlp(loaded, path) == 1000
    assert len(path.read_text().splitlines()) == 1  # a plain JSON document
    written = export_otlp(loaded, path, max_spans=0)
    assert written == 1 + 23_116 + 3_774
    assert max(map(len, path.read_text().splitlines())) < 1 << 20
    spans = spans_in(path)
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans) == written
    assert [span["name"] for span in spans if span.get("parentSpanId") not in ids] == [
        loaded.trace.settings.source_name
    ]


def test_names_are_text_whatever_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    export_otlp(load_document(document([event(HOSTILE_NAME, 0.0, 1), event("a\ud800b", 5.0, 1)])), path)
    assert {HOSTILE_NAME, "a?b"} <= {span["name"] for span in spans_in(path)}


def test_a_recording_of_nothing_is_one_span(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert load_document(document([])).export_otlp(path) == 1


# ---------------------------------------------------------------------------------------- collectors


class Collector:
    """A collector on this machine; keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, dict[str, Any]]] = []
        self.answer: tuple[int, bytes] = (200, b"{}")
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.received.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(collector.answer[0])
                self.end_headers()
                self.wfile.write(collector.answer[1])

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.01,))
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def test_spans_are_sent_to_a_collector_in_messages(
    collector: Collector, three_steps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "_MESSAGE_BYTES", 5_000)
    written = three_steps.export_otlp(collector.address)
    assert {(path, kind) for path, kind, _ in collector.received} == {("/v1/traces", "application/json")}
    counts = [len(m["resourceSpans"][0]["scopeSpans"][0]["spans"]) for _, _, m in collector.received]
    assert len(counts) > 2
    assert sum(counts) == written
    three_steps.export_otlp(collector.address + "/other/v1/traces", max_spans=1)
    assert collector.received[-1][0] == "/other/v1/traces"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, b""), "HTTP Error 500"),
        (
            (200, b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}'),
            "2 spans were refused: too old",
        ),
    ],
)
def test_what_a_collector_refuses_is_an_error_of_one_sentence(
    answer: tuple[int, bytes],
    said: str,
    collector: Collector,
    three_steps_path: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    collector.answer = answer
    assert cli.main(["convert", three_steps_path, "-o", collector.address]) == 2
    assert said in capsys.readouterr().err
    collector.answer = (200, b"not JSON")
    assert cli.main(["convert", three_steps_path, "-o", collector.address]) == 0
    assert capsys.readouterr().err == f"sent to {collector.address}\n"


def test_the_connection_to_a_collector_that_refuses_is_closed(collector: Collector, three_steps: Any) -> None:
    collector.answer = (500, b"full")
    with pytest.raises(HTTPError, match="HTTP Error 500") as refused:
        three_steps.export_otlp(collector.address)
    assert refused.value.fp is not None
    assert refused.value.fp.closed


def test_an_address_takes_spans_alone(three_steps_path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", three_steps_path, "--to", "csv", "-o", "http://localhost:4318"]) == 2
    assert "an address takes --to otlp alone" in capsys.readouterr().err


def test_convert_writes_spans_with_its_options(three_steps_path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.otlp.jsonl"
    words = ["--max-spans", "5", "--min-us", "10", "--parent", PARENT, "-o", str(out)]
    assert cli.main(["convert", three_steps_path, *words]) == 0
    spans = spans_in(out)
    assert len(spans) == 5
    assert spans[0]["parentSpanId"] == PARENT[36:52]
    assert cli.main(["convert", three_steps_path, "--to", "otlp", "-o", str(out), "--parent", "x"]) == 2
