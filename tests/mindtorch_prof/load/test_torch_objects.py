"""Objects over the columns of a live recording: fields on demand, one object per event, plain copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from fake_kineto import FakeEvent, FakeResults

from mindtorch_prof.load.kineto_events import KinetoEvents
from mindtorch_prof.load.torch_lists import TorchLists
from mindtorch_prof.load.torch_objects import LiveLists, own_family
from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.function_events import FunctionEvent


@pytest.fixture
def live() -> LiveLists:
    events = [
        FakeEvent(
            name="ProfilerStep#3",
            start_ns=0,
            duration_ns=9_000,
            correlation_id=1,
            is_user_annotation=True,
            activity_type="user_annotation",
            scope=7,
        ),
        FakeEvent(
            name="aten::mm",
            start_ns=1_000,
            duration_ns=4_000,
            correlation_id=2,
            shapes=[[2, 3], [3, 4]],
            dtypes=["float", "float"],
            sequence_nr=5,
            flops=48,
        ),
        FakeEvent(
            name="aten::mm", start_ns=6_000, duration_ns=1_000, correlation_id=3, shapes=[[2, 2], [2, 2]]
        ),
        FakeEvent(
            name="[memory]", start_ns=20_000, activity_type="cpu_instant_event", device_index=-1, nbytes=-8
        ),
    ]
    lists = TorchLists(
        KinetoEvents(FakeResults(events, 0)), use_device=None, with_flops=True, with_stack=False
    )
    return LiveLists(lists, own_family(), profile_memory=True)


def test_fields_are_those_that_torch_would_show(live: LiveLists) -> None:
    step, first, second, outside = live.events()
    assert (step.name, step.trace_name, step.key) == ("ProfilerStep*", "ProfilerStep#3", "ProfilerStep*")
    assert (first.id, first.sequence_nr, first.flops, first.input_shapes) == (2, 5, 48, [[2, 3], [3, 4]])
    assert (first.time_range.start, first.time_range.end, first.self_cpu_time_total) == (1.0, 5.0, 4.0)
    assert first.cpu_parent is step
    assert step.cpu_children == [first, second]
    assert step.self_cpu_time_total == 4.0
    assert (outside.name, outside.id, outside.cpu_memory_usage, outside.flops) == ("[memory]", 4, -8, None)
    assert first.device_type is DeviceType.CPU
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = first.nothing


def test_averages_add_up(live: LiveLists) -> None:
    rows = {row.key: row for row in live.key_averages()}
    assert (rows["aten::mm"].count, rows["aten::mm"].cpu_time_total, rows["aten::mm"].flops) == (2, 5.0, 48)
    assert rows["aten::mm"].input_shapes == ""
    assert rows["aten::mm"].stats.max == 4.0
    by_shape = [row for row in live.key_averages(by_shape=True) if row.key == "aten::mm"]
    assert [row.input_shapes for row in by_shape] == [[[2, 3], [3, 4]], [[2, 2], [2, 2]]]
    total = live.total_average()
    assert (total.key, total.count, total.self_cpu_time_total) == ("Total", 4, 9.0)


def test_the_table_of_averages_shows_statistics_on_request(live: LiveLists) -> None:
    for rows in (live.key_averages(stats=True), live.events().key_averages(stats=True)):
        mm = next(line for line in rows.table().splitlines() if "aten::mm" in line)
        spread = ["1.000us", "2.500us", "3.850us", "4.000us", "1.500us", "4.000us"]
        assert mm.split()[-len(spread) - 1 : -1] == spread  # flops are last
    memory = next(row for row in live.key_averages() if row.key == "[memory]")
    assert memory.stats is None


def test_lists_of_torchs_own_classes_say_where_statistics_are(live: LiveLists) -> None:
    live.family = live.family._replace(with_spreads=False)
    assert [row.stats for row in live.key_averages()] == [None] * 3
    with pytest.raises(TypeError, match=r"from_torch\(prof\).key_averages\(stats=True\) has them"):
        live.events().key_averages(stats=True)


def test_a_list_answers_from_columns_only_while_it_is_whole(live: LiveLists) -> None:
    events: Any = live.events()
    assert events._whole_live() is live
    del events[0]
    assert events._whole_live() is None
    assert {row.key: row.count for row in events.key_averages()} == {"aten::mm": 2, "[memory]": 1}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda events: pickle.loads(pickle.dumps(events))])
def test_copies_are_plain_events_with_their_tree(live: LiveLists, copied: Any) -> None:
    events = copied(list(live.events()))
    assert type(events[1]) is FunctionEvent
    assert events[1].cpu_parent is events[0]
    assert events[0].self_cpu_time_total == 4.0
    assert events[1].input_shapes == [[2, 3], [3, 4]]


def test_lists_are_of_the_family_s_class(live: LiveLists) -> None:
    assert isinstance(live.events(), EventList)
    assert isinstance(live.events()[0], FunctionEvent)
    assert "aten::mm" in live.events().table()
