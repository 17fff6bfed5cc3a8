"""Links between forward ops and backward nodes, and the nesting of what is written to trace files."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function


def linked() -> list[tuple[str, int, int, bool]]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with profile(activities=[ProfilerActivity.CPU]) as p:
        model(torch.ones(2, 3)).sum().backward()
    return [(e.name, e.flow_id, e.flow_type, e.flow_start) for e in p.events() if e.flow_id]


def test_links_are_numbered_in_the_order_of_the_backward_pass() -> None:
    # recorded from torch 2.13
    assert linked() == [
        ("aten::t", 6, 1, True),
        ("aten::addmm", 5, 1, True),
        ("aten::relu", 4, 1, True),
        ("aten::t", 3, 1, True),
        ("aten::addmm", 2, 1, True),
        ("aten::sum", 1, 1, True),
        ("SumBackward0", 1, 1, False),
        ("AddmmBackward0", 2, 1, False),
        ("TBackward0", 3, 1, False),
        ("ReluBackward0", 4, 1, False),
        ("AddmmBackward0", 5, 1, False),
        ("TBackward0", 6, 1, False),
    ]


def test_an_event_without_a_link_says_so() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as p:
        torch.ones(2) + 1
    assert {(e.flow_id, e.flow_type, e.flow_start) for e in p.events()} == {(0, 0, False)}


def slices(path: Any) -> list[dict[str, Any]]:
    events = json.loads(path.read_text())["traceEvents"]
    return [e for e in events if e["ph"] == "X" and isinstance(e["tid"], int)]


def assert_nested(found: list[dict[str, Any]]) -> None:
    """On every thread, with times added up as floats, which is what readers do."""
    ends: dict[int, list[float]] = {}
    for event in sorted(found, key=lambda e: (e["tid"], e["ts"], -e["dur"])):
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
    found = slices(tmp_path / "trace.json")
    assert_nested(found)
    assert len([e for e in found if e["cat"] == "user_annotation"]) == 9
    assert len({e["tid"] for e in found if e["cat"] == "cpu_op"}) == 1


def test_python_calls_nest_for_readers_that_add_times_as_floats(tmp_path: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True) as p:
        for _ in range(20):
            model(torch.ones(2, 3)).sum().backward()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert_nested(slices(tmp_path / "trace.json"))
