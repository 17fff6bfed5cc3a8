"""Builds recordings that are not sealed yet, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_prof.inputs import Inputs
from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.raw import LIBRARY_KIND, SHOWN_KIND, KeyEntry, RawRecording
from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import OP

MAIN = 7000


class NamedFunctions:
    """Functions by number: 0 to 2 are not shown, the others have these names."""

    def __init__(self, *names: str) -> None:
        self._names = ("", "", "", *names)

    def names(self) -> tuple[tuple[str, ...], np.ndarray]:
        return self._names, np.full(len(self._names), -1, np.int64)

    def are_c_functions(self) -> np.ndarray:
        return np.zeros(len(self._names), bool)

    def kinds(self) -> np.ndarray:
        return np.array([LIBRARY_KIND] * 3 + [SHOWN_KIND] * (len(self._names) - 3), np.int8)

    def lines_of(self, number: int) -> None:
        return None


def raw_recording(
    rows: dict[int, list[tuple[int, ...]]],
    *,
    columns: tuple[str, ...] = ("key", "start", "end", "sequence"),
    names: tuple[str, ...] = ("aten::add", "aten::mul"),
    inputs: tuple[Inputs, ...] = (),
    logs: dict[tuple[str, int], list[int]] | None = None,
    **fields: Any,
) -> RawRecording:
    """A recording with these rows by thread; the key of an op is its place in `names`."""
    blocks = {("rows", thread): [np.array(each, np.int64).reshape(-1)] for thread, each in rows.items()}
    for key, integers in (logs or {}).items():
        blocks[key] = [np.array(integers, np.int64)]
    settings = fields.pop("settings", Settings(thread=MAIN))
    return RawRecording(
        columns=columns,
        logs=Logs(blocks.items(), {thread: thread + 1 for thread in rows}),
        main_thread=MAIN,
        n_ops=len(names),
        key_entry=lambda key: KeyEntry(names[key], "", OP, 0, 0, True),
        inputs=inputs,
        input_rules=fields.pop("input_rules", None),
        flops={},
        functions=fields.pop("functions", None),
        tensor_tables=fields.pop("tensor_tables", None),
        settings=settings,
        origin_ns=0,
        window_ns=(0, 1000),
        **fields,
    )
