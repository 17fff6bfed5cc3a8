"""Compares two traces: event for event, whatever the order of their tables; or column for column."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mindtorch_prof.inputs import Inputs
from mindtorch_prof.trace import Trace


def assert_same(one: Any, other: Any, where: str) -> None:
    """Compare field by field, to the type of each column."""
    if dataclasses.is_dataclass(one):
        assert type(one) is type(other), where
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        np.testing.assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, Inputs):
        for name in (
            "arguments",
            "concrete",
            "types",
            "strides",
            "dims",
            "values",
            "tensor_slots",
            "keywords",
        ):
            assert repr(getattr(one, name)) == repr(getattr(other, name)), f"{where}.{name}"
    elif isinstance(one, Sequence) and not isinstance(one, str):
        assert len(one) == len(other), where
        for place, (left, right) in enumerate(zip(one, other)):
            assert_same(left, right, f"{where}[{place}]")
    else:
        assert one == other, where


def events_of(trace: Trace) -> list[tuple[Any, ...]]:
    """All columns of each event, with names, inputs and stacks instead of their numbers."""
    table = [(each.arguments, each.tensor_slots, dict(each.keywords or {})) for each in trace.input_table]
    inputs = [None if n < 0 else table[n] for n in trace.inputs.tolist()]
    stacks = [None if n < 0 else trace.stacks[n] for n in trace.stack.tolist()]
    names = [(trace.names[n], trace.overloads[n]) for n in trace.name.tolist()]
    synthetic = [0] * len(trace) if trace.synthetic is None else trace.synthetic.tolist()
    plain = ("start_ns", "end_ns", "thread", "kind", "scope", "sequence", "forward_thread", "flops")
    columns = [getattr(trace, name).tolist() for name in plain]
    ids = trace.tensor_ids
    first = ids.first.tolist() if len(ids.first) else [-1] * len(trace)
    return list(zip(names, inputs, stacks, synthetic, first, *columns))


def parts_of(trace: Trace) -> dict[str, Any]:
    """What a trace holds beside its events."""
    memory, frames, ids = trace.memory, trace.frames, trace.tensor_ids
    calls = [frames.names[n] for n in frames.name.tolist()]
    lines = None if frames.line is None else frames.line.tolist()
    return {
        "memory": [
            getattr(memory, name).tolist() for name in ("time_ns", "nbytes", "address", "thread", "total")
        ],
        "of_modules": memory.of_modules,
        "calls": list(zip(calls, frames.start_ns.tolist(), frames.end_ns.tolist(), frames.parent.tolist())),
        "modules": frames.module.tolist(),
        "lines": lines,
        "tensors": ids.tensor.tolist(),
        "storages": sorted(ids.storages.tolist()),
        "links": ids.links.tolist(),
        "owners": ids.owners,
        "owner_of_frame": ids.frame.tolist(),
    }
