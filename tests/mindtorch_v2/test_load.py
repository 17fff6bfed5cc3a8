"""Opening traces: what was written is what is read, in every form in which it is written."""

from __future__ import annotations

import gzip
import importlib.util
import io
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_v2.profiler import profile, record_function, schedule

FACTS = Path(__file__).with_name("facts")
SUMS = (
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
)
FIELDS = ("key", *SUMS, "input_shapes", "stack", "scope", "is_user_annotation", "device_type", "use_device")
GROUPINGS: tuple[dict[str, Any], ...] = ({}, {"group_by_input_shape": True}, {"group_by_stack_n": 3})


def fact(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FACTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = fact("stranger_traces")


def opened(document: Any, **how: Any) -> Any:
    return load(io.BytesIO(made.as_bytes(document)), **how)


def rows(averages: Any) -> list[list[Any]]:
    return [[getattr(row, field) for field in FIELDS] for row in averages]


def row(loaded: Any, key: str, device: bool = False, **how: Any) -> Any:
    found = [
        r for r in loaded.key_averages(**how) if r.key == key and (r.device_type != DeviceType.CPU) == device
    ]
    assert len(found) == 1, key
    return found[0]


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def train(prof: Any = None) -> None:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    for _ in range(3):
        with record_function('a "quoted" span, déjà vu'):
            y = net(torch.ones(2, 3, 8, 8))
        torch.cat([Scaled.apply(y), y]).sum().backward()
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        if prof is not None:
            prof.step()


# -------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("flags", list(itertools.product((False, True), repeat=4)))
def test_a_recording_is_the_same_after_it_was_written_and_read(
    flags: tuple[bool, ...], tmp_path: Path
) -> None:
    names = ("record_shapes", "profile_memory", "with_stack", "with_flops")
    with profile(**dict(zip(names, flags))) as prof:  # type: ignore[arg-type]
        train()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    loaded = load(path, strict=True)
    for how in GROUPINGS:
        assert rows(loaded.key_averages(**how)) == rows(prof.key_averages(**how))
        assert loaded.key_averages(**how).table() == prof.key_averages(**how).table()
    assert rows([loaded.total_average()]) == rows([prof.profiler.total_average()])
    names_of = lambda events: [(e.name, e.sequence_nr, e.fwd_thread, e.thread, e.scope) for e in events]
    assert names_of(loaded.events()) == names_of(prof.events())
    parents = lambda events: [e.cpu_parent.name if e.cpu_parent else None for e in events]
    assert parents(loaded.events()) == parents(prof.events())


def test_steps_metadata_and_flags_are_read_back(tmp_path: Path) -> None:
    with profile(schedule=schedule(wait=0, warmup=1, active=2, repeat=1), record_shapes=True) as prof:
        prof.add_metadata("note", "thrice")
        train(prof)
        prof.add_metadata_json("distributedInfo", '{"rank": 3, "world_size": 8}')
        prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    loaded = load(str(tmp_path / "t.json.gz"))
    settings = loaded.trace.settings
    assert (settings.rank, settings.world_size) == (3, 8)
    assert settings.record_shapes
    assert not settings.profile_memory
    assert settings.source.endswith("t.json.gz")
    assert row(loaded, "ProfilerStep*").count == 2
    assert [n for n in loaded.trace.names if n.startswith("ProfilerStep")] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]


@pytest.mark.parametrize("style", ["cuda", "2021", "rocm", "xpu"])
def test_a_loaded_trace_of_a_device_is_the_same_after_it_was_written_again(
    style: str, tmp_path: Path
) -> None:
    first = opened(made.gpu(style))
    first.export_chrome_trace(tmp_path / "again.json")
    again = load(tmp_path / "again.json")
    assert rows(again.key_averages()) == rows(first.key_averages())
    assert again.device_usage() == first.device_usage()
    assert [dict(d) for d in again.trace.device.extra_table] == [
        dict(d) for d in first.trace.device.extra_table
    ]


# -------------------------------------------------------------------------------- torch's files


def recorded() -> tuple[Any, dict[str, Any]]:
    tables = json.loads(gzip.decompress((FACTS / "torch_trace_tables.json.gz").read_bytes()))
    return load(FACTS / "torch_trace.json.gz", strict=True), tables


def check_against_torch(loaded: Any, found: dict[str, Any], facts: ModuleType) -> None:
    for name, how in facts.GROUPS.items():
        averages = loaded.key_averages(**how)
        mine = [[getattr(r, field) for field in facts.FIELDS] for r in averages]
        theirs = found[name]["rows"]
        assert [r[:2] for r in mine] == [r[:2] for r in theirs]
        for a, b in zip(mine, theirs):
            assert a[4:] == b[4:]
            # torch adds floats, we add whole nanoseconds
            assert a[2:4] == pytest.approx(b[2:4], abs=1e-6 * b[1])
        table = averages.table(sort_by="cpu_time_total", row_limit=20)
        assert_equal_but_for_rounding(table, found[name]["table"])


def assert_equal_but_for_rounding(mine: str, theirs: str) -> None:
    """The same text, with times that may differ by one in their last digit."""
    number = re.compile(r"(-?\d+\.\d+)(us|ms|s|%)")
    assert number.sub("#", mine) == number.sub("#", theirs)
    for a, b in zip(number.findall(mine), number.findall(theirs)):
        assert float(a[0]) == pytest.approx(float(b[0]), abs=0.0011 if a[1] != "%" else 0.011)


def test_the_table_of_a_file_is_the_one_that_torch_printed() -> None:
    check_against_torch(*recorded(), fact("record_loaded_trace"))


@pytest.mark.parametrize(
    "settings", [{}, {"record_shapes": True, "profile_memory": True, "with_flops": True}]
)
def test_torch_prints_the_table_that_its_file_gives(
    torch_reference: ModuleType, settings: dict[str, Any], tmp_path: Path
) -> None:
    facts = fact("record_loaded_trace")
    path = tmp_path / "live.json"
    found = json.loads(json.dumps(facts.run(str(path), **settings)))
    check_against_torch(load(path), found, facts)


def test_python_calls_are_rows_of_torchs_files_where_they_are_wanted() -> None:
    call = made.event(
        "model.py(3): forward", 1005.0, 60.0, "python_function", **{"Python id": 1, "Python parent id": None}
    )
    document = made.cpu()
    document["traceEvents"].append(call)
    assert "model.py(3): forward" not in {r.key for r in opened(document).key_averages()}
    document["host_name"] = "there"  # as torch does since 2.13, whose tables list Python calls
    loaded = opened(document)
    assert row(loaded, "model.py(3): forward").self_cpu_time_total == 60.0 - 50.25
    assert row(loaded, "ProfilerStep*").self_cpu_time_total == 40.0
    assert [r.key for r in opened(document, python_functions=False).key_averages()][1] == "aten::linear"
    linear = next(e for e in loaded.events() if e.name == "aten::linear")
    assert linear.stack == ["model.py(3): forward"]


# -------------------------------------------------------------------------------- devices


@pytest.mark.parametrize(
    ("style", "device"), [("cuda", "cuda"), ("2021", "cuda"), ("rocm", "cuda"), ("xpu", "xpu")]
)
def test_device_time_is_charged_to_the_op_that_launched_it(style: str, device: str) -> None:
    loaded = opened(made.gpu(style), strict=True)
    addmm, linear, copy = (row(loaded, f"aten::{n}") for n in ("addmm", "linear", "copy_"))
    assert (addmm.self_device_time_total, addmm.device_time_total) == (150.0, 150.0)
    assert (linear.self_device_time_total, linear.device_time_total) == (0.0, 150.0)
    assert copy.self_device_time_total == 40.0
    assert addmm.self_cpu_time_total == 40.0  # less what the runtime calls took
    assert addmm.use_device == device
    gemm = row(loaded, "gemm", device=True)
    assert (gemm.count, gemm.self_device_time_total, gemm.cpu_time_total) == (2, 150.0, 0)
    event = next(e for e in loaded.events() if e.name == "aten::addmm")
    assert [(k.name, k.device, k.duration) for k in event.kernels] == [("gemm", 0, 100.0), ("gemm", 0, 50.0)]
    table = loaded.key_averages().table()
    assert f"Self {device.upper()}" in table
    assert f"Self {device.upper()} time total: 200.000us" in table


def test_averages_of_devices_are_the_sums_of_their_events() -> None:
    loaded = opened(made.gpu())
    events = loaded.events()
    by_hand = events._like(list(events)).key_averages()
    assert rows(sorted(by_hand, key=lambda r: (r.key, r.is_user_annotation))) == rows(
        sorted(loaded.key_averages(), key=lambda r: (r.key, r.is_user_annotation))
    )


def test_annotations_on_a_device_are_not_counted_twice() -> None:
    loaded = opened(made.gpu())
    shadow = row(loaded, "step", device=True)
    assert shadow.is_user_annotation
    assert (
        shadow.self_device_time_total == 160.0
    )  # what its stream worked, not the 180 from its begin to its end
    assert row(loaded, "step").device_time_total == 200.0
    kernels = [
        r for r in loaded.key_averages() if r.device_type != DeviceType.CPU and not r.is_user_annotation
    ]
    assert sum(r.self_device_time_total for r in kernels) == 200.0


def test_kernels_of_a_graph_are_charged_to_what_launched_the_graph() -> None:
    loaded = opened(made.gpu())
    device = loaded.trace.device
    graphed = list(device.names).index("graphed")
    (at,) = np.flatnonzero(device.name == graphed).tolist()
    assert loaded.trace.names[loaded.trace.name[device.launch[at]]] == "cudaGraphLaunch"
    assert loaded.trace.names[loaded.trace.name[device.op[at]]] == "step"


def test_arrows_tie_kernels_where_numbers_do_not() -> None:
    loaded = opened(made.gpu("ascend"))
    assert row(loaded, "aten::linear").device_time_total == 100.0
    assert row(loaded, "MatMul", device=True).count == 1
    assert loaded.trace.settings.device == "npu"


def test_usage_says_how_busy_each_stream_was() -> None:
    whole, first, second = opened(made.gpu()).device_usage()
    assert (whole.device, whole.stream, whole.events, whole.span_us) == (0, -1, 4, 180.0)
    assert (whole.busy_us, whole.idle_us, whole.copy_us) == (170.0, 10.0, 40.0)
    assert (first.stream, first.busy_us, first.idle_us, first.longest_idle_us) == (7, 160.0, 20.0, 10.0)
    assert (second.stream, second.busy_us, second.kernel_us) == (20, 40.0, 0.0)
    assert whole.utilisation == pytest.approx(170 / 180)


def test_memory_of_devices_has_columns_of_its_own() -> None:
    document = made.gpu()
    args = {"Total Allocated": 512, "Bytes": 512, "Device Id": 0, "Device Type": 1, "Addr": 5}
    instant = {
        "ph": "i",
        "s": "t",
        "name": "[memory]",
        "pid": made.PID,
        "tid": made.PID,
        "ts": 1015.0,
        "args": args,
    }
    document["traceEvents"] += [instant, {**instant, "ts": 2000.0}]
    loaded = opened(document)
    assert row(loaded, "aten::addmm").self_device_memory_usage == 512
    assert row(loaded, "aten::linear").device_memory_usage == 512
    assert row(loaded, "aten::addmm").cpu_memory_usage == 0
    assert row(loaded, "[memory]").device_memory_usage == 512
    assert "Self CUDA Mem" in loaded.key_averages().table()


# -------------------------------------------------------------------------------- forms of files


def forms() -> dict[str, bytes]:
    document = made.cpu()
    plain = made.as_bytes(document)
    compact = made.as_bytes(document, separators=(",", ":"))
    tail_first = {
        "traceEvents": document["traceEvents"],
        **{k: v for k, v in document.items() if k != "traceEvents"},
    }
    return {
        "object": plain,
        "compact": compact,
        "pretty": made.as_bytes(document, indent=2),
        "events first": made.as_bytes(tail_first),
        "array": made.as_bytes(document["traceEvents"]),
        "array without an end": made.as_bytes(document["traceEvents"])[:-1],
        "with a byte order mark": b"\xef\xbb\xbf" + plain,
        "blanks around": b"\n\n  " + plain + b"\n\n",
        "gzip": gzip.compress(plain),
        "gzip in two parts": gzip.compress(plain[:300]) + gzip.compress(plain[300:]),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_of_a_file_gives_the_same_rows(form: str) -> None:
    data = forms()[form]
    loaded = load(io.BytesIO(data), strict=True)
    assert rows(loaded.key_averages()) == rows(opened(made.cpu()).key_averages())
    assert row(loaded, "aten::linear", group_by_input_shape=True).input_shapes == [[2, 4], [3, 4], [3]]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_where_a_file_is_cut_into_slices_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mindtorch_prof.load.byte_source"], "CHUNK", size)
    document = made.gpu()
    document["traceEvents"][2]["args"]["note"] = 'a "}, {" inside, and \\ too: ]}'
    document["traceEvents"][3]["args"]["nested"] = [{"ph": "X"}, {"ph": "X"}]
    for data in (made.as_bytes(document), made.as_bytes(document["traceEvents"], indent=1)):
        loaded = load(io.BytesIO(data), strict=True)
        assert rows(loaded.key_averages()) == rows(opened(made.gpu()).key_averages())


def test_paths_open_files_and_text_files_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(made.as_bytes(made.cpu()))
    with path.open("rb") as binary, path.open() as text:
        for file in (path, str(path), os.fsencode(path), binary, text):
            assert len(load(file).trace) == 4
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.json")


def test_begins_and_ends_are_paired() -> None:
    def mark(phase: str, at: float, **more: Any) -> dict[str, Any]:
        return {"ph": phase, "pid": 1, "tid": 1, "ts": at, **more}

    events = [
        mark("B", 0.0, name="outer", cat="cpu_op", args={"External id": 1}),
        mark("B", 2.0, name="inner", cat="cpu_op"),
        mark("E", 5.5),
        mark("E", 10.0),
    ]
    loaded = opened(events, strict=True)
    assert (row(loaded, "outer").cpu_time_total, row(loaded, "outer").self_cpu_time_total) == (10.0, 6.5)


def test_rounded_times_of_old_files_are_made_to_nest() -> None:
    document = made.gpu("2021")
    start = document["traceEvents"][0]["ts"]
    document["traceEvents"].append(made.event("aten::t", start + 75, 6, "Operator", str(made.PID)))
    loaded = opened(document)
    assert loaded.events()[0].cpu_children[-1].name == "aten::t"
    assert row(loaded, "aten::t").cpu_time_total == 5.0
    assert "at most 1 us" in loaded.health.line()


def test_counters_of_other_writers_are_kept() -> None:
    counter = {"ph": "C", "name": "queue", "pid": 1, "tid": 0, "ts": 5.0, "args": {"length": 3}}
    counters = opened([*made.cpu()["traceEvents"], counter]).trace.counters
    assert (counters.names, counters.time_ns.tolist(), counters.value.tolist()) == (("queue",), [5000], [3.0])


def test_events_exported_from_a_list_open(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        train()
    prof.events()._like(list(prof.events())).export_chrome_trace(str(tmp_path / "events.json"))
    prof.key_averages().export_chrome_trace(str(tmp_path / "averages.json"))
    loaded = load(tmp_path / "events.json")
    counts = {r.key: r.count for r in loaded.key_averages()}
    assert counts == {r.key: r.count for r in prof.key_averages()}
    assert {r.key for r in load(tmp_path / "averages.json").key_averages()} == set(counts)


def test_two_processes_with_the_same_thread_numbers_stay_apart() -> None:
    events = [made.event("a", 0.0, 10.0), made.event("b", 2.0, 20.0) | {"pid": 7}]
    loaded = opened(events, strict=True)
    assert len(set(loaded.trace.thread.tolist())) == 2
    assert sorted(loaded.trace.settings.thread_pids.values()) == [7, made.PID]


# -------------------------------------------------------------------------------- the door


def test_opening_a_file_and_printing_its_table_loads_no_tensor_code(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(made.as_bytes(made.gpu()))
    source = Path(torch.__file__).parent
    program = f"""
import sys, types
bare = types.ModuleType("mindtorch_v2"); bare.__path__ = [{str(source)!r}]
sys.modules["mindtorch_v2"] = bare
from mindtorch_prof.load import load
loaded = load({str(path)!r})
print(loaded.key_averages().table())
loaded.export_chrome_trace({str(tmp_path / "again.json")!r})
parts = ("_tensor", "_dispatch", "_ops", "nn", "autograd")
assert not [name for name in parts if "mindtorch_v2." + name in sys.modules]
assert "rich" not in sys.modules and "pandas" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "aten::addmm" in done.stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_told_to_a_function_or_shown_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(made.as_bytes(made.cpu()))
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


def test_a_directory_of_traces_gives_sums_that_hold() -> None:
    where = os.environ.get("MINDTORCH_TRACES")
    if not where:
        pytest.skip("MINDTORCH_TRACES names no directory of traces")
    for path in sorted(Path(where).glob("*trace*.json*")):
        try:
            loaded = load(path)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        averages = loaded.key_averages()
        whole = sum(r.self_cpu_time_total for r in averages)
        busy = sum(u.busy_us for u in loaded.device_usage() if u.stream != -1)
        for r in averages:
            assert r.self_cpu_time_total >= 0
            assert r.cpu_time_total <= whole * (1 + 1e-9)
            assert 0 <= r.self_device_time_total <= busy * (1 + 1e-9) + 1e-6


def test_what_else_a_file_says_of_an_event_is_there() -> None:
    document = made.gpu()
    document["traceEvents"][1]["args"] |= {"Collective name": "allreduce", "Group size": 8, "Mine": [1, 2]}
    events = opened(document).events()
    gemm = next(e for e in events if e.name == "gemm")
    assert (gemm.event_metadata.grid, gemm.event_metadata.stream) == ([8, 1, 1], 7)
    linear = next(e for e in events if e.name == "aten::linear")
    assert linear.event_metadata.collective_name == "allreduce"
    assert next(e for e in events if e.name == "aten::addmm").event_metadata is None
