"""Cases of torch.testing: which values are close, and the words for those that are not."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

NAN, INF = float("nan"), float("inf")


class Pair(NamedTuple):
    """Two numbers."""

    a: int
    b: int


def signatures(torch: Any, show: Any) -> None:
    for function in (torch.testing.assert_close, torch.testing.make_tensor, torch.testing.assert_allclose):
        for parameter in inspect.signature(function).parameters.values():
            show(parameter.name, parameter.kind.name, parameter.default)


def tensors(torch: Any, show: Any) -> None:
    t = torch.tensor
    for actual, expected in (
        (t([1.0, 2.0, 3.0]), t([1.0, 2.0, 4.0])),
        (t(1.0), t(2.0)),
        (t([1, 2]), t([1, 3])),
        (t(5), t(6)),
        (t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 2.5], [3.0, 5.0]])),
        (t([True, False]), t([True, True])),
        (t(True), t(False)),
        (t([1.0]), t([1.0], dtype=torch.float64)),
        (t([1.0]), t([1.0, 2.0])),
        (t([1.0]), t([[1.0]])),
        (t(1.0), t([1.0])),
        (t([1.0]), t([1.0], device="meta")),
        (t([1.0]), t([[1]], device="meta")),
        (t([1 + 1j]), t([1 + 2j])),
        (t(1 + 1j), t(1 + 2j)),
        (t([1.0], requires_grad=True), t([2.0])),
        (t([1], dtype=torch.uint8), t([255], dtype=torch.uint8)),
        (t([1, 1], dtype=torch.uint16), t([1, 2], dtype=torch.uint16)),
        (t([2**62]), t([2**62 + 1])),
        (t([1e-10]), t([0.0])),
        (t([0.0]), t([1e-3])),
        (t(1.0), t(0.0)),
        (t([0, 5]), t([0, 0])),
        (torch.ones(3, 4, 5), torch.zeros(3, 4, 5)),
        (torch.empty(0), torch.empty(0)),
        (torch.empty(0, 2), torch.empty(0)),
        (torch.ones(2, device="meta"), torch.ones(2, device="meta")),
        (torch.ones(2, device="meta"), torch.ones(3, device="meta")),
        (t([1.0, 2.0, 3.0]).expand(2, 3), t([1.0, 2.0, 4.0]).expand(2, 3)),
        (torch.arange(5), torch.arange(5).float()),
    ):
        show.raises(torch.testing.assert_close, actual, expected)


def half_precision(torch: Any, show: Any) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        for other in (2.001, 2.02, 2.1, 3.0):
            left, right = torch.tensor([1.0, 2.0], dtype=dtype), torch.tensor([1.0, other], dtype=dtype)
            show.raises(torch.testing.assert_close, left, right)


def numbers_and_other_leaves(torch: Any, show: Any) -> None:
    t = torch.tensor
    for actual, expected in (
        (1.0, 2.0),
        (1, 2),
        (1, 1.0),
        (2, 2.5),
        (1.0, 1.0 + 1e-8),
        (0.0, 1e-3),
        (5, 0),
        (True, False),
        (True, True),
        (1 + 1j, 1 + 2j),
        (NAN, NAN),
        (INF, INF),
        (INF, -INF),
        ("a", "a"),
        (None, None),
        (None, 1),
        (t([1.0]), None),
        (t([1.0]), 1.0),
        (1.0, t(1.0)),
        (t([1.0, 2.0]), [1.0, 2.0]),
        ({1, 2}, {1, 2}),
        (torch.float32, torch.float32),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        (np.array([1.0]), t([1.0], dtype=torch.float64)),
        (np.float32(1), np.float32(2)),
        (1, np.int64(1)),
        (np.ones(2), [1.0, 1.0]),
    ):
        show.raises(torch.testing.assert_close, actual, expected)


def nests(torch: Any, show: Any) -> None:
    t = torch.tensor
    for actual, expected in (
        ([1, 2], [1, 2]),
        ([1, 2], [1, 3]),
        ([1, 2], [1, 2, 3]),
        ([1, [2, 3]], [1, [2]]),
        ((1, 2), [1, 2]),
        (range(3), range(3)),
        ([], []),
        ({}, {}),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "c": 1, "d": 1}, {"b": 1}),
        ({"a": 1}, [1]),
        ("a", ["a"]),
        (torch.Size([1]), (1,)),
        (OrderedDict(a=1), {"a": 1}),
        (Pair(1, 2), Pair(1, 3)),
        ({"a": t([1.0, 2.0])}, {"a": t([1.0, 3.0])}),
        ({"b": t([1.0]), "a": t([1.0])}, {"b": t([2.0]), "a": t([3.0])}),
        ({1: t([1.0]), "a": t([1.0])}, {1: t([2.0]), "a": t([3.0])}),
        ([[1, t([1.0])], {"x": [3.0]}], [[1, t([1.0])], {"x": [4.0]}]),
        ([1, "a"], [1, "a"]),
    ):
        show.raises(torch.testing.assert_close, actual, expected)


def nan_and_infinity(torch: Any, show: Any) -> None:
    t, close = torch.tensor, torch.testing.assert_close
    show.raises(close, t([1.0, NAN]), t([1.0, NAN]))
    show.raises(close, t([1.0, NAN]), t([1.0, NAN]), equal_nan=True)
    show.raises(close, NAN, NAN, equal_nan=True)
    show.raises(close, t([INF]), t([INF]))
    show.raises(close, t([INF]), t([-INF]))
    show.raises(close, t([INF, 1.0]), t([1.0, INF]))
    show.raises(close, t([1.0]), t([NAN]))
    for left, right in ((NAN, 1.0), (INF, 1.0), (INF, -INF)):
        show.raises(close, t(left), t(right))


def options(torch: Any, show: Any) -> None:
    t, close = torch.tensor, torch.testing.assert_close
    one, more = t([1.0]), t([1.1])
    for kwargs in (
        {"rtol": 0.5},
        {"atol": 0.5},
        {"rtol": 0.5, "atol": 0},
        {"rtol": 0, "atol": 0.01},
        {"rtol": 0, "atol": 0},
        {"msg": "said"},
        {"msg": "X:{}".format},
        {"msg": 5},
    ):
        show.raises(close, one, more, **kwargs)
    show.raises(close, t([1, 2]), t([1, 3]), rtol=0, atol=1)
    show.raises(close, t([1, 2]), t([1, 4]), rtol=0, atol=1)
    show.raises(close, t([100]), t([101]), rtol=0.01, atol=0)
    show.raises(close, t(100), t(101), rtol=0.001, atol=0)
    show.raises(close, t([True]), t([False]), rtol=1, atol=1)
    show.raises(close, 1, 2.5, check_dtype=False)
    show.raises(close, one, one.double(), check_dtype=False)
    show.raises(close, one, t([1], dtype=torch.int32), check_dtype=False)
    show.raises(close, t([1.5]), t([1]), check_dtype=False)
    show.raises(close, one.half(), t([2.0], dtype=torch.float64), check_dtype=False)
    show.raises(close, one, t([1.0], device="meta"), check_device=False)
    show.raises(close, torch.ones(2, 3).t(), torch.ones(3, 2), check_stride=True)
    show.raises(close, torch.ones(2, 3).t(), torch.ones(3, 2))
    show.raises(close, one, one, 1e-3)


def subclasses(torch: Any, show: Any) -> None:
    class Special(torch.Tensor):
        pass

    close = torch.testing.assert_close
    show.raises(close, torch.ones(2).as_subclass(Special), torch.ones(2))
    show.raises(close, torch.nn.Parameter(torch.ones(2)), torch.ones(2) + 1)
    show.raises(close, torch.nn.Parameter(torch.ones(2)), torch.ones(2), allow_subclasses=False)


def sparse_tensors(torch: Any, show: Any) -> None:
    close, eye = torch.testing.assert_close, torch.eye(2)
    show.raises(close, eye.to_sparse(), (eye * 2).to_sparse())
    show.raises(close, eye.to_sparse(), eye)
    show.raises(close, eye.to_sparse(), eye, check_layout=False)
    show.raises(close, eye.to_sparse(), torch.tensor([[1.0, 1], [0, 1]]).to_sparse())
    show.raises(close, eye.to_sparse(), torch.tensor([[1.0, 1], [0, 0]]).to_sparse())


def assert_allclose_is_the_older_form(torch: Any, show: Any) -> None:
    close = torch.testing.assert_allclose
    for dtype in (torch.float16, torch.float32, torch.float64, torch.int64):
        show.raises(close, torch.ones(1, dtype=dtype), torch.ones(1, dtype=dtype) * 2)
    show.raises(close, [1.0, 2.0], [1.0, 3.0])
    show.raises(close, torch.ones(1), torch.ones(1).double() + 1e-5)
    show.raises(close, torch.ones(1), torch.ones(1) + 1, msg="said")
    show.warns(close, 1.0, 1.0)


def made_tensors(torch: Any, show: Any) -> None:
    def make(*shape: Any, **kwargs: Any) -> Any:
        torch.manual_seed(1)
        return torch.testing.make_tensor(*shape, device="cpu", **kwargs)

    names = "float16 bfloat16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 bool"
    for name in names.split():
        show(make(20, dtype=getattr(torch, name)))
    show(make((2, 3), dtype=torch.float32), make(dtype=torch.float32), make([2], dtype=torch.int8))
    for kwargs in (
        {"low": 1, "high": 2},
        {"low": 1},
        {"low": -1e-3, "high": 1e-3},
        {"requires_grad": True},
        {"noncontiguous": True},
    ):
        made = make(2, 3, dtype=torch.float32, **kwargs)
        show(made, made.stride(), made.storage_offset())
    show(make(3, dtype=torch.int64, low=1.2, high=3.7), make(3, dtype=torch.uint8, low=-5, high=300))
    show(bool((make(100, dtype=torch.int64, low=0, high=2, exclude_zero=True) == 0).any()))
    show(make(3, dtype=torch.bool, low=1, high=2), make(3, dtype=torch.bool, exclude_zero=True))
    show(make(2, 2, 2, 2, dtype=torch.float32, memory_format=torch.channels_last).stride())


def make_tensor_checks_its_arguments(torch: Any, show: Any) -> None:
    make = torch.testing.make_tensor
    for dtype, kwargs in (
        (torch.float32, {"low": 2, "high": 1}),
        (torch.float32, {"low": NAN}),
        (torch.float32, {"high": -20}),
        (torch.int64, {"low": 1, "high": 1}),
        (torch.int8, {"low": 200, "high": 300}),
        (torch.int64, {"requires_grad": True}),
        (torch.float32, {"noncontiguous": True, "memory_format": torch.channels_last}),
        (5, {}),
    ):
        show.raises(make, 3, dtype=dtype, device="cpu", **kwargs)
    show.warns(make, 3, dtype=torch.float32, device="cpu", low=1, high=1)
    show.raises(make, 3, dtype=torch.float32)
