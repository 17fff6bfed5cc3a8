"""Deprecated signatures with factors before tensors: `x.add_(2, y)`, `torch.addmm(2, x, 3, a, b)`. Such a call in, the call of
today's signature out, with torch's warning.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import _dispatch, _settings

# By op: the factor that may stand between its first tensor and the others, or "beta, alpha", where beta stands before the first
# tensor (in a method: behind it) and alpha behind both.
FACTORS = {
    "add": "alpha",
    "sub": "alpha",
    "addcmul": "value",
    "addcdiv": "value",
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm", "sspaddmm"), "beta, alpha"),
}
_WITH_OUT_DTYPE = ("addmm", "baddbmm")


class _State:
    """Whether the warning was shown: once per process, as in torch, unless `set_warn_always` is on."""

    warned = False


def takes_factors(op: Any) -> bool:
    """Whether an op has such signatures."""
    return op.namespace == "aten" and op.name.removesuffix("_") in FACTORS and op.overload in ("", "Tensor")


def call(function: Any, name: str, tensors: tuple[str, ...], given: tuple[Any, ...], **options: Any) -> Any:
    """Call `function` of today's signature: `tensors` names its positional arguments, `given` are those of a call with more.

    `options` are the keyword arguments of the call.
    """
    positional, factors, is_method = _sorted(name, tensors, given)
    _warn(name, tensors, factors, is_method)
    return function(*positional, **{**options, **factors})


def _sorted(
    name: str, tensors: tuple[str, ...], given: tuple[Any, ...]
) -> tuple[list[Any], dict[str, Any], bool]:
    """The tensors of a call, its factors by name, and whether it is that of a method."""
    names = FACTORS[name.removesuffix("_")].split(", ")
    rest = list(given)
    is_method = name.endswith("_")
    factors: dict[str, Any] = {}
    if len(names) == 1:
        if len(given) == len(tensors) + 1 and _is_number(given[1]):
            factors[names[0]] = rest.pop(1)
    elif len(tensors) < len(given) <= len(tensors) + 2:
        is_method = not _is_number(given[0])
        place = 1 if is_method else 0
        if _is_number(rest[place]):
            factors["beta"] = rest.pop(place)
            if _is_number(rest[1]):
                factors["alpha"] = rest.pop(1)
    if len(rest) != len(tensors) or not all(isinstance(value, _dispatch.Tensor) for value in rest):
        raise TypeError(f"{name}() takes {len(tensors)} positional arguments but {len(given)} were given")
    return rest, factors, is_method


def _is_number(value: Any) -> bool:
    if isinstance(value, _dispatch.Tensor):
        return value.ndim == 0 and not value.requires_grad
    return value.__class__ in _dispatch.NUMBERS


def _warn(name: str, tensors: tuple[str, ...], factors: dict[str, Any], is_method: bool) -> None:
    if _State.warned and not _settings.is_warn_always_enabled():
        return
    _State.warned = True
    words = [f"Tensor {tensor}" for tensor in tensors[1:]]
    numbers = [f"Number {factor}" for factor in factors]
    defaults = ", ".join(f"Number {f} = 1" for f in FACTORS[name.removesuffix("_")].split(", "))
    if is_method:
        old, new = ", ".join(numbers + words), [f"{', '.join(words)}, *, {defaults}"]
    else:
        first, out = [f"Tensor {tensors[0]}"], "" if name == "sspaddmm" else ", *, Tensor out = None"
        ordered = [*numbers[:1], *first, *numbers[1:]] if "beta" in factors else first + numbers
        old = ", ".join(ordered + words) + out
        plain = ", ".join(first + words)
        new = [f"{plain}, *, {defaults}, Tensor out = None"]
        if name in _WITH_OUT_DTYPE:
            new.append(f"{plain}, torch.dtype out_dtype, *, {defaults}, Tensor out = None")
    instead = "".join(f"\n\t{name}({signature})" for signature in new)
    warnings.warn(
        f"This overload of {name} is deprecated:\n\t{name}({old})\nConsider using one of the following signatures instead:{instead}",
        UserWarning,
        stacklevel=_frames_of_the_library(),
    )


def _frames_of_the_library() -> int:
    """The stack level of the program's call, for a warning in the calling function."""
    level, frame = 1, sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
