"""Errors of op calls: an exception of a kernel in, the result of running the op another way or torch's own exception out.

The functions generated for ops call these off their fast path: whatever a kernel raised, and arguments that are refused.
"""

from __future__ import annotations

import math
from opcode import opmap
from typing import Any, NoReturn

import numpy as np

from . import _dispatch, _dtype
from ._dispatch import NUMBERS, Op, wrap
from ._graph import grad_state


def recover(op: Op, error: Exception, arguments: tuple) -> Any:
    """Handle an error in an op's fast path: run the op on sparse or meta tensors, or raise what torch raises."""
    tensors = list(_dispatch._tensors_in(arguments))
    if any(t._is_sparse_layout for t in tensors):
        from ._sparse_ops import run_sparse

        return run_sparse(op, arguments)
    if any(t._array_missing for t in tensors):
        from ._meta import run_meta

        return run_meta(op, arguments)
    if isinstance(error, MemoryError):
        raise _out_of_memory(error) from None
    if isinstance(error, RuntimeWarning) and op.inplace_of is None:
        # the program turns warnings into errors; torch computes log(0) without one
        with np.errstate(all="ignore"):
            return _dispatch.call(op, arguments)
    if isinstance(error, (AttributeError, TypeError)):
        if op.full_name in NUMBER_FIRST and arguments[0].__class__ in NUMBERS and tensors:
            return op.run(_boxed(arguments[0], tensors[0]), *arguments[1:])
        if op.full_name in NUMBERS_ALONE and all(value.__class__ in NUMBERS for value in arguments[:2]):
            kind = _dtype.number_dtype(arguments[0])
            return op.run(wrap(np.array(arguments[0], kind._np)), *arguments[1:])
        if any(answers(value) for value in arguments):
            from ._overrides import call_first_override

            return call_first_override(op, arguments)
        bad_argument(op, arguments)
        with_dtypes = [
            _dtype.named(value, op.name)
            if value is not None and argument.type.startswith("ScalarType")
            else value
            for argument, value in zip(op.schema.arguments, arguments)
        ]
        if any(a is not b for a, b in zip(with_dtypes, arguments)):
            return op.run(*with_dtypes)
        if "ufunc" in str(error) and tensors:
            refuse_dtype(op, arguments)
    if (
        isinstance(error, NotImplementedError)
        and op.inplace_of is not None
        and op.promote in ("same", "float")
    ):
        result_of(op, arguments)
    if isinstance(error, ValueError) and "read-only" in str(error) and tensors and tensors[0] is arguments[0]:
        return _write_again(op, error, arguments)
    if isinstance(error, ValueError):
        for part, words in _NUMPY_REFUSES.items():
            if part in str(error):
                raise RuntimeError(words) from None
    if grad_state.enabled and (op.inplace_of or op).node is not None and any(t._rg for t in tensors):
        grad_state.seq += 1  # torch creates the node before it computes
    if isinstance(error, ValueError) and "broadcast" in str(error) and tensors:
        shapes = [t._array.shape for t in tensors]
        text = broadcast_text(shapes)
        if text is not None:
            raise RuntimeError(text) from None
        if op.inplace_of is not None and np.broadcast_shapes(*shapes) != shapes[0]:
            raise RuntimeError(
                f"output with shape {list(shapes[0])} doesn't match the broadcast shape {list(np.broadcast_shapes(*shapes))}"
            ) from None
    if isinstance(error, _OF_NUMPY) and _is_of_numpy(error):
        raise RuntimeError(f"{op.name}(): {error}") from error
    raise error


# What NumPy and Python raise for shapes and numbers that an op cannot handle; torch raises RuntimeError.
_OF_NUMPY = (ValueError, ZeroDivisionError, OverflowError)
_RAISE = opmap["RAISE_VARARGS"]
_PACKAGE = __name__.rpartition(".")[0]


def _is_of_numpy(error: Exception) -> bool:
    """Whether NumPy or the interpreter raised an error, and neither a `raise` statement of this library nor a user's kernel."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
    if package == _PACKAGE:
        return trace.tb_frame.f_code.co_code[trace.tb_lasti] != _RAISE
    return package in ("numpy", "scipy")


# Part of NumPy's ValueError, and the text of torch's RuntimeError for the same.
_NUMPY_REFUSES = {
    "negative dimensions": "Trying to create tensor with negative dimension",
    "maximum supported dimension": "only tensors with up to 64 dims are supported",
}


def _out_of_memory(error: Any) -> Exception:
    """torch's error for memory that cannot be allocated, if NumPy tells how much it was."""
    if getattr(error, "shape", None) is None:
        return error
    nbytes = math.prod(error.shape) * error.dtype.itemsize
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        f"{nbytes} bytes. Error code 12 (Cannot allocate memory)"
    )


def answers(value: Any) -> bool:
    """Whether a value that is no tensor, or an item of a list, has a `__torch_function__`."""
    if isinstance(value, (tuple, list)):
        return any(answers(item) for item in value)
    return not isinstance(value, _dispatch.Tensor) and hasattr(type(value), "__torch_function__")


def refuse_numbers(name: str, **arguments: Any) -> None:
    """Raise torch's error for a number in the place of a tensor; the arguments are those of a function, from the first on."""
    for position, (key, value) in enumerate(arguments.items(), 1):
        if value.__class__ in NUMBERS:
            raise TypeError(
                f"{name}(): argument '{key}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def not_a_method(op: Op, value: Any) -> NoReturn:
    """Raise for `Tensor.__radd__(5, x)`: an operator called with something else in the place of the tensor."""
    raise TypeError(
        f"descriptor '{op.name}' for 'torch._C.TensorBase' objects doesn't apply to a '{type(value).__name__}' object"
    )


def unknown_operand(op: Op, operands: tuple) -> Any:
    """The result of an operator for an operand that is neither a tensor nor a number."""
    if answers(operands[1]):
        from ._overrides import call_first_override

        return call_first_override(op, operands)
    return NotImplemented


# Ops that also take a number as their first operand.
NUMBER_FIRST = frozenset(
    ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "div.Tensor_mode", "floor_divide", "remainder.Tensor",
     "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor",
     "bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor")
)  # fmt: skip

# Ops that also take numbers as both operands.
NUMBERS_ALONE = frozenset(
    ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "div.Tensor_mode", "floor_divide")
)

# The names of torch's kernels in its error for a dtype that they do not support, where it is not "<name>_cpu".
KERNEL_NAMES = {
    "floor_divide": "div_floor_cpu",
    "lgamma": "lgamma_vml_cpu",
    "erfinv": "erfinv_vml_cpu",
    "erf": "erf_vml_cpu",
    "erfc": "erfc_vml_cpu",
    "i0": "i0_vml_cpu",
    "digamma": "digamma",
}


def _boxed(value: Any, like: Any) -> Any:
    """A Python number as a 0-dim tensor that does not change what `like` is promoted to."""
    kinds = ((like.dtype, like._array.ndim == 0), (_dtype.number_dtype(value), 2))
    return wrap(np.asarray(value).astype(_dtype.result_dtype(kinds)._np))  # -1 is 255 as uint8


def result_of(op: Op, arguments: tuple) -> Any:
    """The dtype that an op's operands are promoted to. Raises if it cannot be written to the tensor of an in-place op."""
    kinds = [
        (x.dtype, x._array.ndim == 0) if isinstance(x, _dispatch.Tensor) else (_dtype.number_dtype(x), 2)
        for x in arguments
        if isinstance(x, _dispatch.Tensor) or (op.numbers and x.__class__ in NUMBERS)
    ]
    result = _dtype.result_dtype(kinds)
    if op.inplace_of is not None and not _dtype.can_cast(result, arguments[0].dtype):
        raise RuntimeError(
            f"result type {result._abbr} can't be cast to the desired output type {arguments[0].dtype._abbr}"
        ) from None
    return result


def refuse_dtype(op: Op, arguments: tuple) -> None:
    """Raise torch's error for a dtype that an op does not support."""
    result = result_of(op, arguments)
    base = (op.inplace_of or op).name
    kernel = KERNEL_NAMES.get(base, base + "_cpu")
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{result._abbr}'") from None


def not_implemented(kernel: str, array: np.ndarray) -> NotImplementedError:
    """torch's error for a kernel that does not take this array's dtype."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{_dtype.BY_NUM[array.dtype.num]._abbr}'")


def _write_again(op: Op, error: Exception, arguments: tuple) -> Any:
    """Retry a write to a read-only array. An expanded tensor is refused; a part of one whose elements are all distinct can be written."""
    written = next((t for t in _dispatch._tensors_in(arguments) if not t._array.flags.writeable), None)
    if written is None:
        raise error
    array = written._array
    if any(step == 0 and n > 1 for step, n in zip(array.strides, array.shape)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        ) from None
    array = array.view()
    try:
        array.setflags(write=True)
    except ValueError:
        raise error from None
    written._array = array
    return op.run(*arguments)


def no_derivative(op: Op) -> None:
    raise RuntimeError(f"derivative for {op.qualified_name} is not implemented")


def missing_dim(op: Op) -> None:
    """Refuse a call without `dim`."""
    raise TypeError(f"{op.name}() missing 1 required positional arguments: 'dim'")


def no_overload(name: str, *arguments: Any) -> TypeError:
    """torch's error for arguments that fit none of the signatures of a function."""
    given = ", ".join(type(value).__name__ for value in arguments)
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({given}), but expected one of its signatures"
    )


def bad_argument(op: Op, arguments: Any) -> None:
    """Raise torch's TypeError for the first argument that is not what the schema says; return if all are fine."""
    numbers = op.numbers and sum(a.kind == "Tensor" for a in op.schema.arguments) == 2
    for position, (argument, value) in enumerate(zip(op.schema.arguments, arguments), 1):
        name = "input" if argument.name == "self" else argument.name
        where = f"{op.name}(): argument '{name}' (position {position}) must be"
        if argument.kind == "Tensor":
            if not isinstance(value, _dispatch.Tensor) and not (
                numbers and position > 1 and value.__class__ in NUMBERS
            ):
                raise TypeError(f"{where} Tensor, not {type(value).__name__}")
        elif argument.kind == "Tensor?":
            if value is not None and not isinstance(value, _dispatch.Tensor):
                raise TypeError(f"{where} Tensor, not {type(value).__name__}")
        elif argument.type.startswith("Scalar") and not argument.type.startswith("ScalarType"):
            if (
                value.__class__ not in NUMBERS
                and not isinstance(value, _dispatch.Tensor)
                and value is not None
            ):
                raise TypeError(f"{where} Number, not {type(value).__name__}")
        elif argument.type in ("int", "SymInt"):
            if not hasattr(value, "__index__"):
                raise TypeError(f"{where} int, not {type(value).__name__}")
        elif argument.kind in ("Tensor[]", "Tensor?[]"):
            if not isinstance(value, (tuple, list)):
                raise TypeError(f"{where} tuple of Tensors, not {type(value).__name__}")
            for number_, item in enumerate(value):
                if not isinstance(item, _dispatch.Tensor) and not (
                    item is None and argument.kind == "Tensor?[]"
                ):
                    raise TypeError(
                        f"expected Tensor as element {number_} in argument {position - 1}, but got {type(item).__name__}"
                    )


def broadcast_text(shapes: Any) -> str | None:
    """torch's error message for shapes that do not broadcast; None if they do."""
    longest = max(map(len, shapes))
    result = [1] * longest
    for shape in shapes:
        for d in range(1, len(shape) + 1):
            n, m = shape[-d], result[-d]
            if n != m and n != 1 and m != 1:
                return f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {longest - d}"
            if m == 1:
                result[-d] = n
    return None


_dispatch.recover, _dispatch.unknown_operand = recover, unknown_operand
_dispatch.missing_dim, _dispatch.no_derivative = missing_dim, no_derivative
_dispatch.bad_argument, _dispatch.not_a_method = bad_argument, not_a_method
