"""The tables of a recording in parts: a Recorder and the logs that it handed over in, what is new in its tables, as JSON, out.

A row that was handed over refers to names, inputs and functions that were numbered before it was written: what is new is looked up after
the rows were taken, and goes into the same chunk.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import orjson

from mindtorch_prof.inputs import Inputs
from mindtorch_prof.native_file import packed, packed_inputs
from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.raw import RANGES, VARIANTS
from mindtorch_prof.sealing.seal import note_callers
from mindtorch_prof.spill_file import HISTORY, VERSION
from mindtorch_prof.synthetic_rows import SyntheticOp

from ... import _dispatch
from ..torch_view import synthetic_ops
from . import core
from .live_recording import (
    cost_of,
    health_of,
    key_entry,
    memory_of_modules,
    rows_recording,
    settings_of,
    thread_names,
)
from .recorder import Recorder

_CARRIED_ROWS = 4096  # the last rows of each thread, whose callers may end in the next part


class SpillTables:
    """What of a recorder's tables was described already."""

    def __init__(self, recorder: Recorder, period_s: float) -> None:
        self._recorder = recorder
        self._keys: set[int] = set()
        self._n_inputs = self._n_variants = self._n_callers = self._n_functions = 0
        self._n_owners = self._n_modules = self._n_links = 0
        self._addresses: dict[int, int] = {}
        self._threads: dict[int, tuple[int, str]] = {}
        self._facts: dict[str, bytes] = {}
        self._carried: dict[int, np.ndarray] = {}  # by thread
        self._first = {"version": VERSION, "history": HISTORY, "period_s": period_s}

    def header(self, logs: Logs, open_ranges: dict[int, np.ndarray], **facts: Any) -> dict[str, Any]:
        """The header of the chunk with these logs."""
        recorder = self._recorder
        header: dict[str, Any] = {
            "natives": list(logs.natives.items()),
            "open": [[thread, rows.tolist()] for thread, rows in open_ranges.items()],
        }
        self._settings = settings_of(recorder)
        children: list[Any] = []
        header["keys"] = self._new_keys(logs, open_ranges, children)
        if recorder.wanted.inputs:
            self._add_inputs(header, children)
        if recorder.functions is not None:
            header["functions"] = recorder.functions.described(self._n_functions)
            self._n_functions += len(header["functions"])
        if recorder.register is not None:
            self._add_tensors(header)
        if children:
            header["children"] = children
        threads = thread_names()
        header["threads"] = [[t, *known] for t, known in threads.items() if self._threads.get(t) != known]
        self._threads.update(threads)
        header["facts"] = self._new_facts({**self._known_facts(), **facts})
        return header

    # ------------------------------------------------------------------------------------------------ names

    def _new_keys(self, logs: Logs, open_ranges: dict[int, np.ndarray], children: list[Any]) -> list[Any]:
        width = len(self._recorder.wanted.columns)
        blocks = [block for (kind, _), block in logs if kind == "rows"]
        keys: set[int] = set()
        for block in (*blocks, *open_ranges.values()):
            # as a list, although NumPy would be faster: it would let other threads run, and get its turn again much later
            keys.update(block[::width].tolist())
        new = sorted(keys - self._keys)
        self._keys.update(new)
        for key in new:
            if key < RANGES:
                self._add_children(children, _dispatch.BY_UID[key], -1, None)
        return [[key, *key_entry(self._recorder, key)] for key in new]

    # ------------------------------------------------------------------------------------------------ inputs

    def _add_inputs(self, header: dict[str, Any], children: list[Any]) -> None:
        recorder, inputs = self._recorder, self._recorder.live_inputs
        inputs.add(recorder.descriptions)
        first, last = self._n_inputs, len(inputs.inputs)
        header["inputs"] = [packed_inputs(each) for each in inputs.inputs[first:last]]
        header["depends"] = inputs.depends_on_caller()[first:last]
        header["flops"] = [[n, recorder.flops[n]] for n in range(first, last) if n in recorder.flops]
        for number in range(first, last):
            self._add_children(children, inputs.shown[number][0], number, inputs.inputs[number])
        self._n_inputs = last
        if recorder.config.record_shapes:
            variants = inputs.variants()
            header["variants"] = [packed_inputs(each) for each in variants[self._n_variants :]]
            for number in range(self._n_variants, len(variants)):
                op = inputs.op_and_arguments(VARIANTS + number)[0]
                self._add_children(children, op, VARIANTS + number, variants[number])
            self._n_variants = len(variants)
            known = list(itertools.islice(inputs.known.items(), self._n_callers, None))
            header["callers"] = [[*key, shown] for key, shown in known]
            self._n_callers += len(known)

    def _add_children(self, children: list[Any], op: Any, number: int, inputs: Inputs | None) -> None:
        """Add the ops that torch shows inside an op with these inputs, if there are any."""
        if op is None or op.children_rule is None:
            return
        arguments = None if inputs is None else inputs.arguments
        try:
            inside = synthetic_ops(op, arguments, self._settings)
        except Exception:  # a rule must not stop the recording
            return
        children.append([op.qualified_name, op.overload, number, [_packed_op(each) for each in inside]])

    def parts_to_search(self, logs: Logs) -> list[Logs]:
        """The rows in which `find_callers` may find something, thread by thread."""
        inputs = self._recorder.live_inputs
        if not self._recorder.config.record_shapes or not any(inputs.depends_on_caller()):
            return []
        return [
            Logs([(key, blocks)], {key[1]: logs.natives.get(key[1], 0)})
            for key, blocks in logs.blocks.items()
            if key[0] == "rows"
        ]

    def find_callers(self, part: Logs) -> None:
        """Note which inputs are shown for calls by torch's own ops among the rows of a thread, and the last ones before them; for the next
        header."""
        width = len(self._recorder.wanted.columns)
        (thread,) = part.threads("rows")
        if thread in self._carried:
            part.blocks["rows", thread].insert(0, self._carried[thread])
        note_callers(rows_recording(self._recorder, part))
        last = part.joined("rows", thread, width)[-_CARRIED_ROWS:]
        self._carried[thread] = last.copy().reshape(-1)

    # ------------------------------------------------------------------------------------------------ tensors

    def _add_tensors(self, header: dict[str, Any]) -> None:
        register = self._recorder.register
        assert register is not None
        owners, modules = register.owners, dict(register.modules)
        header["owners"] = [packed(each) for each in owners[self._n_owners :]]
        self._n_owners += len(header["owners"])
        header["modules"] = dict(itertools.islice(modules.items(), self._n_modules, None))
        self._n_modules = len(modules)
        header["links"] = register.links[self._n_links :]
        self._n_links += len(header["links"])
        addresses = dict(register.addresses)
        header["addresses"] = [[s, a] for s, a in addresses.items() if self._addresses.get(s) != a]
        self._addresses = addresses

    # ------------------------------------------------------------------------------------------------ facts

    def _known_facts(self) -> dict[str, Any]:
        recorder, cost = self._recorder, cost_of(self._recorder)
        health = health_of(recorder)
        return {
            **self._first,
            "settings": packed(self._settings),
            "columns": recorder.wanted.columns,
            "main_thread": recorder.thread,
            "origin_ns": recorder.origin_ns,
            "begun_ns": recorder.begun_ns,
            "first_id": None if recorder.register is None else recorder.register.first_id,
            "cost": None if cost is None else list(cost),
            "unfinished": recorder.unfinished,
            "notes": health.notes,
            "remarks": health.remarks,
        }

    def last_facts(self) -> dict[str, Any]:
        """What can be known only at the end."""
        functions = self._recorder.functions
        return {
            "of_modules": () if functions is None else memory_of_modules(functions),
            "alive": () if self._recorder.register is None else core.alive().tolist(),
        }

    def _new_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Those of the facts that have changed."""
        texts = {name: orjson.dumps(value, default=str) for name, value in facts.items()}
        new = {name: facts[name] for name, text in texts.items() if self._facts.get(name) != text}
        self._facts.update(texts)
        return new


def _packed_op(op: SyntheticOp) -> list[Any]:
    inputs = None if op.inputs is None else packed_inputs(op.inputs)
    return [op.name, op.overload, op.depth, inputs, op.allocates, op.sequenced]
