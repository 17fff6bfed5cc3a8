"""Columns of Kineto's events: read once, also of a torch that has fewer fields."""

from __future__ import annotations

import fake_kineto
import numpy as np
import pytest
from fake_kineto import FakeEvent, FakeResults, Kind

from mindtorch_prof.load.kineto_events import KinetoEvents, MissingNameError


def events(*given: FakeEvent) -> KinetoEvents:
    return KinetoEvents(FakeResults(given, 100))


MIXED = (
    FakeEvent(name="aten::add", correlation_id=1, shapes=[[2, 3]], stack=["a.py(1): f"]),
    FakeEvent(name="[memory]", activity_type="cpu_instant_event", nbytes=64, device_index=-1),
    FakeEvent(
        name="[memory]", activity_type="cpu_instant_event", nbytes=8, device_index=0, device_type=Kind.CUDA
    ),
    FakeEvent(
        name="cudaLaunchKernel", activity_type="cuda_runtime", correlation_id=7, linked_correlation_id=1
    ),
    FakeEvent(
        name="sgemm", activity_type="kernel", device_type=Kind.CUDA, correlation_id=7, linked_correlation_id=1
    ),
    FakeEvent(name="a.py(1): f", activity_type="python_function", is_python_function=True),
    FakeEvent(name="aten::add", correlation_id=2, end_thread_id=2),
    FakeEvent(name="profiler::_record_function_exit", correlation_id=3),
    FakeEvent(name="hidden", correlation_id=4, is_hidden_event=True),
)


def test_columns_hold_the_fields_of_all_events() -> None:
    kineto = events(*MIXED)
    names, texts = kineto.names
    assert [texts[n] for n in names] == [event.name() for event in MIXED]
    assert kineto.device_type.tolist() == [0, 0, 1, 0, 1, 0, 0, 0, 0]
    assert kineto.linked.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert np.flatnonzero(kineto.is_async).tolist() == [6]
    assert np.flatnonzero(kineto.is_python).tolist() == [5]
    assert np.flatnonzero(~kineto.is_listed).tolist() == [1, 2, 7, 8]


def test_more_events_than_are_read_at_once_stay_in_order() -> None:
    many = [FakeEvent(name=f"op{i % 3}", start_ns=i, correlation_id=i) for i in range(4_321)]
    kineto = events(*many)
    assert kineto.start.tolist() == list(range(4_321))
    assert kineto.names[0][:4].tolist() == [0, 1, 2, 0]


def test_unsigned_numbers_keep_their_bits() -> None:
    kineto = events(FakeEvent(start_thread_id=2**64 - 1, end_thread_id=2**64 - 1), FakeEvent())
    assert kineto.thread.tolist() == [-1, 1]
    assert not kineto.is_async.any()


def test_lists_are_interned_by_value() -> None:
    numbers, values = events(*MIXED).interned(np.array([0, 6, 0]), "shapes", "concrete_inputs")
    assert numbers.tolist() == [0, 1, 0]
    assert values == [([[2, 3]], []), ([], [])]


def test_values_that_cannot_be_packed_are_kept() -> None:
    strange = FakeEvent(concrete_inputs=[object])
    assert events(strange).interned(np.array([0]), "concrete_inputs")[1] == [([object],)]


@pytest.mark.parametrize("missing", ["activity_type", "is_hidden_event", "overload_name"])
def test_an_older_torch_has_fewer_fields(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.delattr(fake_kineto.FakeEvent, missing)
    given = [
        FakeEvent(name="aten::add", correlation_id=1),
        FakeEvent(name="mark", is_user_annotation=True),
        FakeEvent(name="cudaLaunchKernel", activity_type="cuda_runtime", linked_correlation_id=1),
        FakeEvent(name="sgemm", activity_type="kernel", device_type=Kind.CUDA, linked_correlation_id=1),
    ]
    kineto = events(*given)
    assert kineto.is_listed.all()
    if missing == "activity_type":
        activity, texts = kineto.activities
        assert [texts[a] for a in activity] == ["cpu_op", "user_annotation", "cuda_runtime", "kernel"]
        assert kineto.linked.tolist() == [0, 0, 1, 1]


def test_a_field_that_must_be_there_is_named_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fake_kineto.FakeEvent, "duration_ns")
    with pytest.raises(MissingNameError, match=r"FakeEvent has no duration_ns\(\)"):
        _ = events(*MIXED).length
