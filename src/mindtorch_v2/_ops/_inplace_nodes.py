"""In-place forms of ops with a backward node of their own: an op in, its in-place form declared."""

from __future__ import annotations

from typing import Any

from .._dispatch import op


def declare_inplace(base: Any, inplace: str, node: str, **rules: Any) -> None:
    """Declare the in-place form of an op with a backward node of its own, as torch does."""
    schema = base.op.text.replace("(", ".written(", 1)
    declared = op(
        schema,
        pointwise=base.op.pointwise,
        inplace=f"{inplace}.written",
        expose="no",
        node=node,
        on=base.op.body,
    )(base.op.kernel)
    declared.derivative(**rules)
    base.inplace = declared.inplace
