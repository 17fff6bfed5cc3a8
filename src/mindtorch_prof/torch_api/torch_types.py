"""torch's value types: the names that a trace holds in; dtype, layout and device objects out.

The engine has no tensors and so no such types of its own. A package that has them registers them; until then small objects with
torch's text take their place, so that event trees of trace files can be read anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..inputs import ELEMENT_TYPES

TorchValue = Any  # a dtype, layout or device, of whichever package has registered its types


@dataclass(frozen=True)
class TypeName:
    """Stands for a dtype, layout or device where no package has registered its own."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TorchTypes:
    """How a package names its types: torch's name in, its object out."""

    dtype: Callable[[str], TorchValue]  # "float32"; None if there is no such type
    layout: Callable[[str], TorchValue]  # "strided", "sparse_coo"
    device: Callable[[str], TorchValue]  # "cpu", "cuda:1"


_types = TorchTypes(
    dtype=lambda name: TypeName(f"torch.{name}"),
    layout=lambda name: TypeName(f"torch.{name}"),
    device=lambda name: TypeName(f"device(type='{name}')"),
)


def register(types: TorchTypes) -> None:
    """Give the types of a package from now on."""
    global _types
    _types = types
    for lookup in (dtype, layout, device):
        lookup.cache_clear()


@cache
def dtype(element_type: str) -> TorchValue:
    """The dtype of an element type as traces name it ("float", "c10::Half"); None where a trace names none."""
    element = ELEMENT_TYPES.get(element_type)
    return None if element is None else _types.dtype(element.dtype)


@cache
def layout(*, sparse: bool) -> TorchValue:
    """The layout of a tensor."""
    return _types.layout("sparse_coo" if sparse else "strided")


@cache
def device(text: str) -> TorchValue:
    """A device by its text."""
    return _types.device(text)
