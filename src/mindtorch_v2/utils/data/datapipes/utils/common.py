"""Helpers of pipes: matching paths and open streams for names, and checks of functions."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable
from io import IOBase
from typing import Any

__all__ = [
    "validate_input_col",
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_pathname_binary_tuple",
]

DILL_AVAILABLE = False


def validate_input_col(fn: Callable, input_col: int | tuple | list | None) -> None:
    """Raise if a function cannot take as many arguments as there are columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):  # a built-in function without a signature
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    name = (
        fn.func.__name__ if isinstance(fn, functools.partial) else getattr(fn, "__name__", type(fn).__name__)
    )
    if keywords:
        raise ValueError(
            f"The function {name} takes {len(keywords)} non-default keyword-only parameters, which is not allowed."
        )
    if len(required) > count or (any_name and not positional and not any_number):
        raise ValueError(
            f"The function {name} takes {len(required)} positional parameters, but {count} are required."
        )
    if not any_number and len(positional) < count:
        raise ValueError(f"The function {name} takes {len(positional)} parameters, but {count} are required.")


def _is_local_fn(fn: Any) -> bool:
    """Whether a function was defined inside another."""
    if hasattr(fn, "__code__"):
        return bool(fn.__code__.co_flags & inspect.CO_NESTED)
    return hasattr(fn, "__qualname__") and "<locals>" in fn.__qualname__


def _check_unpickable_fn(fn: Callable) -> None:
    """Raise if it is not callable, and warn if it cannot be pickled."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, functools.partial):
        fn = fn.func
    kind = None
    if _is_local_fn(fn):
        kind = "Local"
    elif getattr(fn, "__name__", "") == "<lambda>":
        kind = "Lambda"
    if kind is not None:
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or functools.partial instead.",
            stacklevel=2,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name matches one of the masks; without masks all names match."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterable[str]:
    """Paths of the files in a folder in order, or `root` itself if it is a file."""

    def complain(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, folders, names in os.walk(root, onerror=complain):
        folder = os.path.abspath(folder) if abspath else folder
        if not non_deterministic:
            names.sort()
        for name in names:
            if match_masks(name, masks):
                yield os.path.join(folder, name)
        if not recursive:
            break
        if not non_deterministic:
            folders.sort()


def get_file_binaries_from_pathnames(pathnames: Iterable, mode: str, encoding: str | None = None) -> Any:
    """Each path with its opened file."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    if mode in ("b", "t"):
        mode = "r" + mode
    for pathname in pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))  # noqa: SIM115  (its reader closes it)


def validate_pathname_binary_tuple(data: tuple[str, IOBase]) -> None:
    """Raise if this is no pair of a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(
            f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}"
        )
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            "binary stream within the tuple should have IOBase or"
            f"its subclasses as type, but it is type {type(data[1])}"
        )


class StreamWrapper:
    """An open stream that is closed when neither it nor what was read from it is referenced any more."""

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close all streams in nested dicts, lists and tuples."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for item in v.values():
                cls.close_streams(item, depth + 1)
        elif isinstance(v, (list, tuple)):
            for item in v:
                cls.close_streams(item, depth + 1)

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the stream, and its parent once all streams from it are closed."""
        if self.closed:
            return
        try:
            self.file_obj.close(*args, **kwargs)
        except AttributeError:
            pass
        if self.parent_stream is not None:
            self.parent_stream.child_counter -= 1
            if not self.parent_stream.child_counter and self.parent_stream.close_on_last_child:
                self.parent_stream.close()
        self.closed = True

    def autoclose(self) -> None:
        """Close the stream now, or once all streams from it are closed."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __del__(self) -> None:
        if "closed" in self.__dict__ and not self.closed:
            self.close()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __iter__(self) -> Any:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        StreamWrapper.__init__(self, obj)
