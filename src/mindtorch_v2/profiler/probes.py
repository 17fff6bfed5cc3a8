"""Probes: the functions that see an op call while something records. An op and a recording's settings in, a function out.

A probe takes the op's arguments, runs the op and appends a few integers. Its text depends only on the settings and on how many
arguments there are, so a handful of texts are compiled and every op gets its own closure of one: an op call pays for two plain
Python calls, two looks at the clock and one `list.extend`, and nothing is worked out that could be known before. An op that a
recording saw thousands of times has a text of its own in later ones, with its body in it: one call less.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .. import _dispatch
from .._codegen import Plan, described_text, run_text

# what a probe closes over, besides the op's own
_SHARED = (
    "ident owner state now extend known learn born fresh frame_of mark find_call Tensor Observed base met meet see listed "
    "door arm hook log behind stranger"
)


class Kind(NamedTuple):
    """What a probe of these settings has to do."""

    inputs: bool  # describe what goes in
    memory: bool  # note what is taken
    stack: bool  # find the Python call
    identities: bool = False  # note which tensors went in, and number what is made
    door: bool = False  # put the hook back that traces Python calls, where the op has taken it off


def columns(kind: Kind) -> tuple[str, ...]:
    """The integers of one event, in order. `key`: the op's number; `inputs`, `call`: an index, or -1; `met`: where the
    numbers of its tensors stand, or -1; `bytes` and `address` of one new tensor, or 0."""
    return (
        "key",
        "start",
        "end",
        "sequence",
        *(("inputs",) if kind.inputs else ()),
        *(("call",) if kind.stack else ()),
        *(("met",) if kind.identities else ()),
        *(("bytes", "address") if kind.memory else ()),
    )


# the number of a tensor, by what may stand in its place
_NUMBER = {
    "T": "n if (n := {a}._met) >= base else see({a})",
    "N": "0 if not isinstance({a}, Tensor) else n if (n := {a}._met) >= base else see({a})",
    "L": "*listed({a})",
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


@cache
def maker(kind: Kind, arguments: int, allocates: int, tensors: str) -> Callable[..., Any]:
    """A function (op, run, describe, uid, *shared) -> probe, for ops of so many arguments. `allocates` is the op's; `tensors`: see
    `tensor_places`, or nothing where tensors are not noted."""
    names = ", ".join(f"a{number}" for number in range(arguments))
    listed = f"({names},)" if arguments else "()"
    lines = [
        f"def make(op, run, describe, uid, {', '.join(_SHARED.split())}):",
        f"    def probe({names}):",
        f"        if ident() != owner: return {'stranger(run, ' if kind.door else 'run('}{names})",
        *_opened(kind),
        '        sequence = state["seq"] if state["enabled"] else -1',
    ]
    if kind.stack:
        lines += [
            "        try:",
            "            call = frame_of(2).f_trace",
            "            if call.__class__ is not mark: call = find_call(frame_of(2), owner)",
            "        except ValueError: call = -1",  # called by C on a bare thread
        ]
    if kind.inputs:
        lines += [
            "        try: inputs = known(describe(" + names + "))",
            "        except (AttributeError, TypeError): inputs = -1",  # a meta tensor, or what the op will refuse
            "        else:",
            f"            if inputs is None: inputs = learn(op, {listed})",
        ]
    numbers = [_NUMBER[place].format(a=f"a{i}") for i, place in enumerate(tensors) if place != "-"]
    if numbers:
        lines += [
            "        if inputs < 0: place = -1",
            "        else:",
            "            place = len(met)",
            f"            meet(({', '.join(numbers)},))",
        ]
    rest = "sequence" + ", inputs" * kind.inputs + ", call" * kind.stack
    if kind.identities:
        rest += ", place" if numbers else ", -1"
    none = rest + ", 0, 0" * bool(kind.memory)
    lines += ["        start = now()"]
    if not (kind.memory and allocates):
        lines += [
            f"        try: return run({names})",
            f"        finally: extend((uid, start, now(), {none}))",
        ]
    else:
        lines += [
            f"        try: result = run({names})",
            "        except BaseException:",
            f"            extend((uid, start, now(), {none}))",
            "            raise",
        ]
        if allocates == 1:
            lines += [
                # the most common case, written out: one new tensor that nobody has looked at yet
                "        if result.__class__ is Tensor and result._storage is None:",
                "            array = result._array",
                "            storage = result._storage = fresh(Observed)",
                "            storage._root = array",
                # no two ops of a thread start at one time: what it makes is known by it
                *(["            result._met = storage._number = start"] if kind.identities else ()),
                f"            extend((uid, start, now(), {rest}, array.nbytes, id(storage)))",
                "            return result",
            ]
        lines += [
            f"        born(op, {listed}, result)",
            f"        extend((uid, start, now(), {none}))",
            "        return result",
        ]
    lines = [*_closed(lines, kind), "    return probe"]
    made: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<op probe {arguments}>", "exec"), made)  # noqa: S102  (text written above)
    return made["make"]


def _opened(kind: Kind, prefix: str = "") -> list[str]:
    """The lines of a probe that take note of the hook's being off."""
    if not kind.door:
        return []
    return [f"        {prefix}outer = {prefix}door[0]", f"        if {prefix}outer: {prefix}door[0] = 0"]


def _closed(lines: list[str], kind: Kind, prefix: str = "") -> list[str]:
    """The lines of a maker, so that the hook is back whatever way the probe ends."""
    if not kind.door:
        return lines
    first = lines.index(_opened(kind, prefix)[-1]) + 1
    body = ["    " + line for line in lines[first:]]
    end = (
        f"            if {prefix}outer: {prefix}log({prefix}behind[{prefix}outer]); {prefix}arm({prefix}hook)"
    )
    return [*lines[:first], "        try:", *body, "        finally:", end]


def probe(op: Any, kind: Kind, shared: dict[str, Any]) -> Callable[..., Any]:
    """The probe of one op. `shared`: what all probes of a recording close over, by name."""
    if op.often and not kind.memory and not op.bodies:
        return own_maker(op, kind)(op, *[shared[name] for name in _OWN])
    describe = op.describe if kind.inputs else None
    tensors = tensor_places(op) if kind.identities else ""
    make = maker(kind, op.n_arguments, op.allocates if kind.memory else 0, tensors)
    return make(op, op.run, describe, op.uid, **shared)


_OWN = (
    "ident owner state now extend known learn frame_of mark find_call door arm hook log behind stranger".split()
)


@cache
def own_maker(op: Any, kind: Kind) -> Callable[..., Any]:
    """A function (op, *_OWN) -> probe of this op alone, for settings without memory."""
    plan = Plan(op)
    names = plan.call()
    lines = [
        f"def make(OP, {', '.join('p_' + name for name in _OWN)}):",
        f"    def probe({names}):",
        f"        if p_ident() != p_owner: return {'p_stranger(OP.run, ' if kind.door else 'OP.run('}{names})",
        *_opened(kind, "p_"),
        '        p_sequence = p_state["seq"] if p_state["enabled"] else -1',
    ]
    rest = "p_sequence"
    if kind.stack:
        lines += [
            "        try:",
            "            p_call = p_frame_of(2).f_trace",
            "            if p_call.__class__ is not p_mark: p_call = p_find_call(p_frame_of(2), p_owner)",
            "        except ValueError: p_call = -1",
        ]
    if kind.inputs:
        rest += ", p_inputs"
        lines += [
            f"        try: p_inputs = p_known({described_text(plan)})",
            "        except (AttributeError, TypeError): p_inputs = -1",
            "        else:",
            f"            if p_inputs is None: p_inputs = p_learn(OP, ({names},))",
        ]
    rest += ", p_call" * kind.stack
    lines += ["        p_start = p_now()", "        try:"]
    lines += ["    " + line for line in run_text(plan)]
    lines += [f"        finally: p_extend(({plan.uid}, p_start, p_now(), {rest}))"]
    lines = [*_closed(lines, kind, "p_"), "    return probe"]
    made: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<op {op.full_name}>", "exec"), _dispatch._GLOBALS, made)  # noqa: S102  (text written above)
    return made["make"]
