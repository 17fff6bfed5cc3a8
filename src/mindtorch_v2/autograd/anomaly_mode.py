"""Anomaly mode: shows the forward call that an error or a NaN in the backward pass comes from. Slow, for
debugging.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from typing import Any

from .. import _dispatch
from .._graph import Node, Switches, grad_state

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _set(mode: bool, check_nan: bool) -> tuple[bool, bool]:
    """Set anomaly mode for the whole process; returns the previous setting."""
    before = Switches.anomaly, Switches.anomaly_check_nan
    if bool(mode) != Switches.anomaly:
        Switches.watch(1 if mode else -1)
    Switches.anomaly, Switches.anomaly_check_nan = bool(mode), bool(check_nan)
    return before


class detect_anomaly:
    """Context manager: a failing backward shows the forward call that created its node, and NaN raises."""

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = Switches.anomaly
        self.check_nan = check_nan
        self.prev_check_nan = Switches.anomaly_check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _set(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        _set(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Turn anomaly mode on or off, immediately and as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev, self.prev_check_nan = _set(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        _set(self.prev, self.prev_check_nan)


def note_forward(node: Node) -> None:
    """Store with a new node the stack that created it, and the node whose backward created it."""
    frame: Any = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith((_PACKAGE, "<op "))):
        frame = frame.f_back
    node.metadata["traceback_"] = traceback.format_list(traceback.extract_stack(frame))
    if grad_state.node is not None:
        node.metadata["parent_"] = grad_state.node


def _warn(node: Any) -> None:
    """Warn with the forward call that created `node`, and with those of the nodes whose backward created it."""
    if "traceback_" not in node.metadata:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for "
            "more information.",
            stacklevel=2,
        )
        return
    calls = "".join(node.metadata["traceback_"])
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{calls}",
        stacklevel=2,
    )
    parent, child = node.metadata.get("parent_"), node
    while parent is not None:
        if "traceback_" not in parent.metadata:
            warnings.warn(
                "\n\nNo forward pass information available of the previous calculation that induced "
                f"{child.name()}. Enable detect anomaly during forward pass for more information.",
                stacklevel=2,
            )
            return
        calls = "".join(parent.metadata["traceback_"])
        warnings.warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
            f"calculation:\n{calls}",
            stacklevel=2,
        )
        parent, child = parent.metadata.get("parent_"), parent


def apply_watched(node: Node, buffer: list, apply: Any) -> tuple:
    """`apply(node, buffer)`, with the forward call shown if it raises or returns NaN."""
    before, grad_state.node = grad_state.node, node
    try:
        results = apply(node, buffer)
        if Switches.anomaly_check_nan:
            _check(node, results)
        return results
    except BaseException:
        _warn(node)
        raise
    finally:
        grad_state.node = before


def _check(node: Node, results: tuple) -> None:
    isnan = _dispatch.FUNCTIONS["isnan"]
    for number, result in enumerate(results):
        if result is not None and not result._is_sparse_layout and bool(isnan(result.detach())._array.any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")
