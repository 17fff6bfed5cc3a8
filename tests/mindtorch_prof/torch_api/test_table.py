"""Tables: the same numbers in torch and here give the same text; where torch is wrong, ours is right."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterable
from functools import reduce
from operator import add
from types import ModuleType
from typing import Any

import fact_files
import pytest
import table_cases
from synthetic_traces import linear_with_synthetic_ops
from trace_builder import make_memory, make_trace

import mindtorch_v2 as torch
from mindtorch_prof.analysis.columns import COLUMNS
from mindtorch_prof.settings import Settings
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.torch_api import event_list, function_events, table
from mindtorch_prof.torch_api.results import Results
from mindtorch_v2.autograd import profiler_util
from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent
from mindtorch_v2.profiler import DeviceType, profile, record_function


def event(number: int, name: str, start: float, end: float, **fields: Any) -> FunctionEvent:
    return FunctionEvent(
        number, name, 1, start, end, **{"stack": [], "input_shapes": [], "flops": 0, **fields}
    )


def sum_left_to_right(values: Iterable[float]) -> float:
    """`sum` before Python 3.12, which corrects its rounding: torch's tables were recorded on 3.11."""
    return reduce(add, values, 0)


def test_every_recorded_table_is_torchs_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (table, event_list, function_events):
        monkeypatch.setattr(module, "sum", sum_left_to_right, raising=False)
    recorded = fact_files.read("profiler_tables.json.gz")["texts"]
    cases = table_cases.make_cases()
    assert len(cases) == len(recorded) == 700
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        different = [
            i
            for i, (case, text) in enumerate(zip(cases, recorded))
            if table_cases.text(profiler_util, DeviceType, case) != text
        ]
    assert different == []


def test_torch_itself_still_prints_the_recorded_tables(torch_reference: ModuleType) -> None:
    theirs = importlib.import_module("torch.autograd.profiler_util")
    for case in table_cases.make_cases()[:100]:
        assert table_cases.text(theirs, torch_reference.autograd.DeviceType, case) == table_cases.text(
            profiler_util, DeviceType, case
        )


def test_flops_and_source_lines_stand_under_their_own_titles() -> None:
    one = event(1, "aten::mm", 0, 10, stack=["model.py(3): forward"], flops=5000)
    titles, cells = EventList([one], with_flops=True).table().split("\n")[1:4:2]
    place = titles.index("Source Location")
    assert cells[place:].startswith("model.py(3): forward")
    assert titles.rstrip().endswith("Total KFLOPs")
    assert cells.rstrip().endswith("5.000")


def test_printing_writes_nothing_into_the_events() -> None:
    one = event(1, "aten::mm", 0, 10)
    before = dict(vars(one))
    EventList([one]).table()
    assert vars(one) == before


def test_events_without_stacks_or_flops_print_among_others_that_have_them() -> None:
    events = EventList(
        [event(1, "a", 0, 1, stack=["f.py(1): f"], flops=7), event(2, "b", 0, 1, stack=None, flops=None)],
        with_flops=True,
    )
    assert "--" in events.table()


def test_a_list_of_ops_whose_kernels_were_filtered_out_still_prints() -> None:
    op = event(1, "aten::mm", 0, 10, use_device="cuda")
    op.append_kernel("gemm", 0, 5.0)
    assert "NaN" in EventList([op], use_device="cuda").table()


def test_a_complete_recording_has_no_line_about_its_health() -> None:
    x = torch.ones(2)
    with profile() as prof:
        x + 1
    assert prof.key_averages().table().count("\n") == 3 + len(prof.key_averages()) + 2


def test_a_span_that_never_ended_is_said_under_the_table() -> None:
    with profile() as prof:
        span = record_function("open")
        span.__enter__()
    span.__exit__(None, None, None)
    assert [e.name for e in prof.events()] == ["open"]
    assert prof.key_averages().table().endswith("Incomplete: 1 unfinished\n")


def test_the_footer_says_how_many_calls_are_synthetic() -> None:
    results = Results(linear_with_synthetic_ops())
    line = (
        "6 of 10 calls are synthetic: torch shows these ops inside others, "
        "this program ran them as part of one kernel. as_recorded() leaves them out."
    )
    for rows in (results.key_averages(), results.events):
        assert rows.table(row_limit=1).splitlines()[-2:] == ["Self CPU time total: 24.000us", line]
    assert "synthetic" not in Results(as_recorded(results.trace)).key_averages().table()


def cells(text: str) -> list[list[str]]:
    """Titles and cells of a table."""
    return [
        re.split(r"\s{2,}", line.strip())
        for line in text.splitlines()
        if "  " in line and "--  --" not in line
    ]


def three_products() -> Results:
    """Three calls of mm that take 40, 10 and 30 us, one add of 5 us, and memory freed outside of both."""
    trace = make_trace(
        ("aten::mm", 0, 40_000),
        ("aten::mm", 50_000, 60_000),
        ("aten::add", 61_000, 66_000),
        ("aten::mm", 70_000, 100_000),
        memory=make_memory((120_000, -8, 64)),
        settings=Settings(profile_memory=True),
    )
    return Results(trace)


def test_statistics_of_durations_stand_after_the_number_of_calls() -> None:
    titles, *rows = cells(three_products().key_averages(stats=True).table())
    place = titles.index("# of Calls")
    assert titles[place:] == ["# of Calls", "Min", "p50", "p95", "Max", "Std", "First"]
    assert {row[0]: row[place:] for row in rows} == {
        "aten::mm": ["3", "10.000us", "30.000us", "39.000us", "40.000us", "12.472us", "40.000us"],
        "aten::add": ["1", "5.000us", "5.000us", "5.000us", "5.000us", "0.000us", "5.000us"],
        "[memory]": ["1", "--", "--", "--", "--", "--", "--"],
    }


def test_statistics_are_in_the_unit_that_was_asked_for() -> None:
    _, row, *_ = cells(three_products().key_averages(stats=True).table(time_unit="ms"))
    assert row[-1] == "0.040ms"


def test_rows_are_sorted_by_a_statistic_with_those_that_have_none_last() -> None:
    averages = three_products().key_averages()
    assert [row[0] for row in cells(averages.table(sort_by="first"))[1:]] == [
        "aten::mm",
        "aten::add",
        "[memory]",
    ]
    with pytest.raises(AttributeError, match="no attribute 'p95'"):
        three_products().events.table(sort_by="p95")


@pytest.mark.parametrize("stats", [False, True])
def test_a_legend_defines_each_column_of_the_table_and_changes_nothing_above(stats: bool) -> None:
    averages = three_products().key_averages(stats=stats)
    plain, with_legend = averages.table(), averages.table(legend=True)
    assert with_legend.startswith(f"{plain}\n")
    legend = with_legend[len(plain) + 1 :]
    assert max(map(len, legend.splitlines())) <= 80
    by_title = {fact.title: fact for fact in COLUMNS.values()}
    assert " ".join(legend.split()) == " ".join(
        f"{title} {by_title[title].definition}" for title in cells(plain)[0]
    )


def test_the_legend_calls_a_device_as_the_table_does() -> None:
    op = event(1, "aten::mm", 0, 10, use_device="cuda")
    op.append_kernel("gemm", 0, 5.0)
    legend = EventList([op], use_device="cuda").table(legend=True)
    assert f"Self CUDA      {COLUMNS['self_device_time_total'].meaning[:40]}" in legend


def test_an_empty_list_has_neither_a_table_nor_a_legend() -> None:
    assert EventList([]).table(legend=True) == ""
