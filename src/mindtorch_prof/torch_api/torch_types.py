"""torch's value types: the names that a trace holds in; dtype, layout and device objects out.

The engine has no tensors and so no such types of its own. A package that has them registers them with `use`; until then small
stand-ins with torch's text are given, so that event trees of trace files can be read anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..inputs import ELEMENT_TYPES


@dataclass(frozen=True)
class Name:
    """Stands for a dtype, layout or device where no package has registered its own."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TorchTypes:
    """How a package names its types: torch's name in, its object out."""

    dtype: Callable[[str], Any]  # "float32"; None if there is no such type
    layout: Callable[[str], Any]  # "strided", "sparse_coo"
    device: Callable[[str], Any]  # "cpu", "cuda:1"


_types = TorchTypes(
    dtype=lambda name: Name(f"torch.{name}"),
    layout=lambda name: Name(f"torch.{name}"),
    device=lambda name: Name(f"device(type='{name}')"),
)


def use(types: TorchTypes) -> None:
    """Give the types of this package from now on."""
    global _types
    _types = types
    for lookup in (dtype, layout, device):
        lookup.cache_clear()


@cache
def dtype(element_type: str) -> Any:
    """The dtype of an element type as a trace names it ("float", "c10::Half"); None where the trace does not say it."""
    known = ELEMENT_TYPES.get(element_type)
    return None if known is None else _types.dtype(known.dtype)


@cache
def layout(*, sparse: bool) -> Any:
    """The layout of a tensor."""
    return _types.layout("sparse_coo" if sparse else "strided")


@cache
def device(text: str) -> Any:
    """A device by its text."""
    return _types.device(text)
