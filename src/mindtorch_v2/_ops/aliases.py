"""Other names of ops: `torch.multiply` and the like. The op itself is called; while something records it stands inside one of that name."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .._dispatch import FUNCTIONS, METHODS, composite
from . import comparison, pointwise, powers, unary  # noqa: F401  (declare what is named here)

# new name: (name of the op, its arguments after self)
_NAMES: dict[str, tuple[str, str]] = {
    "multiply": ("mul", "Tensor other"),
    "divide": ("div", "Tensor other"),
    "true_divide": ("div", "Tensor other"),
    "subtract": ("sub", "Tensor other, *, Scalar alpha=1"),
    "clip": ("clamp", "Scalar? min=None, Scalar? max=None"),
    "absolute": ("abs", ""),
    "negative": ("neg", ""),
    "greater": ("gt", "Tensor other"),
    "greater_equal": ("ge", "Tensor other"),
    "less": ("lt", "Tensor other"),
    "less_equal": ("le", "Tensor other"),
    "not_equal": ("ne", "Tensor other"),
    "arctan2": ("atan2", "Tensor other"),
    "fix": ("trunc", ""),
    **{f"arc{name}": (f"a{name}", "") for name in ("cos", "sin", "tan", "cosh", "sinh", "tanh")},
}


def _declare(name: str, target: Any, arguments: str) -> Any:
    """A function that is `target`, under another name."""
    written = name.endswith("_")
    head = f"aten::{name}", "(Tensor(a!) self" if written else "(Tensor self"
    result = " -> Tensor(a!)" if written else " -> Tensor"
    after = f", {arguments})" if arguments else ")"

    def body(*given: Any) -> Any:
        if "alpha" in arguments:
            return target(*given[:-1], alpha=given[-1])
        return target(*given)

    forms = [composite(head[0] + ".named" + head[1] + after + result, expose="no")(body)]
    if "Tensor other" in arguments:
        number = after.replace("Tensor other", "Scalar other")
        forms.append(composite(head[0] + ".number" + head[1] + number + result, expose="no")(body))

    def front(input: Any, *args: Any, **kwargs: Any) -> Any:
        if _dispatch.recorder is None or "out" in kwargs or "rounding_mode" in kwargs:
            return target(input, *args, **kwargs)
        second = args[0] if args else kwargs.get("other")
        return forms[len(forms) > 1 and second.__class__ in _dispatch.NUMBERS](input, *args, **kwargs)

    front.__name__ = front.__qualname__ = name
    front.__doc__ = f"The same as {target.__name__}."
    return front


for _name, (_target, _arguments) in _NAMES.items():
    for _end in ("", "_"):
        for _table in (FUNCTIONS, METHODS):
            if _name + _end in _table and _target + _end in _table:
                _table[_name + _end] = _declare(_name + _end, _table[_target + _end], _arguments)
