"""`torch.cond` and `torch.while_loop`, run at once: nothing captures a graph here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._tensor import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`."""
    if isinstance(pred, Tensor):
        if pred.numel() != 1:
            raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    elif not isinstance(pred, (bool, int, float)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Call `body_fn` on its own results, beginning with `carried_inputs`, as long as `cond_fn` holds for them."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple, but got {type(carried_inputs)}.")
    carried = tuple(carried_inputs)
    results: Any = carried
    while cond_fn(*carried):
        results = body_fn(*carried)
        carried = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    return results
