"""Marks for TorchScript's compiler. There is none, so a mark returns what it marks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final, List, Optional  # noqa: UP035  (torch has these names here)

from .jit import _overload, _overload_method, export, ignore, is_scripting, unused

__all__ = [
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final", "List", "Optional", "_copy_to_script_wrapper", "_overload",
    "_overload_method", "boolean_dispatch", "boolean_dispatched", "export", "ignore", "is_scripting", "unused",
]  # fmt: skip


def _copy_to_script_wrapper(fn: Any) -> Any:
    """Mark a method that a scripted module keeps."""
    return fn


class _BroadcastingList:
    """`BroadcastingList2[int]`: a list of two numbers, or one number for both."""

    def __getitem__(self, kind: Any) -> Any:
        return List[kind]  # noqa: UP006


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (_BroadcastingList() for _ in range(3))


# the functions that `boolean_dispatch` made, with the two that each of them chooses from
boolean_dispatched: weakref.WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = (
    weakref.WeakKeyDictionary()
)


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two, by the value of one of its arguments."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        chosen = (
            kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        )
        return (if_true if chosen else if_false)(*args, **kwargs)

    fn.__name__, fn.__module__ = func_name, module_name
    fn.__doc__ = if_false.__doc__ or if_true.__doc__
    boolean_dispatched[fn] = {
        "if_true": if_true, "if_false": if_false, "index": arg_index, "default": default, "arg_name": arg_name,
    }  # fmt: skip
    return fn
