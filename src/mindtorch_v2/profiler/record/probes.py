"""Probes: the functions that record op calls. An op and a recording's settings in, a function out.

A probe takes the op's arguments, runs the op and appends one row of integers to a buffer. Its source is generated from the settings
and from the number and kinds of the arguments, so a few sources are compiled and each op gets its own closure of one. A recorded call
costs two Python calls, two clock reads and one `list.extend`. Hot ops inline their recording code: once a recording has counted
thousands of calls of an op, later recordings put the probe's lines into the functions that users call, and the probe is not called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ... import _dispatch
from ..._codegen import Plan, code_with_recording, described_text, run_text

# The variables that all probes of a recording close over. In generated source they have the prefix `p_`, so that none is named like
# an argument of an op. The recorder, its tensor register and its call tracer supply the values.
_SHARED = (
    "get_ident owner note_foreign_thread grad_state now extend input_index intern_inputs record_allocations new getframe mark find_call node_call "
    "ObservedStorage "
    "first_id tensor_log log_tensors assign_id ids_in_list suspended setprofile hook log_calls missed_calls run_suspended"
).split()


class Kind(NamedTuple):
    """What the probes of a recording do besides reading the clock."""

    inputs: bool  # describe the arguments
    memory: bool  # record allocations
    stack: bool  # find the Python call that the op is called in
    tensor_ids: bool = False  # record the ids of the arguments, and give new tensors theirs
    # restore the profile hook of the call tracer, which takes itself off when an op begins
    restores_hook: bool = False


def columns(kind: Kind) -> tuple[str, ...]:
    """The integers of one event, in order. `key`: the op's uid; `inputs`, `call`: an index, or -1; `tensors`: where the ids of its
    tensors begin in the tensor log, or -1; `bytes`: the size of its one new tensor, whose allocation id is the op's start, or 0."""
    return (
        "key",
        "start",
        "end",
        "sequence",
        *(("inputs",) if kind.inputs else ()),
        *(("call",) if kind.stack else ()),
        *(("tensors",) if kind.tensor_ids else ()),
        *(("bytes",) if kind.memory else ()),
    )


# the expression for the id of an argument, by its letter in `tensor_places`
_TENSOR_ID = {
    "T": "p_id if (p_id := {a}._tensor_id) >= p_first_id else p_assign_id({a})",
    "N": "0 if not isinstance({a}, Tensor) else p_id if (p_id := {a}._tensor_id) >= p_first_id else p_assign_id({a})",
    "L": "*p_ids_in_list({a})",
}


@cache
def tensor_places(op: Any) -> str:
    """A letter for each argument of an op: T a tensor, N a tensor, a number or None, L a list of tensors, - anything else."""
    plan = Plan(op)
    letters = ""
    for argument in plan.arguments:
        if argument.kind == "Tensor":
            letters += "N" if plan.may_be_number(argument) else "T"
        else:
            letters += {"Tensor?": "N", "Tensor[]": "L", "Tensor?[]": "L"}.get(argument.kind, "-")
    return letters


def probe(op: Any, kind: Kind, shared: tuple[Any, ...]) -> Callable[..., Any]:
    """The probe of one op. `shared`: from `shared_values`."""
    tensors = tensor_places(op) if kind.tensor_ids else ""
    make = maker(kind, op.n_arguments, op.allocates if kind.memory else 0, tensors)
    return make(op, op.run, op.describe if kind.inputs else None, op.uid, *shared)


def shared_values(shared: dict[str, Any]) -> tuple[Any, ...]:
    """The values that all probes of a recording close over, in the order in which probes take them. shared: by name."""
    return tuple([shared[name] for name in _SHARED])


@cache
def maker(kind: Kind, arguments: int, allocates: int, tensors: str) -> Callable[..., Any]:
    """A function (op, run, describe, uid, *shared) -> probe, for ops with this number of arguments. `allocates`: the op's attribute;
    `tensors`: the letters of `tensor_places`, empty if tensor ids are not recorded."""
    names = [f"a{number}" for number in range(arguments)]
    call = ", ".join(names)
    lines = [
        f"def make(OP, p_run, p_describe, p_uid, {', '.join('p_' + name for name in _SHARED)}):",
        f"    def probe({call}):",
        *["        " + line for line in _lines(kind, names, allocates, tensors, f"p_describe({call})", 2)],
        "    return probe",
    ]
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<op probe {arguments}>", "exec"), _dispatch._GLOBALS, namespace)  # noqa: S102  (text written above)
    return namespace["make"]


# ---------------------------------------------------------------------------------------------------- recording code inlined in hot ops


def inline_recording(ops: list[Any], kind: Kind, probe_list: Any, shared: dict[str, Any]) -> None:
    """Put the recording code into the functions of hot ops. It runs while `_dispatch.recorder` is `probe_list`."""
    if any(op.bodies for op in ops):  # guards for overrides have replaced the functions
        return
    _dispatch._GLOBALS.update({"p_" + name: shared[name] for name in _SHARED})
    _dispatch._GLOBALS[_probe_list_name(kind)] = probe_list
    _dispatch.INLINED_PROBE_LISTS.add(_probe_list_name(kind))
    for op in ops:
        if _inlined.get(op) != kind:
            _inlined[op] = kind
            for name, code in _inlined_code(op, kind).items():
                getattr(op, name).__code__ = code


_inlined: dict[Any, Kind] = {}  # by op: the kind of recording code that is inlined now


@cache
def _inlined_code(op: Any, kind: Kind) -> dict[str, Any]:
    plan = Plan(op)
    tensors = tensor_places(op) if kind.tensor_ids else ""
    body = [line[8:] for line in run_text(plan)]
    allocates = op.allocates if kind.memory else 0
    lines = _lines(kind, plan.names, allocates, tensors, described_text(plan), 1, body)
    lines = [line.replace("p_uid", str(op.uid)).replace("p_run(", "OP.run(") for line in lines]
    return code_with_recording(
        op, [f"if recorder is {_probe_list_name(kind)}:", *["    " + line for line in lines]]
    )


def _probe_list_name(kind: Kind) -> str:
    """The global that holds the recorder's probe list which inlined code of this kind records for. One name per kind: when the code
    is replaced during a call, the old code must not write its columns into the buffer of a recorder of another kind."""
    return "p_probe_list_" + "".join(str(int(wanted)) for wanted in kind)


# ---------------------------------------------------------------------------------------------------- generated source


def _lines(
    kind: Kind,
    names: list[str],
    allocates: int,
    tensors: str,
    described: str,
    caller: int,
    body: list[str] | None = None,
) -> list[str]:
    """The lines of a probe. described: the expression that describes the arguments; caller: how many frames up the user's call is;
    body: the lines of the op's `run`, or None to call it."""
    call = ", ".join(names)
    packed = f"({call},)" if names else "()"
    lines: list[str] = []

    def write(depth: int, *more: str) -> None:
        lines.extend("    " * depth + line for line in more)

    # ops on foreign threads are not recorded
    write(
        0,
        "if p_get_ident() != p_owner:",
        "    p_note_foreign_thread()",
        f"    return {'p_run_suspended(p_run, ' if kind.restores_hook else 'p_run('}{call})",
    )
    depth = 0
    if kind.restores_hook:
        write(0, "p_frames = p_suspended[0]", "if p_frames: p_suspended[0] = 0", "try:")
        depth = 1
    write(depth, 'p_sequence = p_grad_state["seq"] if p_grad_state["enabled"] else -1')
    rest = "p_sequence"
    if kind.stack:
        write(depth, "p_call = p_node_call[0]", "if p_call < 0:")
        write(depth + 1, "try:")
        write(depth + 2, f"p_call = p_getframe({caller}).f_trace")
        write(
            depth + 2,
            f"if p_call.__class__ is not p_mark: p_call = p_find_call(p_getframe({caller}), p_owner)",
        )
        write(depth + 1, "except ValueError: p_call = -1")  # called from C, with no Python frame above
    if kind.inputs:
        rest += ", p_inputs"
        write(depth, f"try: p_inputs = p_input_index({described})")
        # a meta tensor, or arguments that the op will refuse
        write(depth, "except (AttributeError, TypeError): p_inputs = -1")
        write(depth, "else:")
        write(depth + 1, f"if p_inputs is None: p_inputs = p_intern_inputs(OP, {packed})")
    rest += ", p_call" * kind.stack
    tensor_ids = [_TENSOR_ID[letter].format(a=name) for name, letter in zip(names, tensors) if letter != "-"]
    if tensor_ids:
        write(depth, "if p_inputs < 0: p_tensors = -1", "else:")
        write(depth + 1, "p_tensors = len(p_tensor_log)", f"p_log_tensors(({', '.join(tensor_ids)},))")
    if kind.tensor_ids:
        rest += ", p_tensors" if tensor_ids else ", -1"
    add_row = f"p_extend((p_uid, p_start, p_now(), {rest}{', 0' * bool(kind.memory)}))"
    write(depth, "p_start = p_now()")
    if not (kind.memory and allocates):
        write(depth, "try:")
        write(depth + 1, *(body or [f"return p_run({call})"]))
        write(depth, f"finally: {add_row}")
    else:
        record_and_return = [f"p_record_allocations(OP, {packed}, t)", add_row, "return t"]
        write(depth, "try:")
        inlined = body is not None and allocates == 1 and _has_single_return(body)
        if body is None or not inlined:
            write(depth + 1, f"t = p_run({call})")
        else:
            for line in body[:-1]:
                before, recovers, after = line.partition("return recover(")
                write(depth + 1, *([before + "t = recover(" + after] if recovers else [line]))
                write(depth + 1, *[" " * len(before) + more for more in record_and_return if recovers])
        write(depth, "except BaseException:")
        write(depth + 1, add_row, "raise")
        if allocates == 1:
            # the most common case, inlined: one new tensor that has no storage yet
            is_new = "" if inlined else "t.__class__ is Tensor and not t._array_missing and "
            write(depth, f"if {is_new}t._storage is None:")
            array = "r" if inlined else "p_array"
            write(depth + 1, "p_storage = t._storage = p_new(p_ObservedStorage)")
            write(depth + 1, "p_storage._root = r" if inlined else "p_storage._root = p_array = t._array")
            # no two ops of a thread start at the same time, so the start serves as the id of what the op allocates
            assign_ids = "t._tensor_id = p_storage._storage_id = " if kind.tensor_ids else ""
            write(depth + 1, assign_ids + "p_storage._allocation_id = p_start")
            write(depth + 1, f"p_extend((p_uid, p_start, p_now(), {rest}, {array}.nbytes))")
            write(depth + 1, "return t")
        write(depth, *record_and_return)
    if kind.restores_hook:
        write(0, "finally:")
        write(1, "if p_frames: p_log_calls(p_missed_calls[p_frames]); p_setprofile(p_hook)")
    return lines


def _has_single_return(body: list[str]) -> bool:
    """Whether the lines of a `run` return the tensor `t` on the last line and nowhere else, calls of `recover` aside."""
    returns = [line for line in body if "return " in line and "recover(" not in line]
    return returns == ["return t"] and body[-1] == "return t"
