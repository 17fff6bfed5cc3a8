"""Probes: the functions that see an op call while something records. An op and a recording's settings in, a function out.

A probe takes the op's arguments, runs the op and appends a few integers. Its text depends only on the settings and on how many
arguments there are, so a handful of texts are compiled and every op gets its own closure of one: an op call pays for two plain
Python calls, two looks at the clock and one `list.extend`, and nothing is worked out that could be known before. An op that a
recording saw thousands of times sees its calls itself in later ones: the same lines then stand in what people call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ... import _dispatch
from ..._codegen import Plan, described_text, run_text
from ..._codegen import see_directly as see_directly_code

# what a probe closes over, besides the op's own; each with `p_` before it, so that no argument of an op has its name
_SHARED = (
    "ident owner state now extend known learn born fresh frame_of mark find_call Observed base met meet see listed "
    "door arm hook log behind stranger"
).split()


class Kind(NamedTuple):
    """What a probe of these settings has to do."""

    inputs: bool  # describe what goes in
    memory: bool  # note what is taken
    stack: bool  # find the Python call
    identities: bool = False  # note which tensors went in, and number what is made
    door: bool = False  # put the hook back that traces Python calls, where the op has taken it off


def columns(kind: Kind) -> tuple[str, ...]:
    """The integers of one event, in order. `key`: the op's number; `inputs`, `call`: an index, or -1; `met`: where the
    numbers of its tensors stand, or -1; `bytes`: of one new tensor, whose memory is known by the op's start, or 0."""
    return (
        "key",
        "start",
        "end",
        "sequence",
        *(("inputs",) if kind.inputs else ()),
        *(("call",) if kind.stack else ()),
        *(("met",) if kind.identities else ()),
        *(("bytes",) if kind.memory else ()),
    )


# the number of a tensor, by what may stand in its place
_NUMBER = {
    "T": "p_n if (p_n := {a}._met) >= p_base else p_see({a})",
    "N": "0 if not isinstance({a}, Tensor) else p_n if (p_n := {a}._met) >= p_base else p_see({a})",
    "L": "*p_listed({a})",
}


def tensor_places(op: Any) -> str:
    """A letter for each argument of an op: T a tensor, N a tensor, a number or nothing, L a list of tensors, - anything else."""
    plan = Plan(op)
    made = ""
    for argument in plan.arguments:
        if argument.kind == "Tensor":
            made += "N" if plan.may_be_number(argument) else "T"
        else:
            made += {"Tensor?": "N", "Tensor[]": "L", "Tensor?[]": "L"}.get(argument.kind, "-")
    return made


def probe(op: Any, kind: Kind, shared: dict[str, Any]) -> Callable[..., Any]:
    """The probe of one op. `shared`: what all probes of a recording close over, by name."""
    tensors = tensor_places(op) if kind.identities else ""
    make = maker(kind, op.n_arguments, op.allocates if kind.memory else 0, tensors)
    describe = op.describe if kind.inputs else None
    return make(op, op.run, describe, op.uid, *[shared[name] for name in _SHARED])


@cache
def maker(kind: Kind, arguments: int, allocates: int, tensors: str) -> Callable[..., Any]:
    """A function (op, run, describe, uid, *shared) -> probe, for ops of so many arguments. `allocates` is the op's; `tensors`: see
    `tensor_places`, or nothing where tensors are not noted."""
    names = [f"a{number}" for number in range(arguments)]
    call = ", ".join(names)
    lines = [
        f"def make(OP, p_run, p_describe, p_uid, {', '.join('p_' + name for name in _SHARED)}):",
        f"    def probe({call}):",
        *["        " + line for line in _lines(kind, names, allocates, tensors, f"p_describe({call})", 2)],
        "    return probe",
    ]
    made: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<op probe {arguments}>", "exec"), _dispatch._GLOBALS, made)  # noqa: S102  (text written above)
    return made["make"]


# ---------------------------------------------------------------------------------------------------- ops that are called often


def see_directly(ops: list[Any], kind: Kind, seers: Any, shared: dict[str, Any]) -> None:
    """Let ops see their calls themselves, for the recorder whose list is `seers`: neither its probe nor their body is called."""
    if any(op.bodies for op in ops):  # somebody answers ops, and has to be asked
        return
    _dispatch._GLOBALS.update({"p_" + name: shared[name] for name in _SHARED})
    _dispatch._GLOBALS[_seers(kind)] = seers
    _dispatch.DIRECT.add(_seers(kind))
    for op in ops:
        if _direct.get(op) != kind:
            _direct[op] = kind
            for name, code in _direct_code(op, kind).items():
                getattr(op, name).__code__ = code


_direct: dict[Any, Kind] = {}  # for which settings ops see their calls now


@cache
def _direct_code(op: Any, kind: Kind) -> dict[str, Any]:
    plan = Plan(op)
    tensors = tensor_places(op) if kind.identities else ""
    body = [line[8:] for line in run_text(plan)]
    allocates = op.allocates if kind.memory else 0
    lines = _lines(kind, plan.names, allocates, tensors, described_text(plan), 1, body)
    lines = [line.replace("p_uid", str(op.uid)).replace("p_run(", "OP.run(") for line in lines]
    return see_directly_code(op, [f"if recorder is {_seers(kind)}:", *["    " + line for line in lines]])


def _seers(kind: Kind) -> str:
    """Where the list stands of the recorder for which ops may see their calls themselves. A name for each kind: a call may begin before
    that changes, and its lines must not see for a recorder that wants other columns."""
    return "p_seers_" + "".join(str(int(wanted)) for wanted in kind)


# ---------------------------------------------------------------------------------------------------- the text


def _lines(
    kind: Kind,
    names: list[str],
    allocates: int,
    tensors: str,
    described: str,
    caller: int,
    body: list[str] | None = None,
) -> list[str]:
    """The lines of a probe. described: the expression that describes the arguments; caller: how many frames above the caller is; body:
    lines that do what the op's `run` does, or None where it is called."""
    call = ", ".join(names)
    packed = f"({call},)" if names else "()"
    lines: list[str] = []

    def write(depth: int, *more: str) -> None:
        lines.extend("    " * depth + line for line in more)

    write(0, f"if p_ident() != p_owner: return {'p_stranger(p_run, ' if kind.door else 'p_run('}{call})")
    depth = 0
    if kind.door:
        write(0, "p_outer = p_door[0]", "if p_outer: p_door[0] = 0", "try:")
        depth = 1
    write(depth, 'p_sequence = p_state["seq"] if p_state["enabled"] else -1')
    rest = "p_sequence"
    if kind.stack:
        write(depth, "try:")
        write(depth + 1, f"p_call = p_frame_of({caller}).f_trace")
        write(
            depth + 1,
            f"if p_call.__class__ is not p_mark: p_call = p_find_call(p_frame_of({caller}), p_owner)",
        )
        write(depth, "except ValueError: p_call = -1")  # called by C on a bare thread
    if kind.inputs:
        rest += ", p_inputs"
        write(depth, f"try: p_inputs = p_known({described})")
        write(
            depth, "except (AttributeError, TypeError): p_inputs = -1"
        )  # a meta tensor, or what will be refused
        write(depth, "else:")
        write(depth + 1, f"if p_inputs is None: p_inputs = p_learn(OP, {packed})")
    rest += ", p_call" * kind.stack
    numbers = [_NUMBER[place].format(a=name) for name, place in zip(names, tensors) if place != "-"]
    if numbers:
        write(depth, "if p_inputs < 0: p_place = -1", "else:")
        write(depth + 1, "p_place = len(p_met)", f"p_meet(({', '.join(numbers)},))")
    if kind.identities:
        rest += ", p_place" if numbers else ", -1"
    none = f"p_extend((p_uid, p_start, p_now(), {rest}{', 0' * bool(kind.memory)}))"
    write(depth, "p_start = p_now()")
    if not (kind.memory and allocates):
        write(depth, "try:")
        write(depth + 1, *(body or [f"return p_run({call})"]))
        write(depth, f"finally: {none}")
    else:
        noted = [f"p_born(OP, {packed}, t)", none, "return t"]
        write(depth, "try:")
        inlined = body is not None and allocates == 1 and _ends_at_its_end(body)
        if body is None or not inlined:
            write(depth + 1, f"t = p_run({call})")
        else:
            for line in body[:-1]:
                before, recovers, after = line.partition("return recover(")
                write(depth + 1, *([before + "t = recover(" + after] if recovers else [line]))
                write(depth + 1, *[" " * len(before) + more for more in noted if recovers])
        write(depth, "except BaseException:")
        write(depth + 1, none, "raise")
        if allocates == 1:
            # the most common case, written out: one new tensor that nobody has looked at yet
            write(
                depth,
                "if t._storage is None:" if inlined else "if t.__class__ is Tensor and t._storage is None:",
            )
            array = "r" if inlined else "p_array"
            write(depth + 1, "p_storage = t._storage = p_fresh(p_Observed)")
            write(depth + 1, "p_storage._root = r" if inlined else "p_storage._root = p_array = t._array")
            # no two ops of a thread start at one time: what it makes is known by it
            known = "t._met = p_storage._number = " if kind.identities else ""
            write(depth + 1, known + "p_storage._birth = p_start")
            write(depth + 1, f"p_extend((p_uid, p_start, p_now(), {rest}, {array}.nbytes))")
            write(depth + 1, "return t")
        write(depth, *noted)
    if kind.door:
        write(0, "finally:")
        write(1, "if p_outer: p_log(p_behind[p_outer]); p_arm(p_hook)")
    return lines


def _ends_at_its_end(body: list[str]) -> bool:
    """Whether the lines of a `run` give the one tensor `t` on their last line and nowhere before, but for what failed."""
    returns = [line for line in body if "return " in line and "recover(" not in line]
    return returns == ["return t"] and body[-1] == "return t"
