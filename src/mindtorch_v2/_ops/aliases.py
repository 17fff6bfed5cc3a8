"""Aliases of ops, such as `torch.multiply`. They call the op itself; in a profile the op is nested in an event of the alias's name."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .._dispatch import FUNCTIONS, METHODS, composite
from . import comparison, pointwise, powers, unary  # noqa: F401  (declare what is named here)

# Name, name of the in-place form, name of the op that is called, its arguments after self.
_NAMES = (
    ("aten::multiply", "aten::multiply_", "mul", "Tensor other"),
    ("aten::divide", "aten::divide_", "div", "Tensor other"),
    ("aten::true_divide", "aten::true_divide_", "div", "Tensor other"),
    ("aten::subtract", "aten::subtract_", "sub", "Tensor other, *, Scalar alpha=1"),
    ("aten::clip", "aten::clip_", "clamp", "Scalar? min=None, Scalar? max=None"),
    ("aten::absolute", "aten::absolute_", "abs", ""),
    ("aten::negative", "aten::negative_", "neg", ""),
    ("aten::greater", "aten::greater_", "gt", "Tensor other"),
    ("aten::greater_equal", "aten::greater_equal_", "ge", "Tensor other"),
    ("aten::less", "aten::less_", "lt", "Tensor other"),
    ("aten::less_equal", "aten::less_equal_", "le", "Tensor other"),
    ("aten::not_equal", "aten::not_equal_", "ne", "Tensor other"),
    ("aten::arctan2", "aten::arctan2_", "atan2", "Tensor other"),
    ("aten::fix", "aten::fix_", "trunc", ""),
    ("aten::arccos", "aten::arccos_", "acos", ""),
    ("aten::arcsin", "aten::arcsin_", "asin", ""),
    ("aten::arctan", "aten::arctan_", "atan", ""),
    ("aten::arccosh", "aten::arccosh_", "acosh", ""),
    ("aten::arcsinh", "aten::arcsinh_", "asinh", ""),
    ("aten::arctanh", "aten::arctanh_", "atanh", ""),
)


def _declare(aten_name: str, target: Any, arguments: str) -> Any:
    """A function that calls `target`, under another name."""
    name = aten_name.removeprefix("aten::")
    written = "(a!)" if name.endswith("_") else ""
    after = f", {arguments}) -> Tensor{written}" if arguments else f") -> Tensor{written}"

    def body(*given: Any) -> Any:
        if "alpha" in arguments:
            return target(*given[:-1], alpha=given[-1])
        return target(*given)

    forms = [composite(f"{aten_name}.named(Tensor{written} self{after}", expose="no")(body)]
    if "Tensor other" in arguments:
        number = after.replace("Tensor other", "Scalar other")
        forms.append(composite(f"{aten_name}.number(Tensor{written} self{number}", expose="no")(body))

    def front(input: Any, *args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs or "rounding_mode" in kwargs:
            return target(input, *args, **kwargs)
        second = args[0] if args else kwargs.get("other")
        return forms[len(forms) > 1 and second.__class__ in _dispatch.NUMBERS](input, *args, **kwargs)

    front.__name__ = front.__qualname__ = name
    front.__doc__ = f"The same as {target.__name__}."
    return front


for _plain, _inplace, _target, _arguments in _NAMES:
    for _aten_name, _op_name in ((_plain, _target), (_inplace, _target + "_")):
        _name = _aten_name.removeprefix("aten::")
        for _table in (FUNCTIONS, METHODS):
            if _name in _table and _op_name in _table:
                _table[_name] = _declare(_aten_name, _table[_op_name], _arguments)
