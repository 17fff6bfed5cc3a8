"""Questions about tensors as functions of torch (`is_complex(x)`, `numel(x)`, `result_type(a, b)`), and old names that now refuse."""

from __future__ import annotations

from typing import Any

from .. import _dispatch, _dtype
from .._dispatch import function, type_name


def _ask(name: str, text: str) -> None:
    def question(input: Any) -> Any:
        if not isinstance(input, _dispatch.Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return getattr(input, name)()

    question.__name__ = question.__qualname__ = name
    question.__doc__ = text
    function(name, expose="function")(question)


_ask("is_complex", "Whether the dtype is complex.")
_ask("is_floating_point", "Whether the dtype is a floating one.")
_ask("is_signed", "Whether the dtype can be negative.")
_ask("is_conj", "Whether a conjugate is still to be computed: never.")
_ask("is_neg", "Whether a negation is still to be computed: never.")
_ask("is_inference", "Whether the tensor was made in inference mode.")
_ask("is_distributed", "Whether the tensor lives in several processes: never.")
_ask("numel", "How many elements.")


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
    raise TypeError(f"result_type(): argument must be Tensor or Number, not {type_name(value)}")


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
