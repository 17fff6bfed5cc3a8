"""Inputs of ops as a trace file has them, for tests of models: tensors, numbers and lists in; Inputs out."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from mindtorch_prof.analysis.roofline.models import work_of
from mindtorch_prof.analysis.roofline.work import Work
from mindtorch_prof.inputs import Inputs


class T(NamedTuple):
    """A tensor: its shape, its element type as files name it, and its strides (contiguous ones if None)."""

    shape: tuple[int, ...]
    type: str = "float"
    strides: tuple[int, ...] | None = None

    def steps(self) -> list[int]:
        if self.strides is not None:
            return list(self.strides)
        steps, size = [], 1
        for extent in reversed(self.shape):
            steps.append(size)
            size *= extent
        return steps[::-1]


Argument = T | list[int] | list[bool] | int | float | bool | None


def file_inputs(*arguments: Argument) -> Inputs:
    """Inputs as the loader makes them."""
    columns = [_described(argument) for argument in arguments]
    return Inputs.from_json(orjson.dumps([list(column) for column in zip(*columns)] or [[], [], [], []]))


def _described(argument: Argument) -> tuple[str, str, list[int], list[int]]:
    """Concrete input, type, strides, dims."""
    if isinstance(argument, T):
        return "", argument.type, argument.steps(), list(argument.shape)
    if argument is None:
        return "", "", [], []
    if isinstance(argument, list):
        return "[" + ", ".join(map(str, argument)) + "]", "ScalarList", [], []
    return str(argument), "Scalar", [], []


def work(name: str, *arguments: Argument) -> Work:
    """The work of a call."""
    return work_of(name, file_inputs(*arguments))
