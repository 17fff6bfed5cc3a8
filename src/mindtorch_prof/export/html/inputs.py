"""Inputs of events as text for people: a Trace in, one line an argument out."""

from __future__ import annotations

from typing import Any

from ... import inputs as described
from ...trace import Trace


def input_texts(trace: Trace) -> list[list[str]]:
    """For each entry of the trace's table of inputs, its arguments: a tensor's type and shape, or a value."""
    return [_lines(description) for _, description in trace.input_table]


def _lines(description: tuple) -> list[str]:
    shapes = described.structured_shapes(description)
    types = described.types(description)
    values = described.concrete(description)
    return [_line(*parts) for parts in zip(types, shapes, values)]


def _line(type: str, shape: Any, value: Any) -> str:
    if value not in {"", None}:
        return str(value)
    if type in {"", "Scalar", "ScalarList"} and not shape:
        return type or "None"
    return f"{type} {shape}".strip()
