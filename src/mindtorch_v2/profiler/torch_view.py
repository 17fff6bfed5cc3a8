"""The torch view: a Trace in; the Trace with the ops that torch shows inside those that ran as one kernel here, marked synthetic, out.

Which ops these are is declared beside each op (`_ops/_children.py`). A rule is evaluated once per distinct input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mindtorch_prof.inputs import Inputs, TensorInput
from mindtorch_prof.load.torch_view import with_children
from mindtorch_prof.settings import Settings
from mindtorch_prof.synthetic_rows import SyntheticOp, event_keys
from mindtorch_prof.trace import Trace

from .. import _dispatch
from .._ops._children import UNKNOWN, Child, UnknownInputs

_DEEPEST = 16  # levels of children: more are rules that call each other in a circle


def torch_view(trace: Trace) -> Trace:
    """The trace with torch's inner ops. Nothing is inserted where a rule cannot tell: inputs that it has to look at were not recorded,
    or they are such that the op itself raised."""
    declaring = [_dispatch.WITH_CHILDREN.get(key) for key in zip(trace.names, trace.overloads)]
    if not any(declaring):
        return trace
    known = trace.settings.record_shapes or trace.settings.with_flops
    contents: dict[tuple[int, int], list[SyntheticOp]] = {}
    for name, index in event_keys(trace, np.array([op is not None for op in declaring])):
        op: Any = declaring[name]
        arguments = trace.input_table[index].arguments if known and index >= 0 else None
        try:
            contents[name, index] = synthetic_ops(op, arguments, trace.settings)
        except Exception:  # noqa: S112  (a rule must not stop the user's program)
            continue
    return with_children(trace, contents)


def synthetic_ops(op: Any, arguments: Sequence[Any] | None, settings: Settings) -> list[SyntheticOp]:
    """The events inside an op with these arguments; None: they are not known. Raises what the op's rule raises."""
    return list(_rows(_children_of(op, arguments, settings), 1, arguments is not None, settings))


def _children_of(op: Any, arguments: Sequence[Any] | None, settings: Settings) -> Sequence[Child]:
    """The children that an op declares for its arguments; None: they are not known. Rules are about dense tensors."""
    if arguments is not None and any(isinstance(a, TensorInput) and a.is_sparse for a in arguments):
        return ()
    named = {"settings": settings} if op.children_need_settings else {}
    return op.children_rule(*([UNKNOWN] * op.n_arguments if arguments is None else arguments), **named)


def _rows(children: Sequence[Child], depth: int, known: bool, settings: Settings) -> Iterator[SyntheticOp]:
    """Children and all below them, parents first."""
    if depth > _DEEPEST:
        raise RecursionError("the children of an op contain the op itself")
    for child in children:
        name, _, overload = child.name.partition(".")
        op = _op_of(name.partition("::")[2], overload)
        arguments = _with_defaults(op, child.arguments) if known else None
        inside = child.children
        if inside is None:
            inside = _declared_inside(op, arguments, settings)
        below = list(_rows(inside, depth + 1, known, settings))
        allocates = child.allocates and not any(row.allocates for row in below)
        if not child.allocates:
            below = [row._replace(allocates=False) for row in below]
        if not child.sequenced:
            below = [row._replace(sequenced=False) for row in below]
        inputs = None if arguments is None else Inputs(arguments)
        yield SyntheticOp(name, overload, depth, inputs, allocates, child.sequenced)
        yield from below


def _op_of(name: str, overload: str) -> Any:
    """The op of a child, None if there is none. Comparisons with a number are those with a tensor here, and have their rules."""
    op = _dispatch.OPS.get(f"{name}.{overload}" if overload else name)
    return _dispatch.OPS.get(f"{name}.Tensor") if op is None and overload == "Scalar" else op


def _declared_inside(op: Any, arguments: Sequence[Any] | None, settings: Settings) -> Sequence[Child]:
    """The children of a child; none where its rule would have to look at inputs that are not known."""
    if op is None or op.children_rule is None:
        return ()
    try:
        return _children_of(op, arguments, settings)
    except UnknownInputs:
        return ()


def _with_defaults(op: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a child, with the defaults of those that its rule leaves out."""
    if op is None:
        return arguments
    return arguments + tuple(
        [None if a.required else a.default for a in op.schema.arguments[len(arguments) :]]
    )
