"""torch's rules on columns: beside a plain version of them, and beside torch's own code."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import fake_kineto
import pytest
from fake_kineto import FakeEvent, FakeResults, Kind
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.load.kineto_events import KinetoEvents
from mindtorch_prof.load.torch_lists import TorchLists


def lists(results: FakeResults, **options: Any) -> TorchLists:
    settings: dict[str, Any] = {"use_device": None, "with_flops": False, "with_stack": False, **options}
    return TorchLists(KinetoEvents(results), **settings)


def op(name: str, start: int, length: int, thread: int = 1, **fields: Any) -> FakeEvent:
    return FakeEvent(
        name=name, start_ns=start, duration_ns=length, start_thread_id=thread, end_thread_id=thread, **fields
    )


def memory(start: int, nbytes: int, thread: int = 1) -> FakeEvent:
    fields = {"activity_type": "cpu_instant_event", "device_index": -1, "nbytes": nbytes}
    return op("[memory]", start, 0, thread, **fields)


spans = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 12), st.integers(1, 2), st.booleans()
    ),
    max_size=14,
)


@given(spans)
def test_parents_are_those_of_torch_s_walk(rows: list[tuple[str, int, int, int, bool]]) -> None:
    given_events = [op(n, s, d, t, is_async=a) for n, s, d, t, a in rows]
    mine = lists(FakeResults(given_events, 0))
    expected: dict[int, int | None] = {}
    order = sorted(range(len(rows)), key=lambda i: (rows[i][1], -(rows[i][1] + rows[i][2])))
    for thread in (1, 2):
        open_: list[int] = []
        for i in [i for i in order if rows[i][3] == thread and not rows[i][4]]:
            start, end = rows[i][1], rows[i][1] + rows[i][2]
            while open_:
                last = rows[open_[-1]][1] + rows[open_[-1]][2]
                if start >= last or end > last:
                    open_.pop()
                else:
                    break
            expected[i] = open_[-1] if open_ else None
            open_.append(i)
    parent, _ = mine._nesting
    for row, source in enumerate(mine.source.tolist()):
        above = int(parent[row])
        assert (int(mine.source[above]) if above >= 0 else None) == expected.get(source)


def test_an_allocation_counts_for_the_events_of_all_threads_around_it() -> None:
    mine = lists(
        FakeResults([op("main", 0, 100), op("aten::empty", 10, 20, 2), memory(15, 64, 2), memory(150, 8)], 0)
    )
    by_name = {mine.names[1][n]: int(b) for n, b in zip(mine.names[0], mine.cpu_memory)}
    assert by_name == {"main": 64, "aten::empty": 64, "[memory]": 8}


def test_an_asynchronous_event_has_time_and_no_self_time() -> None:
    mine = lists(FakeResults([op("outer", 0, 100), op("gloo:all_reduce", 10, 50, is_async=True)], 0))
    assert mine.cpu_us.tolist() == pytest.approx([0.1, 0.05])
    assert mine.self_cpu_us.tolist() == [0.1, 0.0]


def test_times_of_memory_are_rounded_for_older_versions_of_torch() -> None:
    base = 1_790_000_000_000_000_000
    events = [op("aten::empty", base + 100, 1000), memory(base + 40, 64)]
    assert lists(FakeResults(events, base)).cpu_memory.tolist() == [64, 0]
    assert lists(FakeResults(events, base), rounded_memory=True).cpu_memory.tolist() == [64]


def test_kernels_of_a_merged_child_are_its_parent_s() -> None:
    device = {"activity_type": "kernel", "device_type": Kind.CUDA, "device_index": 0}
    events = [
        op("aten::mm", 0, 100, correlation_id=1),
        op("aten::mm", 10, 50, correlation_id=2),
        FakeEvent(name="lost", start_ns=200, duration_ns=7_000, linked_correlation_id=1, **device),
        FakeEvent(name="sgemm", start_ns=300, duration_ns=5_000, linked_correlation_id=2, **device),
    ]
    mine = lists(FakeResults(events, 0), use_device="cuda")
    groups = mine.groups()
    names = [mine.names[1][mine.names[0][row]] for row in groups.first.tolist()]
    assert dict(zip(names, groups.device_us.tolist())) == {"aten::mm": 5.0, "lost": 7.0, "sgemm": 5.0}


# -------------------------------------------------------------------------------- torch itself


@pytest.mark.parametrize(
    "name", ["h100_qwen_infer_stack_memory", "nvidia_ddp_train_nccl", "mi300_resnet_ddp_act_checkpoint"]
)
def test_torch_s_own_code_makes_the_same_list_of_a_gpu_recording(
    torch_reference: ModuleType, ecosystem: Path, name: str
) -> None:
    torch: Any = torch_reference
    document = fake_kineto.read(ecosystem / "traces" / f"{name}.json.gz")
    document["traceEvents"] = document["traceEvents"][
        :12_000
    ]  # torch's own code takes a minute for all of them
    results = fake_kineto.results_of(document, torch.autograd.DeviceType)
    fake = SimpleNamespace(use_device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = torch.autograd.profiler.profile._parse_kineto_results(fake, results)
        theirs = torch.autograd.profiler_util.EventList(parsed, use_device="cuda", profile_memory=True)
        theirs._build_tree()
    mine = lists(results, use_device="cuda")
    shown = mine.shown.tolist()
    texts = mine.names[1]
    assert [texts[mine.names[0][row]] for row in shown] == [event.name for event in theirs]
    for column, field in (
        ("cpu_us", "cpu_time_total"),
        ("self_cpu_us", "self_cpu_time_total"),
        ("device_us", "device_time_total"),
        ("self_device_us", "self_device_time_total"),
        ("cpu_memory", "cpu_memory_usage"),
        ("self_device_memory", "self_device_memory_usage"),
        ("thread", "thread"),
    ):
        values = getattr(mine, column)[mine.shown].tolist()
        assert values == pytest.approx([getattr(event, field) for event in theirs], abs=1e-6), column
    groups, averages = mine.groups(), theirs.key_averages()
    assert groups.count.tolist() == [row.count for row in averages]
    assert groups.device_us.tolist() == pytest.approx([row.device_time_total for row in averages], abs=1e-6)
