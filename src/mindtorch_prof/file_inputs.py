"""Inputs of events as a trace file words them: JSON in; shapes, strides, types and values out, when they are asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import orjson


class FileInputs:
    """What went into an event. One entry an input in each list; a list of tensors has a list of lists, anything else []."""

    def __init__(self, text: bytes) -> None:
        self.text = text  # JSON of [concrete inputs, types, strides, dims], null for what the file lacks

    @cached_property
    def _lists(self) -> tuple[list[Any], list[str], list[Any], list[Any]]:
        found = [value if isinstance(value, list) else [] for value in orjson.loads(self.text)]
        concrete, types, strides, dims = found
        count = max(map(len, found))
        empty: list[Any] = [[]] * count
        return (
            [v if isinstance(v, str) else "" for v in concrete] + [""] * (count - len(concrete)),
            [v if isinstance(v, str) else "" for v in types] + [""] * (count - len(types)),
            [v if isinstance(v, list) else [] for v in strides] + empty[len(strides) :],
            [v if isinstance(v, list) else [] for v in dims] + empty[len(dims) :],
        )

    @property
    def concrete(self) -> list[str]:
        """Values of what is no tensor, as text."""
        return self._lists[0]

    @property
    def types(self) -> list[str]:
        return self._lists[1]

    @property
    def strides(self) -> list[Any]:
        return self._lists[2]

    @property
    def dims(self) -> list[Any]:
        return self._lists[3]

    @cached_property
    def tensors(self) -> list[bool]:
        """Which inputs are tensors; files of 2021 name the types of tensors only."""
        return [kind not in _NO_TENSORS for kind in self.types]

    @cached_property
    def shapes(self) -> list[list[int]]:
        """`input_shapes`: one list a tensor, [] for everything else."""
        return [[] if any(isinstance(n, list) for n in sizes) else sizes for sizes in self.dims]

    @cached_property
    def values(self) -> list[Any]:
        """Numbers and lists of numbers as such; None for everything else."""
        return [
            _value(text) if kind in ("Scalar", "ScalarList", "") else None
            for text, kind in zip(self.concrete, self.types)
        ]

    def document(self) -> dict[str, list[Any]]:
        """The lists under their names in a trace file."""
        return {
            "Concrete Inputs": self.concrete,
            "Input type": self.types,
            "Input Strides": self.strides,
            "Input Dims": self.dims,
        }


_NO_TENSORS = frozenset({"", "Scalar", "ScalarList", "TensorList", "GenericList"})
_WORDS: dict[str, Any] = {"True": True, "False": False}


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        items = [_value(part.strip()) for part in text[1:-1].split(",") if part.strip()]
        return None if any(item is None for item in items) else items
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
