"""torch.fx.experimental.symbolic_shapes: questions about symbolic sizes. Sizes are plain numbers here, so each has a plain answer."""

from __future__ import annotations

from typing import Any

__all__ = [
    "definitely_false",
    "definitely_true",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
    "statically_known_false",
    "statically_known_true",
    "sym_eq",
]

guard_bool = bool
guard_int = int
guard_float = float
guard_or_true = guard_or_false = guard_size_oblivious = definitely_true = statically_known_true = bool


def definitely_false(value: Any) -> bool:
    """Whether a condition is false."""
    return not value


statically_known_false = definitely_false


def guard_scalar(value: Any) -> Any:
    """The number itself."""
    return value


def is_symbolic(value: Any) -> bool:
    """Whether a number is symbolic: never."""
    return False


def is_concrete_int(value: Any) -> bool:
    """Whether a size is known: always."""
    return True


is_concrete_bool = is_concrete_float = is_concrete_int


def free_symbols(value: Any) -> set[Any]:
    """The symbols in a size: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(value: Any) -> bool:
    """Whether there are symbols in a size: never."""
    return False


has_free_unbacked_symbols = has_free_symbols


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two sizes, or tuples of sizes, are equal."""
    return bool(x == y)
