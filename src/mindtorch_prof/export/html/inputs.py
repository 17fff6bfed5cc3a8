"""Inputs of events as text: a Trace in, one line per argument out."""

from __future__ import annotations

from ...inputs import Inputs, Sizes
from ...trace import Trace


def input_texts(trace: Trace) -> list[list[str]]:
    """For each entry of the trace's table of inputs, one text per argument: a tensor's type and shape, or a value."""
    return [_lines(inputs) for inputs in trace.input_table]


def _lines(inputs: Inputs) -> list[str]:
    return [_line(*parts) for parts in zip(inputs.types, inputs.dims, inputs.concrete)]


def _line(type: str, shape: Sizes, value: str) -> str:
    if value:
        return value
    if type in {"", "Scalar", "ScalarList"} and not shape:
        return type or "None"
    return f"{type} {shape}".strip()
