"""torch.fx.traceback: metadata of the node that is being executed."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "annotate",
    "preserve_node_meta",
    "has_preserved_node_meta",
    "set_stack_trace",
    "set_grad_fn_seq_nr",
    "reset_grad_fn_seq_nr",
    "format_stack",
    "set_current_meta",
    "get_current_meta",
]

current_meta: dict[str, Any] = {}
_preserving = False


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Context manager: `set_current_meta` notes the node that runs, for those who ask."""
    global _preserving
    before, _preserving = _preserving, enable
    saved = copy.copy(current_meta)
    try:
        yield
    finally:
        _preserving = before
        current_meta.clear()
        current_meta.update(saved)


def has_preserved_node_meta() -> bool:
    """Whether metadata is being noted."""
    return _preserving


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Context manager: further entries in the metadata under "custom"."""
    before = current_meta.get("custom")
    current_meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            current_meta.pop("custom", None)
        else:
            current_meta["custom"] = before


def set_stack_trace(stack: list[str]) -> None:
    """Note a stack in the metadata."""
    if _preserving and stack:
        current_meta["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Note the sequence number of a backward node in the metadata."""
    if _preserving:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]


def reset_grad_fn_seq_nr() -> None:
    """Forget the last sequence number."""
    numbers = current_meta.get("grad_fn_seq_nr", [])
    if _preserving and numbers:
        current_meta["grad_fn_seq_nr"] = numbers[:-1]
        if not numbers[:-1]:
            del current_meta["grad_fn_seq_nr"]


def format_stack() -> list[str]:
    """The stack of the metadata, or the interpreter's."""
    if _preserving:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Context manager: the metadata is that of a node."""
    if not _preserving or not node.meta:
        yield
        return
    saved = copy.copy(current_meta)
    try:
        current_meta.clear()
        current_meta.update(node.meta)
        current_meta["from_node"] = [*current_meta.get("from_node", []), (node.name, node.target)]
        yield
    finally:
        current_meta.clear()
        current_meta.update(saved)


def get_current_meta() -> dict[str, Any]:
    """The metadata."""
    return current_meta
