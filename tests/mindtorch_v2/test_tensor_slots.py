"""Internal fields of tensors, outside of `__dict__`: defaults, views, operators; attributes per thread."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch, _recording_hooks, _storage, _tensor_slots

compiled = _tensor_slots._compiled is not None


def _after_backward() -> torch.Tensor:
    leaf = torch.ones(3, requires_grad=True)
    leaf.register_hook(lambda gradient: gradient * 2)
    (leaf * leaf).sum().backward()
    return leaf


def _level_of_a_transform() -> torch.Tensor:
    seen = []
    torch.func.grad(lambda x: (seen.append(x), x.sum())[1])(torch.ones(2))
    return seen[0]


TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "a factory's": lambda: torch.ones(3),
    "an op's": lambda: torch.ones(3) + 1,
    "an op's with a gradient": lambda: torch.ones(3, requires_grad=True).exp(),
    "a view": lambda: torch.ones(3)[1:],
    "a view of a view that was written": lambda: torch.ones(3)[1:][1:].add_(1),
    "one of several views": lambda: torch.ones(4).split(2)[1],
    "a leaf after a backward pass": _after_backward,
    "a retained gradient's": lambda: torch.ones(2, requires_grad=True).mul(2).requires_grad_(),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "a meta tensor": lambda: torch.ones(3, device="meta"),
    "a sparse tensor": lambda: torch.eye(3).to_sparse(),
    "an inference tensor": torch.inference_mode()(lambda: torch.ones(3)[1:]),
    "detached": lambda: torch.ones(2).detach(),
    "data": lambda: torch.ones(2).data,
    "shared": lambda: torch.ones(2).share_memory_(),
    "in a transform": _level_of_a_transform,
}


@pytest.mark.parametrize("kind", TENSORS)
def test_the_dict_of_a_tensor_is_empty(kind: str) -> None:
    assert TENSORS[kind]().__dict__ == {}


def test_attributes_copied_from_another_tensor_leave_the_elements_alone() -> None:
    source, target = torch.arange(6.0).view(2, 3), torch.zeros(2)
    source.note = "a"
    target.__dict__.update(source.__dict__)
    assert (target.tolist(), target.note) == ([0.0, 0.0], "a")
    target.__dict__ = source.__dict__.copy()
    assert target.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_keep_the_attributes_that_the_program_set(duplicate: Callable[[Any], Any]) -> None:
    tensor = torch.ones(3, requires_grad=True)
    tensor.note = ["a"]
    twin = duplicate(tensor)
    assert (twin.__dict__, twin.requires_grad, twin.tolist()) == ({"note": ["a"]}, True, [1.0, 1.0, 1.0])
    assert (twin.note is tensor.note) == (duplicate is copy.copy)


def _fields(tensor: Any) -> dict[str, Any]:
    return {name: getattr(tensor, name) for name in _tensor_slots.DEFAULTS}


@pytest.mark.parametrize("core", ["chosen", "python"])
def test_a_new_tensor_has_the_defaults_and_no_array(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if core == "python":
        monkeypatch.setattr(_tensor_slots, "_compiled", None)
    new_tensor = _tensor_slots.allocators(torch.Tensor).new_tensor
    for cls in (torch.Tensor, torch.nn.Parameter):
        tensor = new_tensor(cls)
        assert type(tensor) is cls
        assert _fields(tensor) == _tensor_slots.DEFAULTS
        assert not hasattr(tensor, "_array")
        assert tensor.__dict__ == {}


@pytest.mark.parametrize("core", ["chosen", "python"])
def test_views_know_their_base_and_are_found_while_they_live(
    core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if core == "python":
        monkeypatch.setattr(_tensor_slots, "_compiled", None)
    new_tensor, new_view, add_view, views_of, _ = _tensor_slots.allocators(torch.Tensor)
    base = new_tensor(torch.Tensor)
    base._array = torch.ones(4)._array
    views = [new_view(base, base._array[i:]) for i in range(3)]
    inner = new_view(views[1], base._array[3:])
    other = new_tensor(torch.Tensor)
    add_view(base, other)
    assert all(view._base is base for view in (*views, inner))
    assert {id(view) for view in views_of(base)} == {id(view) for view in (*views, inner, other)}
    assert views_of(views[1]) == []
    del views[1], inner
    gc.collect()
    assert {id(view) for view in views_of(base)} == {id(view) for view in (*views, other)}
    for i in range(1000):  # what is dead does not pile up
        new_view(base, base._array[i % 4 :])
    assert len(views_of(base)) == 3
    assert not hasattr(base._views, "__len__") or len(base._views) < 128


@pytest.mark.parametrize("inference", [False, True])
def test_results_of_kernels_become_arrays_in_the_layout_of_their_operands(inference: bool) -> None:
    with torch.inference_mode(inference):
        operand = np.ones((2, 3)).T
        for new_result in (_dispatch.new_result, _dispatch.wrap_result):
            array = np.ones((3, 2))
            assert new_result(array)._array is array
            assert new_result(array, array, 2.0)._array is array
            assert new_result(array, operand)._array.strides == operand.strides
            scalar = new_result(np.float32(2))
            assert (type(scalar._array), scalar.dtype, scalar.shape) == (np.ndarray, torch.float32, ())
            assert scalar.is_inference() == inference


def test_allocators_refuse_what_is_no_tensor() -> None:
    with pytest.raises(TypeError):
        _dispatch.new_tensor(int)
    if _tensor_slots._compiled is not None:
        with pytest.raises(TypeError, match="a tensor is needed"):
            _dispatch.new_view(3, None)
        with pytest.raises(TypeError, match="is not a slot"):
            _tensor_slots._compiled.allocators(torch.Tensor, {"shape": None})


def test_a_cycle_through_a_base_and_its_views_is_collected() -> None:
    base = torch.zeros(3)
    base.views = [base[i:] for i in range(3)]
    reference = _storage.views_of(base)[0]
    del base
    import weakref

    watched = weakref.ref(reference)
    del reference
    gc.collect()
    assert watched() is None


def _no_heap_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("walks over all objects")

    monkeypatch.setattr(gc, "get_referrers", refuse)
    monkeypatch.setattr(gc, "get_objects", refuse)


def test_requiring_gradients_reaches_earlier_views_without_a_walk_over_all_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _no_heap_walks(monkeypatch)
    base = torch.zeros(3)
    view = base[:2]
    inner = view[:1]
    base.requires_grad_()
    assert (view.requires_grad, inner.requires_grad, view.is_leaf) == (True, True, True)
    (view * 2).sum().backward()  # torch: the view accumulates nothing, nor does its base
    assert (view.grad, base.grad) == (None, None)
    base.requires_grad_(False)
    assert (view.requires_grad, inner.requires_grad) == (False, False)
    view.requires_grad_()
    assert (view.requires_grad, base.requires_grad, inner.requires_grad) == (True, False, False)
    (view * 2).sum().backward()
    assert view.grad.tolist() == [2.0, 2.0]
    view.requires_grad_(False)
    base.requires_grad_()
    assert view.requires_grad


def test_detaching_a_base_in_place_leaves_its_rebuilt_views_their_history() -> None:
    base = torch.zeros(3)
    view, untouched = base[:2], base[1:]
    base.add_(torch.ones(3, requires_grad=True))
    assert view.grad_fn.name() == "AsStridedBackward0"
    base.detach_()
    assert (view.requires_grad, untouched.requires_grad, base.requires_grad) == (True, False, False)


def test_sharing_memory_moves_views_and_aliases_without_a_walk_over_all_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _no_heap_walks(monkeypatch)
    base = torch.arange(4.0)
    storage = base.untyped_storage()
    others = [
        base[1:],
        base.detach()[1:],
        base.data[1:],
        torch.nn.Parameter(base)[1:],
        base.view(torch.int32),
    ]
    others.append(torch.empty(0).set_(base.data.untyped_storage(), 1, (3,), (1,)))
    storage.share_memory_()
    for tensor in others:
        assert tensor.is_shared()
    with torch.no_grad():
        base[1] = 7.0
        for tensor in (others[0], *others[1:4], others[5]):
            assert tensor[0].item() == 7.0
    assert others[4].view(torch.float32)[1].item() == 7.0


# ------------------------------------------------------------------------------------------------ operators


class _Recorded(list):
    """What was called through probes, which run the op."""

    def __enter__(self) -> _Recorded:
        def probe(op: Any) -> Callable[..., Any]:
            return lambda *arguments: (self.append((op.full_name, arguments)), op.run(*arguments))[1]

        _recording_hooks.set_profiler([probe(op) for op in _dispatch.BY_UID], None)
        return self

    def __exit__(self, *exception: object) -> None:
        _recording_hooks.remove_profiler()


def test_an_operator_looks_like_a_method_of_its_class() -> None:
    plus = torch.Tensor.__add__
    assert inspect.isroutine(plus)
    assert (plus.__name__, plus.__module__) == ("__add__" if compiled else "add", "mindtorch_v2")
    torch.ones(2) + 1
    assert list(inspect.signature(plus).parameters) == ["input", "other"]
    assert plus(torch.ones(2), 2).tolist() == torch.ones(2).__add__(2).tolist() == [3, 3]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        plus(torch.ones(2))


@pytest.mark.skipif(not compiled, reason="functions inside functions cannot be pickled")
def test_an_operator_is_pickled_and_copied_as_the_attribute_of_its_class() -> None:
    plus = torch.Tensor.__add__
    assert pickle.loads(pickle.dumps(plus)) is plus
    assert copy.deepcopy(plus) is plus
    assert repr(plus) == "<operator '__add__' of 'Tensor' objects>"


@pytest.mark.parametrize("name", sorted(_dispatch.OPERATORS))
@pytest.mark.parametrize(
    "other", [torch.tensor([2, 4]), torch.nn.Parameter(torch.ones(2)), 2, 2.5, True, "x", None]
)
def test_a_recorded_operator_calls_the_probe_with_what_the_function_passes(name: str, other: Any) -> None:
    op, operator = _dispatch.OPERATORS[name], getattr(torch.Tensor, name)

    def outcome(call: Callable[[Any, Any], Any]) -> Any:
        try:
            return call(torch.tensor([3, 5]), other)
        except Exception as error:
            return error

    with _Recorded() as by_operator:
        result = outcome(operator)
    with _Recorded() as by_function:
        wanted = outcome(op.operator)
    assert str(by_operator) == str(by_function)
    assert (str(result), type(result)) == (str(wanted), type(wanted))


def test_overrides_see_recorded_operators(run_python: Callable[..., str]) -> None:
    seen = run_python("""
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile
        with profile() as prof:
            x = torch.ones(2)
            x + x
            class Seen(torch.Tensor):
                @classmethod
                def __torch_function__(cls, function, types, args=(), kwargs=None):
                    print(function is torch.Tensor.add, function is torch.Tensor.__floordiv__)
                    return super().__torch_function__(function, types, args, kwargs)
            y = x.as_subclass(Seen)
            print(type(y + x).__name__, type(x // y).__name__, (x + x).tolist())
        print(sum(event.name in ("aten::add", "aten::floor_divide") for event in prof.events()))
    """)
    assert seen.split("\n")[:-1] == ["True False", "False True", "Seen Seen [2.0, 2.0]", "4"]


class _PerThread(threading.local):
    number = 1
    text: str | None = None


@pytest.fixture(params=["compiled", "plain"])
def per_thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _PerThread:
    if request.param == "plain":
        monkeypatch.setattr(_tensor_slots, "_compiled", None)
    elif not compiled:
        pytest.skip("needs the compiled core")
    return _tensor_slots.per_thread(_PerThread)


def on_another_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_each_thread_has_its_own_attributes_which_begin_with_the_defaults(per_thread: _PerThread) -> None:
    per_thread.number, per_thread.text = 2, "set"

    def first_values_and_set() -> tuple[Any, ...]:
        before = per_thread.number, per_thread.text
        per_thread.number = 3
        return before

    assert on_another_thread(first_values_and_set) == (1, None)
    assert (per_thread.number, per_thread.text) == (2, "set")


def test_attributes_per_thread_are_found_by_a_name_that_was_put_together(per_thread: _PerThread) -> None:
    name = "_number"[len("_") :]
    setattr(per_thread, name, 5)
    assert getattr(per_thread, name) == per_thread.number == 5


def test_a_deleted_attribute_per_thread_has_its_default_again(per_thread: _PerThread) -> None:
    per_thread.number = 2
    del per_thread.number
    assert per_thread.number == 1


def test_an_attribute_per_thread_that_is_unknown_raises(per_thread: _PerThread) -> None:
    with pytest.raises(AttributeError, match="unknown"):
        _ = per_thread.unknown  # type: ignore[attr-defined]


def test_the_own_attributes_of_a_thread_stay_up_to_date(per_thread: _PerThread) -> None:
    own = _tensor_slots.own_attributes(per_thread, ("number",))
    assert own["number"] == 1
    per_thread.number = 4
    assert own["number"] == 4

    def others() -> tuple[int, int]:
        per_thread.number = 7
        return own["number"], _tensor_slots.own_attributes(per_thread, ("number",))["number"]

    assert on_another_thread(others) == (4, 7)


def test_attributes_of_a_thread_are_freed_when_it_ends_and_finalizers_find_the_defaults(
    per_thread: _PerThread,
) -> None:
    seen: list[Any] = []

    class Value:
        def __del__(self) -> None:
            seen.append(per_thread.number)

    def set_value() -> weakref.ref[Value]:
        value = Value()
        per_thread.number, per_thread.text = 2, value  # type: ignore[assignment]
        return weakref.ref(value)

    reference = on_another_thread(set_value)
    gc.collect()
    assert reference() is None
    assert seen == [1]


def test_many_threads_at_once_never_see_the_attributes_of_another(per_thread: _PerThread) -> None:
    wrong: list[int] = []
    begin = threading.Barrier(8)

    def count(number: int) -> None:
        begin.wait()
        for turn in range(2000):
            per_thread.number = number * 10_000 + turn
            if per_thread.number != number * 10_000 + turn:
                wrong.append(number)

    threads = [threading.Thread(target=count, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
