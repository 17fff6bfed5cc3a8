"""Tables of events, memory and device work: their rows lead to each other."""

from __future__ import annotations

from typing import Any

import pytest
from trace_builder import make_memory, make_trace

from mindtorch_prof.analysis.tables import device_table, events_table, memory_table


def test_the_parent_of_an_event_is_the_row_of_another_one(three_steps: Any) -> None:
    rows = {row["row"]: row for row in events_table(three_steps).rows()}
    (addmm, *_) = (row for row in rows.values() if row["name"] == "aten::addmm")
    names = [addmm["name"]]
    while addmm["parent"] is not None:
        addmm = rows[addmm["parent"]]
        names.append(addmm["name"])
    assert names == ["aten::addmm", "aten::linear", "ProfilerStep#1"]


def test_self_times_of_events_add_up_to_those_of_averages(three_steps: Any) -> None:
    events = events_table(three_steps)
    averages = three_steps.key_averages()
    assert events["self_us"].sum() == pytest.approx(sum(row.self_cpu_time_total for row in averages))


def test_device_work_names_the_op_that_launched_it_and_its_step(three_steps: Any) -> None:
    rows = [
        (row["name"], row["launched_by"], row["step"], row["kind"])
        for row in device_table(three_steps).rows()
    ]
    assert rows == [
        (name, op, step, "kernel")
        for step in (1, 2, 3)
        for name, op in (("ampere_sgemm", "aten::addmm"), ("Memcpy DtoH", "aten::copy_"))
    ]


def test_allocations_have_their_time_since_the_start_and_the_running_total() -> None:
    memory = make_memory((1_500, 64, 1), (2_500, -64, 1))
    rows = memory_table(make_trace(("op", 1_000, 3_000), memory=memory, window_ns=(1_000, 4_000))).rows()
    assert [(row["time_us"], row["nbytes"], row["total_bytes"], row["device"]) for row in rows] == [
        (0.5, 64, 64, "cpu"),
        (1.5, -64, 0, "cpu"),
    ]
