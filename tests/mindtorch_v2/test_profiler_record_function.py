"""Annotations: spans of record_function and of the ops behind it, where they begin and end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

X = torch.ones(2)


def names(prof: Any) -> list[str]:
    return [e.name for e in prof.events()]


def test_record_function_as_context_decorator_and_by_hand() -> None:
    @record_function("decorated")
    def add() -> Any:
        return X + X

    with profile() as prof:
        add()
        span = record_function("by hand")
        span.__enter__()
        X * X
        span.__exit__(None, None, None)
    assert [(e.name, e.cpu_parent and e.cpu_parent.name) for e in prof.events()] == [
        ("decorated", None),
        ("aten::add", "decorated"),
        ("by hand", None),
        ("aten::mul", "by hand"),
    ]
    assert add.__name__ == "add"
    assert [e.is_user_annotation for e in prof.events()] == [True, False, True, False]
    assert prof.events()[0].scope == torch._C._profiler.RecordScope.USER_SCOPE.value


def test_spans_of_tasks_that_take_turns_keep_their_times() -> None:
    async def task(name: str) -> None:
        with record_function(name):
            await asyncio.sleep(0)
            X + X
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(task("one"), task("two"))

    with profile() as prof:
        asyncio.run(both())
    assert {"one", "two"} <= set(names(prof))
    assert all(e.self_cpu_time_total >= 0 for e in prof.events())


def test_a_span_that_began_before_the_profile_is_not_part_of_it() -> None:
    span = record_function("early")
    span.__enter__()
    with profile() as prof:
        X + X
        span.__exit__(None, None, None)
    assert names(prof) == ["aten::add"]


def test_a_span_may_end_after_the_profile() -> None:
    prof = profile()
    prof.start()
    with record_function("late"):
        X + X
        prof.stop()
    assert names(prof) == ["late", "aten::add"]


@pytest.mark.parametrize("begin", ["_record_function_enter", "_record_function_enter_new"])
def test_annotations_can_be_begun_and_ended_by_ops(begin):
    with profile() as prof:
        handle = getattr(torch.ops.profiler, begin)("by op", None)
        torch.ones(2).sin()
        torch.ops.profiler._record_function_exit(handle)
    (event,) = [e for e in prof.events() if e.name == "by op"]
    assert event.is_user_annotation
    assert "aten::sin" in [child.name for child in event.cpu_children]
    with pytest.raises(RuntimeError, match="for argument 'name' but instead found type 'int'"):
        getattr(torch.ops.profiler, begin)(3)
