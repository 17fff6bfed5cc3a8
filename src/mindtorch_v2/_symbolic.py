"""torch's arithmetic on symbolic sizes. Here sizes are plain numbers: numbers in, numbers out."""

from __future__ import annotations

import math
from typing import Any, NoReturn


class _Symbol:
    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.{cls.__name__}: this library compiles nothing, so every size is a plain number"
        )


class SymInt(_Symbol):
    """A size that a compiler does not know yet, for isinstance checks: sizes are plain numbers here."""


class SymFloat(_Symbol):
    """The same for a float."""


class SymBool(_Symbol):
    """The same for a bool."""


def sym_int(a: Any) -> int:
    """Towards zero."""
    return math.floor(a) if a >= 0 else math.ceil(a)


def sym_float(a: Any) -> float:
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float if either is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float if either is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: Any) -> bool:
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`, which must be of one type."""
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sqrt(a: Any) -> float:
    return math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """The sum of the numbers, or of one sequence of them."""
    return sum(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else sum(args)
