"""`out=` forms of ops as a recording shows them: an op, its arguments and its outputs in; one op of the same name, with the outputs
among its inputs, out. Used only while recording.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dispatch
from ._dispatch import METHODS, NUMBERS, OPS, Op, record

_made: dict[tuple[int, int], Op] = {}


def call(op: Op, outs: Any, arguments: tuple) -> None:
    """Run `op` and write its results to `outs`."""
    form = _made.get((op.uid, len(outs)))
    if form is None:
        form = _made[op.uid, len(outs)] = _form(op, len(outs))
    plain = [
        _dispatch.wrap(np.array(value)) if argument.kind == "Tensor" and value.__class__ in NUMBERS else value
        for argument, value in zip(op.schema.arguments, arguments)
    ]
    record(form, *plain, *outs)


def _form(op: Op, count: int) -> Op:
    start, end = op.text.index("("), op.text.rindex(") ->")
    listed = op.text[start + 1 : end]
    outs = ", ".join(f"Tensor result{number}" for number in range(count))
    middle = ", " if "*" in listed else ", *, "
    text = f"{op.namespace}::{op.name}.{op.overload + '_' if op.overload else ''}out({listed}{middle}{outs}) -> ()"

    through = _THROUGH.get(op.full_name)

    def body(*arguments: Any) -> None:
        inputs, targets = arguments[: len(arguments) - count], arguments[len(arguments) - count :]
        if through is not None and through(targets[0], *inputs):
            return
        result = _result(op, inputs)
        for target, value in zip(targets, result if isinstance(result, tuple) else (result,)):
            _put(target, value._array)

    flops = None if op.flops is None else (lambda *arguments: op.flops(*arguments[:-count]))
    return _hidden(
        text, body, "composite" if op.body == "composite" and through is _product else "tensors", flops
    )


def _hidden(text: str, body: Any, kind: str, flops: Any) -> Op:
    listed = text.partition("::")[2].partition("(")[0] not in OPS
    out_op = Op(text, body, kind, {"nondifferentiable": True, "flops": flops, "listed": listed})
    out_op.entry.__qualname__ = out_op.name
    return out_op


# ------------------------------------------------------------------------------------ ops whose out= form calls another op


def _softened(name: str) -> Any:
    def write(out: Any, self: Any, dim: int, dtype: Any) -> bool:
        if dtype is not None or out.shape != self.shape:
            return False
        call(OPS[name], (out,), (self, dim, False))
        return True

    return write


def _averaged(out: Any, self: Any, dim: Any, keepdim: bool, dtype: Any) -> bool:
    if dtype is not None or out.dtype is not self.dtype or not out.numel():
        return False
    call(OPS["sum.dim_IntList"], (out,), (self, dim, keepdim, None))
    METHODS["div_"](out, self.numel() // out.numel())
    return True


def _product(out: Any, self: Any, other: Any) -> bool:
    if self.dim() != 2 or other.dim() != 2 or tuple(out.shape) != (self.shape[0], other.shape[1]):
        return False
    call(OPS["mm"], (out,), (self, other))
    return True


_THROUGH = {
    "softmax.int": _softened("_softmax"),
    "log_softmax.int": _softened("_log_softmax"),
    "mean.dim": _averaged,
    "matmul": _product,
}


def _result(op: Op, arguments: tuple) -> Any:
    """The result of an op, without recording the op."""
    if op.body == "composite":
        return op.kernel(*arguments)
    if op.inner is None or op.promote or op.body == "tensors":
        return op.run(*arguments)
    result = op.kernel(
        *[
            [getattr(item, "_array", item) for item in value]
            if value.__class__ is list
            else getattr(value, "_array", value)
            for value in arguments
        ]
    )
    if isinstance(result, tuple):
        return tuple([_dispatch.wrap(np.asarray(part)) for part in result])
    return _dispatch.wrap(np.asarray(result))


def _put(out: Any, array: np.ndarray) -> None:
    """`give_out`, where newly allocated memory counts as the op's own."""
    if out._array.shape != array.shape and not out._array.size:
        from ._ops.copies import _resize_to

        _resize_to(out, array.shape)
    _dispatch.give_out(out, array)
