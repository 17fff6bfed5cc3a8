"""Execution traces: nodes against those that torch wrote for the same programs, numbers, threads, files."""

from __future__ import annotations

import gzip
import json
import os
import threading
import types
from collections import Counter
from pathlib import Path
from typing import Any

import execution_traces as cases
import fact_files
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function
from mindtorch_v2.profiler.execution_trace import PROCESS, SCHEMA, THREAD, schema_text

X = torch.ones(2, 3)

RECORDED = fact_files.read("execution_traces.json.gz")["traces"]


def compare(ours: list[Any], theirs: list[Any]) -> None:
    """Every node is one that torch wrote; what torch has beyond them stands inside its kernels."""
    here = Counter(json.dumps(node) for node in ours if node[0] not in cases.ARTEFACTS)
    there = Counter(json.dumps(node) for node in theirs if node[0] not in cases.ARTEFACTS)
    assert list((here - there).elements()) == []
    missing = [json.loads(node) for node in (there - here).elements()]
    assert [node[0] for node in missing if not node[1][0].startswith("aten::")] == []


@pytest.mark.parametrize("case", list(cases.CASES))
def test_a_program_writes_the_nodes_that_torch_writes(case: str) -> None:
    compare(cases.essence(cases.observe(torch, cases.CASES[case](torch))), RECORDED[case])


@pytest.mark.parametrize("case", list(cases.CASES))
def test_a_program_writes_the_nodes_that_torch_writes_now(
    case: str, torch_reference: types.ModuleType
) -> None:
    theirs = cases.essence(cases.observe(torch_reference, cases.CASES[case](torch_reference)))
    compare(cases.essence(cases.observe(torch, cases.CASES[case](torch))), theirs)


def observe(path: Path, run: Any) -> dict[str, Any]:
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    run()
    observer.stop()
    observer.unregister_callback()
    return json.loads(path.read_text())


def names(trace: dict[str, Any]) -> list[str]:
    return [n["name"] for n in trace["nodes"] if n["name"] not in (THREAD, PROCESS)]


def attribute(node: dict[str, Any], name: str) -> Any:
    return next(entry["value"] for entry in node["attrs"] if entry["name"] == name)


# -------------------------------------------------------------------------------- the file


def test_the_file_has_torchs_layout(tmp_path: Path) -> None:
    observe(tmp_path / "t.json", lambda: torch.neg(X))
    text = (tmp_path / "t.json").read_text()
    head, first, *_ = text.split('"id": ')
    assert head.startswith(f'{{\n  "schema": "{SCHEMA}", "pid": {os.getpid()}, "time": "')
    assert head.endswith('"nodes": [\n      {\n        ')
    assert first.startswith(
        f'2, "name": "{THREAD}", "ctrl_deps": 1,\n        "inputs": {{"values": [], "shapes": [], '
    )
    assert (
        '"values": [[4,5,0,6,4,"cpu"]], "shapes": [[2,3]], "types": ["Tensor(float)"], "strides": [[3,1]]'
        in text
    )
    assert text.rpartition('\n  ],\n  "finish_ts": ')[2].removesuffix("\n}").isdigit()


def test_numbers_of_nodes_and_tensors_are_given_in_torchs_order(tmp_path: Path) -> None:
    x, w = torch.ones(2, 3), torch.ones(3, 4)
    nodes = observe(tmp_path / "t.json", lambda: torch.matmul(x, w))["nodes"]
    assert [(n["name"], n["id"], n["ctrl_deps"]) for n in nodes] == [
        (THREAD, 2, 1),
        ("aten::mm", 8, 3),
        ("aten::matmul", 3, 2),
        (PROCESS, 1, 1),
    ]
    inner, outer = nodes[1], nodes[2]
    assert (
        outer["inputs"]["values"]
        == inner["inputs"]["values"]
        == [[4, 5, 0, 6, 4, "cpu"], [6, 7, 0, 12, 4, "cpu"]]
    )
    assert outer["outputs"]["values"] == inner["outputs"]["values"]


def test_a_view_shares_the_number_of_its_memory_and_says_where_it_begins(tmp_path: Path) -> None:
    x = torch.ones(4, 3)
    nodes = observe(tmp_path / "t.json", lambda: x[2])["nodes"]
    select = next(n for n in nodes if n["name"] == "aten::select")
    (source,), (view,) = select["inputs"]["values"][:1], select["outputs"]["values"]
    assert view[1] == source[1]
    assert view[0] != source[0]
    assert view[2:] == [6, 3, 4, "cpu"]


def test_a_tensor_that_is_gone_does_not_give_its_number_to_the_next(tmp_path: Path) -> None:
    def run() -> None:
        for _ in range(5):
            torch.neg(X)

    nodes = observe(tmp_path / "t.json", run)["nodes"]
    made = [tuple(n["outputs"]["values"][0][:2]) for n in nodes if n["name"] == "aten::neg"]
    assert len(set(made)) == 5
    assert len({n["inputs"]["values"][0][0] for n in nodes if n["name"] == "aten::neg"}) == 1


def test_a_name_with_quotes_leaves_the_file_readable(tmp_path: Path) -> None:
    name = 'say "hi" \\ é \n\t\x00'

    def run() -> None:
        with record_function(name):
            pass

    assert names(observe(tmp_path / "t.json", run)) == [name]


def test_a_compressed_file_is_written_where_the_name_says_so(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json.gz"))
    with profile(execution_trace_observer=observer):
        torch.neg(X)
    trace = json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))
    assert names(trace) == ["aten::neg"]


def test_schemas_are_printed_as_torch_prints_them() -> None:
    text = schema_text(
        "aten::f(Tensor x, SymInt[2] stride=1, int[1] dim=0, float p=0.5, float e=1e-05, float a=2, "
        "str s='none', MemoryFormat memory_format=contiguous_format, int[] dims=[0,1]) -> Tensor"
    )
    assert text == (
        "aten::f(Tensor x, SymInt[2] stride=[1, 1], int[1] dim=[0], float p=0.5, "
        "float e=1.0000000000000001e-05, float a=2., "
        'str s="none", MemoryFormat memory_format=0, int[] dims=[0, 1]) -> Tensor'
    )


def test_events_of_a_trace_file_carry_the_numbers_of_their_nodes(tmp_path: Path) -> None:
    x = torch.ones(2, requires_grad=True)
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    with profile(execution_trace_observer=observer, record_shapes=True) as prof:
        with record_function("span"):
            (x * 2).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "kineto.json"))
    nodes = {
        attribute(n, "rf_id"): n["name"] for n in json.loads((tmp_path / "et.json").read_text())["nodes"]
    }
    events = json.loads((tmp_path / "kineto.json").read_text())["traceEvents"]
    recorded = [e for e in events if "Synthetic" not in e.get("args", {})]
    tied = [e for e in recorded if e.get("cat") in ("cpu_op", "user_annotation")]
    assert len(tied) > 10
    assert [nodes[e["args"]["Record function id"]] for e in tied] == [e["name"] for e in tied]


def test_numbers_of_record_functions_go_on_from_trace_to_trace(tmp_path: Path) -> None:
    numbers = []
    for _ in range(2):
        nodes = observe(tmp_path / "t.json", lambda: torch.neg(X))["nodes"]
        numbers += [attribute(n, "rf_id") for n in nodes if n["name"] == "aten::neg"]
    assert numbers[1] == numbers[0] + 1


def test_every_thread_has_a_node_and_ops_stand_under_their_own(tmp_path: Path) -> None:
    def run() -> None:
        torch.neg(X)
        workers = [threading.Thread(target=lambda: [torch.sin(X) for _ in range(20)]) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    nodes = observe(tmp_path / "t.json", run)["nodes"]
    roots = {n["id"]: attribute(n, "tid") for n in nodes if n["name"] == THREAD}
    assert len(roots) == len(set(roots.values())) == 5
    sins = [n for n in nodes if n["name"] == "aten::sin"]
    assert Counter(n["ctrl_deps"] for n in sins) == dict.fromkeys(list(roots)[1:], 20)
    assert all(attribute(n, "tid") == roots[n["ctrl_deps"]] for n in sins)
    assert len({n["id"] for n in nodes}) == len(nodes)


# -------------------------------------------------------------------------------- trouble


def test_an_op_that_fails_is_written_and_what_follows_stands_beside_it(tmp_path: Path) -> None:
    def run() -> None:
        with pytest.raises(RuntimeError):
            torch.mm(X, X)
        torch.neg(X)

    nodes = observe(tmp_path / "t.json", run)["nodes"]
    assert [(n["name"], n["ctrl_deps"]) for n in nodes if n["name"].startswith("aten")] == [
        ("aten::mm", 2),
        ("aten::neg", 2),
    ]
    assert next(n for n in nodes if n["name"] == "aten::mm")["outputs"]["values"] == []


def test_every_parent_is_in_the_file(tmp_path: Path) -> None:
    outer, late = record_function("begun before"), record_function("ended after")

    def run() -> None:
        outer.__exit__(None, None, None)
        late.__enter__()
        torch.neg(X)

    outer.__enter__()
    nodes = observe(tmp_path / "t.json", run)["nodes"]
    late.__exit__(None, None, None)
    assert {n["ctrl_deps"] for n in nodes} <= {n["id"] for n in nodes}
    assert [n["name"] for n in nodes if n["name"][:3] in ("beg", "end")] == ["ended after"]
