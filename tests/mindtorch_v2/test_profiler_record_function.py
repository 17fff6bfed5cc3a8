"""Annotations: spans of record_function and of the ops behind it, where they begin and end."""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
import weakref
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.record_function import PythonRange

X = torch.ones(2)


class PlainRange(PythonRange):
    """`record_function` on the plain twin, whichever core was chosen."""

    __init__, _checked = record_function.__init__, record_function._checked


RANGES = [record_function, PlainRange]


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


@pytest.mark.parametrize("kind", RANGES, ids=["chosen core", "plain twin"])
def test_a_range_is_recorded_in_the_order_in_which_it_is_left(kind: Any) -> None:
    outer, inner = kind("outer"), kind("inner")
    with profile() as prof:
        assert outer.__enter__() is outer
        inner.__enter__()
        outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
    assert sorted(names(prof)) == ["inner", "outer"]
    assert outer.record is None


@pytest.mark.parametrize("kind", RANGES, ids=["chosen core", "plain twin"])
def test_a_range_asks_at_each_entry_whether_something_records(kind: Any) -> None:
    named = kind("again")
    for _ in range(2):
        with named:
            pass
        with profile() as prof, named:
            pass
        assert names(prof) == ["again"]
    with pytest.raises(AssertionError, match="Expected record to be set"):
        named.__exit__(None, None, None)


def test_a_range_can_be_subclassed_copied_and_given_attributes() -> None:
    class counted(record_function):
        entered = 0

        def __init__(self, number: int) -> None:
            super().__init__(f"range {number}")

        def __enter__(self) -> Any:
            self.entered += 1
            return super().__enter__()

    named = counted(3)
    named.note = "kept"
    with profile() as prof, named as inside:
        assert inside is named
    assert (named.entered, named.note) == (1, "kept")
    assert names(prof) == ["range 3"]
    again = copy.deepcopy(pickle.loads(pickle.dumps(record_function("a", "b"))))
    assert (again.name, again.args, again.record) == ("a", "b", None)
    assert weakref.ref(again)() is again


def test_ranges_leave_no_references_behind() -> None:
    name = "counted " + "name"
    with profile():
        with record_function(name):
            pass
        before = sys.getrefcount(name)
        for _ in range(100):
            with record_function(name):
                pass
        assert sys.getrefcount(name) == before


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "record_function.__init__() missing 1 required positional argument: 'name'"),
        (
            ("a", "b", "c"),
            {},
            "record_function.__init__() takes from 2 to 3 positional arguments but 4 were given",
        ),
        (("a",), {"x": 1}, "record_function.__init__() got an unexpected keyword argument 'x'"),
        (("a",), {"name": "b"}, "record_function.__init__() got multiple values for argument 'name'"),
    ],
)
def test_wrong_arguments_of_record_function_raise_as_in_torch(
    arguments: tuple, named: dict, message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        record_function(*arguments, **named)
    assert str(caught.value) == message


def test_record_function_takes_its_arguments_by_position_and_by_name() -> None:
    ranges = (
        record_function("a"),
        record_function("a", "b"),
        record_function("a", args="b"),
        record_function(args="b", name="a"),
    )
    assert [(each.name, each.args, each.run_callbacks_on_exit, each.record) for each in ranges] == [
        ("a", None, True, None),
        ("a", "b", True, None),
        ("a", "b", True, None),
        ("a", "b", True, None),
    ]


def test_init_of_a_subclass_and_one_that_replaces_that_of_record_function_are_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Numbered(record_function):
        def __init__(self, number: int) -> None:
            super().__init__(f"block {number}")

    assert Numbered(3).name == "block 3"
    names_given = []
    init = record_function.__init__

    def counted(self: Any, name: str, args: str | None = None) -> None:
        names_given.append(name)
        init(self, name, args)

    with monkeypatch.context() as patch:
        patch.setattr(record_function, "__init__", counted)
        assert record_function("a").name == "a"
        assert names_given == ["a"]
    assert record_function("b").name == "b"
    assert names_given == ["a"]
