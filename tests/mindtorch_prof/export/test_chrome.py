"""Chrome traces: the file is Kineto's, any name is valid in it, and slices nest."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fact_files import FACTS
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import make_trace

import mindtorch_v2 as torch
from mindtorch_prof.export import chrome
from mindtorch_prof.load import load
from mindtorch_prof.recorded_health import KEY as HEALTH_KEY
from mindtorch_prof.settings import Settings
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.trace import ANNOTATION, NODE, OP, Frames, Health, Memory, Trace
from mindtorch_v2.profiler import (
    ProfilerActivity,
    _ExperimentalConfig,
    profile,
    record_function,
)

HOSTILE = [
    'say "hi"',
    "back\\slash",
    "line\nbreak\ttab",
    "\x00\x01\x1f",
    "é 中 😀",
    "</script><img onerror=1>",
    "100% %d %s",
    "",
]


def recorded_trace(*rows: tuple[Any, ...], **fields: Any) -> Trace:
    """A Trace of rows (name, start, end, kind, sequence number) on thread 7, as a recorder gives it."""
    full = [(*row[:3], 7, *row[3:]) for row in rows]
    settings = Settings(pid=41, thread=7, threads={7: (42, "main")}, trace_id="A" * 32, host_name="here")
    origin = 1_790_857_026_000_000_000 + 5_000_000
    return make_trace(
        *full, **{"origin_ns": origin, "window_ns": (0, 20_000), "settings": settings, **fields}
    )


def written(trace: Trace, path: Path, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    chrome.export_chrome_trace(trace, path, metadata)
    return json.loads(path.read_bytes())


def slices(document: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event.get("cat") == category]


def test_a_chrome_trace_is_written_as_kineto_writes_it(tmp_path: Path) -> None:
    trace = recorded_trace(
        ("span", 1_000, 9_050, ANNOTATION),
        ("aten::mm", 2_001, 3_000, OP, 5),
        ("MmBackward0", 4_000, 5_000, NODE, 5),
    )
    path = tmp_path / "t.json"
    chrome.export_chrome_trace(trace, path, {"distributedInfo": {"rank": 3}})
    expected = (FACTS / "chrome_trace.json").read_text()
    assert path.read_text() == expected.replace("@PATH@", str(path))


def test_memory_instants_carry_the_running_total(tmp_path: Path) -> None:
    columns = [np.array(c) for c in ([1_500, 2_500], [64, -64], [9, 9], [7, 7], [64, 0])]
    document = written(recorded_trace(("a", 1_000, 2_000), memory=Memory(*columns)), tmp_path / "t.json")
    taken, freed = slices(document, "cpu_instant_event")
    args = taken.pop("args")
    assert taken == {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 41,
        "tid": 42,
        "ts": 5001.5,
    }
    assert args == {
        "Total Reserved": 0,
        "Total Allocated": 64,
        "Bytes": 64,
        "Device Id": -1,
        "Device Type": 0,
        "Addr": 9,
        "finished": False,
        "Ev Idx": 1,
    }
    assert (freed["args"]["Bytes"], freed["args"]["Total Allocated"], freed["args"]["Ev Idx"]) == (-64, 0, 2)


def test_python_calls_name_their_callers(tmp_path: Path) -> None:
    columns = [np.array(c) for c in ([0, 1], [0, 10], [90, 80], [7, 7], [-1, 0], [-1, 0])]
    frames = Frames(("f.py(1): f", "nn.Module: Linear_0"), *columns)
    document = written(recorded_trace(("a", 20, 30), frames=frames), tmp_path / "t.json")
    outer, inner = slices(document, "python_function")
    assert (outer["name"], outer["args"]) == (
        "f.py(1): f",
        {"Python parent id": None, "Python id": 1, "Ev Idx": 1},
    )
    assert inner["args"] == {"Python parent id": 1, "Python id": 2, "Ev Idx": 2, "Python module id": 0}


@pytest.mark.parametrize("name", [*HOSTILE, "lone \ud800 surrogate"])
def test_any_name_gives_valid_json_and_comes_back_unchanged(tmp_path: Path, name: str) -> None:
    document = written(
        recorded_trace((name, 0, 10), (name, 20, 30, ANNOTATION)), tmp_path / "t.json", {"key": name}
    )
    assert [slices(document, kind)[0]["name"] for kind in ("cpu_op", "user_annotation")] == [name, name]
    assert document["key"] == name


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.text(max_size=8), st.integers(0, 10**12), st.integers(0, 10**10), st.integers(-1, 9)),
        max_size=30,
    )
)
def test_write_and_read_gives_the_same_events(tmp_path_factory: Any, rows: list[tuple]) -> None:
    ordered = [
        (name, start, start + length, OP, number)
        for name, start, length, number in sorted(rows, key=lambda r: r[1])
    ]
    document = written(recorded_trace(*ordered), tmp_path_factory.mktemp("round") / "t.json")
    base = document["baseTimeNanoseconds"] - 1_790_857_026_000_000_000 - 5_000_000
    read = [
        (
            e["name"],
            round(e["ts"] * 1000) + base,
            round(e["dur"] * 1000),
            e["args"].get("Sequence number", -1),
        )
        for e in slices(document, "cpu_op")
    ]
    assert read == [(name, start, end - start, number) for name, start, end, _, number in ordered]
    assert [e["args"]["Ev Idx"] for e in slices(document, "cpu_op")] == list(range(len(rows)))


def test_a_flow_joins_each_backward_node_to_the_last_forward_op_of_its_number(tmp_path: Path) -> None:
    trace = recorded_trace(
        ("aten::linear", 0, 100, OP, 3),
        ("aten::addmm", 10, 90, OP, 3),
        ("aten::relu", 110, 120, OP, 4),
        ("ReluBackward0", 200, 210, NODE, 4),
        ("AddmmBackward0", 220, 230, NODE, 3),
        ("OtherBackward0", 240, 250, NODE, 77),
    )
    events = written(trace, tmp_path / "t.json")["traceEvents"]
    by_flow: dict[int, list[tuple[str, str]]] = {}
    for before, event in itertools.pairwise(events):
        if event.get("cat") == "fwdbwd":
            by_flow.setdefault(event["id"], []).append((event["ph"], before["name"]))
    assert by_flow == {
        1: [("s", "aten::relu"), ("f", "ReluBackward0")],
        2: [("s", "aten::addmm"), ("f", "AddmmBackward0")],
    }


def test_inputs_are_written_as_torch_writes_them(tmp_path: Path) -> None:
    x = torch.ones(2, 3)
    with profile(record_shapes=True) as prof:
        torch.add(x, x.t().contiguous().t(), alpha=2.5)
        torch.cat([x, x])
    document = json.loads(exported(prof, tmp_path))
    by_name = {event["name"]: event["args"] for event in slices(document, "cpu_op")}
    assert {
        key: by_name["aten::add"][key]
        for key in ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
    } == {
        "Input Dims": [[2, 3], [2, 3], []],
        "Input Strides": [[3, 1], [1, 2], []],
        "Input type": ["float", "float", "Scalar"],
        "Concrete Inputs": ["", "", "2.5"],
    }
    assert by_name["aten::cat"]["Input Dims"] == [[[2, 3], [2, 3]], []]
    assert by_name["aten::cat"]["Input type"] == ["TensorList", "Scalar"]
    assert by_name["aten::cat"]["Concrete Inputs"] == ["", "0"]


def exported(prof: Any, folder: Path, name: str = "t.json") -> bytes:
    prof.export_chrome_trace(str(folder / name))
    return (folder / name).read_bytes()


def test_flags_and_metadata_stand_at_the_top(tmp_path: Path) -> None:
    with profile(record_shapes=True, with_flops=True) as prof:
        torch.ones(2) + 1
        prof.add_metadata("who", 'a "quoted" word')
        prof.add_metadata_json("numbers", "[1, 2]")
    document = json.loads(exported(prof, tmp_path))
    assert (document["record_shapes"], document["with_flops"]) == (1, 1)
    assert not {"with_stack", "profile_memory"} & set(document)
    assert (document["who"], document["numbers"]) == ('a "quoted" word', [1, 2])
    assert re.fullmatch("[0-9A-F]{32}", document["trace_id"])
    assert document["traceName"] == str(tmp_path / "t.json")


def test_gz_holds_the_same_text(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(2) + 1
    plain = exported(prof, tmp_path).replace(b"t.json", b"")
    assert gzip.decompress(exported(prof, tmp_path, "t.json.gz")).replace(b"t.json.gz", b"") == plain


def test_events_and_profile_write_the_same_events(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(2) + 1
    prof.events().export_chrome_trace(str(tmp_path / "e.json"))
    whole = json.loads(exported(prof, tmp_path))
    assert json.loads((tmp_path / "e.json").read_bytes())["traceEvents"] == whole["traceEvents"]


def test_a_span_that_is_open_at_the_end_is_marked_unfinished(tmp_path: Path) -> None:
    prof = profile()
    prof.start()
    span = record_function("open")
    span.__enter__()
    torch.ones(2) + 1
    prof.stop()
    span.__exit__(None, None, None)
    document = json.loads(exported(prof, tmp_path))
    assert slices(document, "user_annotation")[0]["args"]["finished"] is False
    assert all("finished" not in event["args"] for event in slices(document, "cpu_op"))


def test_verbose_writes_call_stacks_innermost_first(tmp_path: Path) -> None:
    with profile(with_stack=True, experimental_config=_ExperimentalConfig(verbose=True)) as prof:
        torch.ones(2)
    add = slices(json.loads(exported(prof, tmp_path)), "cpu_op")[0]
    frames = add["args"]["Call stack"].split(";")
    assert frames[0].endswith(": test_verbose_writes_call_stacks_innermost_first")
    assert frames[-1] == ""


def test_the_trace_id_is_the_profilers(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(2)
    assert json.loads(exported(prof, tmp_path))["trace_id"] == prof.get_trace_id()


def test_an_export_into_no_folder_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        chrome.export_chrome_trace(recorded_trace(("a", 0, 1)), tmp_path / "absent" / "t.json")


def test_averages_are_written_as_one_event_a_row(tmp_path: Path) -> None:
    with profile() as prof:
        for name in HOSTILE[:-1]:
            with record_function(name):
                torch.ones(2) + 1
    rows = prof.key_averages()
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    rows.export_chrome_trace(str(first))
    rows.export_chrome_trace(str(second))
    assert first.read_bytes() == second.read_bytes()
    events = json.loads(first.read_bytes())["traceEvents"]
    assert [(e["name"], e["args"]["count"], e["args"]["cpu_time_total"]) for e in events] == [
        (row.key, row.count, row.cpu_time_total) for row in rows
    ]
    assert all({"name", "ph", "ts", "dur", "pid", "tid", "cat", "args"} == set(event) for event in events)


def test_empty_averages_are_a_file_without_events(tmp_path: Path) -> None:
    with profile() as prof:
        pass
    prof.key_averages().export_chrome_trace(str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_bytes())["traceEvents"] == []


def test_a_part_of_the_events_is_written_as_these_events(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        x = torch.ones(2, 3)
        x + x
        x * x
    some = EventList([event for event in prof.events() if event.name == "aten::mul"])
    some.export_chrome_trace(str(tmp_path / "t.json"))
    (event,) = json.loads((tmp_path / "t.json").read_bytes())["traceEvents"]
    assert (event["name"], event["cat"], event["args"]["Input Dims"]) == (
        "aten::mul",
        "cpu_op",
        [[2, 3], [2, 3]],
    )


def test_slices_nest_on_every_thread_with_every_flag_on(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    class Opened:
        """Opens a span in one call and closes it in another."""

        def begin(self) -> None:
            torch.ones(1)
            self.span = record_function("by hand")
            self.span.__enter__()
            torch.ones(1)

        def end(self) -> None:
            torch.ones(1)
            self.span.__exit__(None, None, None)
            torch.ones(1)

    with profile(
        record_shapes=True, profile_memory=True, with_stack=True, with_flops=True, with_modules=True
    ) as prof:
        opened = Opened()
        opened.begin()
        with record_function("forward"):
            loss = model(torch.randn(3, 4)).sum()
        opened.end()
        loss.backward()
    document = json.loads(exported(prof, tmp_path))
    spans = [
        (e["tid"], round(e["ts"] * 1000), -round(e["ts"] * 1000) - round(e["dur"] * 1000), e["name"])
        for kind in ("cpu_op", "user_annotation", "python_function")
        for e in slices(document, kind)
    ]
    around: list[tuple] = []
    for event in sorted(spans):
        while around and (around[-1][0] != event[0] or -around[-1][2] <= event[1]):
            around.pop()
        assert not around or event[2] >= around[-1][2], (event, around[-1])
        around.append(event)
    calls = {e["args"]["Python id"]: e for e in slices(document, "python_function")}
    for call in calls.values():
        caller = calls.get(call["args"]["Python parent id"])
        if caller is not None:
            assert caller["ts"] <= call["ts"]
            assert call["ts"] + call["dur"] <= caller["ts"] + caller["dur"] + 1e-3


def thread_slices(path: Any) -> list[dict[str, Any]]:
    events = json.loads(path.read_text())["traceEvents"]
    return [e for e in events if e["ph"] == "X" and isinstance(e["tid"], int)]


def assert_nested(events: list[dict[str, Any]]) -> None:
    """On every thread, with times added up as floats, which is what readers do."""
    ends: dict[int, list[float]] = {}
    for event in sorted(events, key=lambda e: (e["tid"], e["ts"], -e["dur"])):
        open_ = ends.setdefault(event["tid"], [])
        while open_ and open_[-1] <= event["ts"]:
            open_.pop()
        end = event["ts"] + event["dur"]
        assert not open_ or end <= open_[-1], event["name"]
        open_.append(end)


async def job(number: int) -> None:
    with record_function(f"job {number}"):
        for part in range(2):
            torch.ones(3).sum()
            await asyncio.sleep(0.001 * number)
            with record_function(f"part {number}.{part}"):
                await asyncio.sleep(0.001)
                torch.ones(3).sum()


def test_ranges_of_asynchronous_code_that_overlap_are_written_on_tracks_that_nest(tmp_path: Any) -> None:
    async def together() -> None:
        await asyncio.gather(*[job(number) for number in range(3)])

    with profile(activities=[ProfilerActivity.CPU]) as p:
        asyncio.run(together())
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = thread_slices(tmp_path / "trace.json")
    assert_nested(events)
    assert len([e for e in events if e["cat"] == "user_annotation"]) == 9
    assert len({e["tid"] for e in events if e["cat"] == "cpu_op"}) == 1


def test_python_calls_nest_for_readers_that_add_times_as_floats(tmp_path: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True) as p:
        for _ in range(20):
            model(torch.ones(2, 3)).sum().backward()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert_nested(thread_slices(tmp_path / "trace.json"))


def test_the_file_of_a_recording_that_dropped_events_says_so(tmp_path: Path) -> None:
    x = torch.ones(2)
    with profile(max_events=100) as prof:
        for _ in range(1_000):
            x + x
    prof.export_chrome_trace(tmp_path / "part.json.gz")
    loaded = load(tmp_path / "part.json.gz")
    assert loaded.health == Health(dropped=900)
    assert not loaded.doctor().healthy
    assert loaded.key_averages().table() == prof.key_averages().table()
    assert HEALTH_KEY not in loaded.trace.settings.metadata


def test_a_complete_recording_has_no_health_in_its_file(tmp_path: Path) -> None:
    chrome.export_chrome_trace(make_trace(("aten::mm", 0, 10)), tmp_path / "whole.json")
    assert HEALTH_KEY not in json.loads((tmp_path / "whole.json").read_text())


def test_a_file_made_of_a_damaged_one_names_that_one_as_often_as_it_is_written_again(tmp_path: Path) -> None:
    chrome.export_chrome_trace(
        make_trace(*[("aten::mm", i * 10, i * 10 + 5) for i in range(50)]), tmp_path / "whole.json"
    )
    text = (tmp_path / "whole.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(text[: len(text) * 2 // 3])
    damage = load(tmp_path / "cut.json").health
    assert damage.notes
    load(tmp_path / "cut.json").export_chrome_trace(tmp_path / "again.json")
    again = load(tmp_path / "again.json")
    assert again.health.notes == tuple(f"cut.json: {note}" for note in damage.notes)
    assert (again.health.dropped, again.health.repaired) == (damage.dropped, damage.repaired)
