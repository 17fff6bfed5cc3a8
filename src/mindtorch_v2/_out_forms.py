"""`out=` forms of ops: an op and the number of its outputs in; an op of the same name, with the outputs among its inputs, out."""

from __future__ import annotations

from typing import Any

from . import _dispatch
from ._dispatch import OPS, Op

# Ops that write to an output of the dtype of their result only; others cast.
_WITHOUT_CAST = frozenset(
    "gather aminmax argmax argmin mm bmm matmul linear index_add index_reduce scatter_reduce isin tril triu diag complex polar "
    "avg_pool2d avg_pool3d gelu softplus hardshrink softshrink log_sigmoid slice_scatter "
    "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy squeeze_copy t_copy "
    "transpose_copy unfold_copy unsqueeze_copy view_copy".split()
)


def out_form(op: Op, count: int) -> Op:
    """The form of an op that writes its results to `count` tensors, which follow its arguments."""
    start, end = op.text.index("("), op.text.rindex(") ->")
    listed = op.text[start + 1 : end]
    outs = ", ".join(f"Tensor? result{number}" for number in range(count))
    separator = ", " if "*" in listed else ", *, "
    name = f"{op.name}.{op.overload + '_' if op.overload else ''}out"
    flops = None if op.flops is None else lambda *arguments: op.flops(*arguments[:-count])
    through = _THROUGH.get(op.full_name)
    casts = op.name not in _WITHOUT_CAST

    def body(*arguments: Any) -> None:
        inputs, targets = arguments[:-count], arguments[-count:]
        if through is not None and through(targets[0], *inputs):
            return
        result = op.run(*inputs)
        if (
            op.promote == "same"
            and len(inputs) == 1
            and targets[0].dtype not in (inputs[0].dtype, result.dtype)
        ):
            raise RuntimeError(f"Found dtype {targets[0].dtype._abbr} but expected {inputs[0].dtype._abbr}")
        for target, value in zip(targets, result if isinstance(result, tuple) else (result,)):
            if not casts and target.dtype is not value.dtype:
                wanted, given = value.dtype._abbr.lower(), target.dtype._abbr.lower()
                raise RuntimeError(f"Expected out tensor to have dtype {wanted}, but got {given} instead")
            _write(target, value)

    form = Op(
        f"{op.namespace}::{name}({listed}{separator}{outs}) -> ()",
        body,
        "tensors",
        {"nondifferentiable": True, "promote": op.promote, "flops": flops, "listed": name not in OPS},
    )
    form.entry.__qualname__ = op.name
    return form


def _write(target: Any, value: Any) -> None:
    if target._array_missing:
        target._array_description = value._array_description
        return
    array = value._array
    if not target._array.size and target._array.shape != array.shape:
        OPS["resize_"].run(target, array.shape, None)
    _dispatch.give_out(target, array)


# ------------------------------------------------------------------------------------ ops whose out= form calls another op


def _softmax_through(name: str) -> Any:
    def write(out: Any, self: Any, dim: int, dtype: Any) -> bool:
        if dtype is not None or out.shape != self.shape:
            return False
        _dispatch.call_out(OPS[name], out, (self, dim, False))
        return True

    return write


def _product(out: Any, self: Any, other: Any) -> bool:
    if self.dim() != 2 or other.dim() != 2 or tuple(out.shape) != (self.shape[0], other.shape[1]):
        return False
    _dispatch.call_out(OPS["mm"], out, (self, other))
    return True


def _conjugate(out: Any, self: Any) -> bool:
    _dispatch.give_out(out, OPS["_conj_physical"].kernel(self._array))
    return True


_THROUGH = {
    "conj_physical": _conjugate,
    "softmax.int": _softmax_through("_softmax"),
    "log_softmax.int": _softmax_through("_log_softmax"),
    "matmul": _product,
}
