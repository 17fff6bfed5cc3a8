"""torch.masked: values recorded from torch 2.13."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

X = torch.arange(6.0).reshape(2, 3)
MASK = torch.tensor([[True, False, True], [False, False, False]])
INF, NAN = float("inf"), float("nan")
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], list[Any]]] = [
    ("sum", (1,), {}, [2, 0]),
    ("prod", (1,), {}, [0, 1]),
    ("amax", (1,), {}, [2, -INF]),
    ("amin", (1,), {}, [0, INF]),
    ("mean", (1,), {}, [1, NAN]),
    ("median", (1,), {}, [0, NAN]),
    ("logsumexp", (1,), {}, [2.126928, -INF]),
    ("argmax", (1,), {}, [2, 0]),
    ("argmin", (1,), {}, [0, 0]),
    ("var", (1,), {}, [2, NAN]),
    ("var", (1, False), {}, [1, NAN]),
    ("std", (1,), {"correction": 3}, [INF, NAN]),
    ("norm", (2.0, 1), {}, [2, 0]),
    ("norm", (-INF, 1), {}, [0, INF]),
    ("norm", (-1.0, 1), {}, [0, 0]),
    ("cumsum", (1,), {}, [[0, 0, 2], [0, 0, 0]]),
    ("cumprod", (1,), {}, [[0, 0, 0], [1, 1, 1]]),
    ("softmax", (1,), {}, [[0.119203, 0, 0.880797], [NAN] * 3]),
    ("softmin", (1,), {}, [[0.880797, 0, 0.119203], [NAN] * 3]),
    ("log_softmax", (1,), {}, [[-2.126928, -INF, -0.126928], [NAN] * 3]),
    ("normalize", (2.0, 1), {}, [[0, 0, 1], [0, 0, 0]]),
]


@pytest.mark.parametrize(
    ("name", "arguments", "options", "expected"), CASES, ids=[f"{c[0]} {c[1:3]}" for c in CASES]
)
def test_masked_elements_take_no_part(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any], expected: list[Any]
) -> None:
    result = getattr(torch.masked, name)(X, *arguments, mask=MASK, **options)
    np.testing.assert_allclose(result.numpy(), np.array(expected, np.float32), 1e-5)
    assert result.dtype is torch.float32


def test_a_masked_element_of_logaddexp_adds_nothing() -> None:
    result = torch.masked.logaddexp(X, X + 1, input_mask=MASK, other_mask=MASK)
    np.testing.assert_allclose(result.numpy(), [[1.313262, -INF, 3.313262], [-INF] * 3], 1e-5)


def test_integers_are_summed_as_int64_and_have_limits_as_extremes() -> None:
    assert torch.masked.sum(X.int(), 1, mask=MASK).dtype is torch.int64
    assert torch.masked.amax(X.long(), 1, mask=MASK).tolist() == [2, torch.iinfo(torch.int64).min]


def test_gradients_do_not_reach_masked_elements() -> None:
    x = X.clone().requires_grad_()
    torch.masked.sum(x, mask=MASK).backward()
    assert x.grad.tolist() == MASK.float().tolist()


def test_what_torch_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        torch.masked.mean(X.long(), 1)
    with pytest.raises(IndexError, match="dimensionality higher"):
        torch.masked.sum(X, mask=torch.ones(1, 2, 3, dtype=torch.bool))
    with pytest.raises(NotImplementedError, match="identity of amax"):
        torch.masked.amax(X.bool(), 1, mask=MASK)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        torch.masked.sum(X, (0, -2))
    with pytest.raises(AssertionError, match="Only one of"):
        torch.masked.var(X, 1, True, correction=0)
