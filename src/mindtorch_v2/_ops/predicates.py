"""Predicates on tensors as functions of torch (`is_complex(x)`, `is_tensor(x)`), `numel`, `result_type`, and removed functions that raise."""

from __future__ import annotations

from typing import Any

from .. import _dispatch, _dtype
from .._dispatch import function


def _expose(name: str, text: str) -> None:
    """Expose a method of Tensor as a function of torch."""

    def predicate(input: Any) -> Any:
        if not isinstance(input, _dispatch.Tensor):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
            )
        return getattr(input, name)()

    predicate.__name__ = predicate.__qualname__ = name
    predicate.__doc__ = text
    function(name, expose="function")(predicate)


_expose("is_complex", "Whether the dtype is complex.")
_expose("is_floating_point", "Whether the dtype is a floating-point one.")
_expose("is_signed", "Whether the dtype can be negative.")
_expose("is_conj", "Whether a conjugate is still to be computed: never.")
_expose("is_neg", "Whether a negation is still to be computed: never.")
_expose("is_inference", "Whether the tensor was made in inference mode.")
_expose("is_distributed", "Whether the tensor is distributed over processes: never.")
_expose("numel", "How many elements.")


@function(expose="function")
def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, _dispatch.Tensor)


@function()
def get_device(self: Any) -> int:
    """-1: the tensor is on no numbered device."""
    return -1


def _operand(value: Any) -> tuple[_dtype.dtype, int]:
    if isinstance(value, _dispatch.Tensor):
        return value.dtype, 1 if value.ndim == 0 else 0
    if isinstance(value, (bool, int, float, complex)):
        return _dtype.number_dtype(value), 2
    raise TypeError(f"result_type(): argument must be Tensor or Number, not {type(value).__name__}")


@function(expose="function")
def result_type(tensor: Any, other: Any) -> _dtype.dtype:
    """The dtype of an arithmetic operation on both: tensors or Python numbers."""
    return _dtype.result_dtype((_operand(tensor), _operand(other)))


@function(expose="function")
def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Removed from torch; says what to call."""
    raise RuntimeError(
        "This function was deprecated since version 1.9 and is now removed.\nPlease use the `torch.linalg.matrix_rank` function "
        "instead. The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    )
