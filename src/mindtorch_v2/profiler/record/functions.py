"""Functions and modules that are called while recording, numbered at their first call; after the stop, their names.

The core asks for a number once per function and writes it into the log of calls. Which functions are part of the user's program is
decided here, by the file that their code comes from.
"""

from __future__ import annotations

import itertools
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from mindtorch_prof.frames import module_frame
from mindtorch_prof.sealing.raw import HIDDEN_KIND, LIBRARY_KIND, RETURN, SHOWN_KIND, TRANSPARENT_KIND

__all__ = [
    "CALLBACK",
    "HIDDEN",
    "MODULE",
    "RECORDER",
    "RETURN",
    "Functions",
    "append_numbered",
    "prefixes",
    "shortened",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
# files whose functions are not part of the user's stack: what torch does in C++, and the profiler itself
_HIDDEN_FILES = tuple(
    os.path.normpath(_PACKAGE + part) + (os.sep if part.endswith(os.sep) else "")
    for part in (
        "_ops" + os.sep,
        "_dispatch.py",
        "_promotion.py",
        "_codegen.py",
        "_graph.py",
        "_overrides.py",
        "_torch_dispatch.py",
        "_recording_hooks.py",
        "autograd" + os.sep + "engine.py",
        "profiler" + os.sep,
        os.path.join("..", "mindtorch_prof", ""),
    )
)
_SHOWN_FILES = (_PACKAGE + os.path.join("profiler", "commands", "demo.py"),)
_MODULE_FILE = _PACKAGE + os.path.join("nn", "modules", "module.py")
# files of functions that the library may call for its own purposes: hidden if a hidden function calls them
_LIBRARIES = (
    _PACKAGE,
    os.path.join(_STANDARD_LIBRARY, "site-packages", "numpy"),
    os.path.join(_STANDARD_LIBRARY, "site-packages", "scipy"),
    *(
        os.path.join(_STANDARD_LIBRARY, name + end)
        for name in sorted(sys.stdlib_module_names)
        for end in (".py", os.sep)
    ),
    "<frozen ",
    "<string>",
)

# code between the user's and an op, and the recorder's own
_RECORDER_FILES = (
    "<op ",
    os.path.join(_PACKAGE, "profiler", "record", "python_core.py"),
    os.path.join(_PACKAGE, "profiler", "record", "allocations.py"),
)

# code that calls the user's overrides
_OVERRIDES = ("<op guard>", _PACKAGE + "_overrides.py", _PACKAGE + "_torch_dispatch.py")

# Numbers, besides RETURN. Those above `RECORDER` are given out one by one, each to a function, a module or a C function.
HIDDEN = 1  # all functions that are never shown
CALLBACK = 2  # where hidden code calls the user's
RECORDER = 3  # functions between the user's and an op, and those of the recorder itself: hidden, and the plain core does not log them
MODULE = -1  # `Module.__call__`: its frame tells which module


def append_numbered(items: list[Any], item: Any) -> int:
    """Append a new object to a list; its index. Other threads, or finalizers inside, may append theirs at any time: no lock is held, for
    a finalizer that waits for one would wait for itself."""
    items.append(item)
    index = len(items) - 1
    while items[index] is not item:
        index -= 1
    return index


class Functions:
    """The functions of one recording."""

    def __init__(self, *, modules_only: bool = False) -> None:
        self.modules_only = modules_only
        self.numbers: dict[int, int] = {}  # by id() of the code, which `codes` keeps alive
        # by file and code: code objects of different files can be equal
        self.codes: dict[tuple[str, CodeType], int] = {}
        self.module_code: CodeType | None = None  # the code of `Module.__call__`
        self.running: dict[tuple[CodeType, int], int] = {}  # functions that ran already when tracing began
        self.c_functions: dict[Any, int] = {}
        self.module_numbers: dict[tuple[str, int], int] = {}
        # by id(): a weak reference, the class, and the number among the modules of that class
        self.modules: dict[int, tuple[Any, str, int]] = {}
        self.module_counts: dict[str, Iterator[int]] = {}
        # called with each module at its first call, and the name of its calls
        self.on_new_module: Callable[[Any, str], None] | None = None
        # by number: (code, line), (class, module's number) or a C function's name; and its kind
        self.entries: list[tuple[Any, int]] = [
            (None, HIDDEN_KIND),
            (None, HIDDEN_KIND),
            (None, TRANSPARENT_KIND),
            (None, HIDDEN_KIND),
        ]

    # ------------------------------------------------------------------------------------------------ while recording

    def number_of_code(self, code: CodeType) -> int:
        """The number of a Python function, or MODULE."""
        number = self.numbers.get(id(code))
        return self._number_of_equal_code(code) if number is None else number

    def _number_of_equal_code(self, code: CodeType) -> int:
        # a program that compiles the same text again and again makes equal code objects: only the first is kept
        key = (code.co_filename, code)
        number = self.codes.get(key)
        if number is None:
            number = self.codes[key] = self.numbers[id(code)] = self._new_code(code)
        return number

    def keeps_code(self, code: CodeType) -> bool:
        """Whether this code object, not only an equal one, lives as long as the recording: no other gets its address."""
        return id(code) in self.numbers

    def _new_code(self, code: CodeType) -> int:
        path = code.co_filename
        if path == _MODULE_FILE and code.co_name == "__call__":
            self.module_code = code
            return MODULE
        if path in _OVERRIDES:
            return CALLBACK
        if path.startswith(_RECORDER_FILES):
            return RECORDER
        is_hidden = path.startswith(_HIDDEN_FILES) and not path.startswith(_SHOWN_FILES)
        if self.modules_only or is_hidden:
            return HIDDEN
        in_library = path.startswith(_LIBRARIES)
        return self._new_number((code, code.co_firstlineno), LIBRARY_KIND if in_library else SHOWN_KIND)

    def _new_number(self, text: Any, kind: int) -> int:
        return append_numbered(self.entries, (text, kind))

    def number_of_frame(self, frame: FrameType) -> int:
        """The number of the function of a frame, one for each module."""
        number = self.number_of_code(frame.f_code)
        return self.number_of_module(frame.f_locals["self"]) if number == MODULE else number

    def number_of_running(self, frame: FrameType) -> int:
        """The number of a function that runs already when tracing begins: its name shows the current line."""
        number = self.number_of_frame(frame)
        text, kind = self.entries[number]
        if text is None or text[0].__class__ is not CodeType:
            return number
        key = (frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno)
        if key not in self.running:
            self.running[key] = self._new_number(key, kind)
        return self.running[key]

    def number_of_module(self, module: Any) -> int:
        """The number of the calls of a module."""
        entry = self.modules.get(id(module))
        if entry is None or entry[0]() is not module:
            name = type(module).__name__
            count = next(self.module_counts.setdefault(name, itertools.count()))
            entry = self.modules[id(module)] = (weakref.ref(module), name, count)
            if self.on_new_module is not None:
                self.on_new_module(module, module_frame(name, count))
        key = entry[1], entry[2]
        number = self.module_numbers.get(key)
        if number is None:
            number = self.module_numbers[key] = self._new_number(key, SHOWN_KIND)
        return number

    def number_of_c_function(self, function: Any) -> int:
        """The number of a function that is written in C."""
        owner = getattr(function, "__self__", None)
        kind = type(owner)  # not `owner.__class__`, which an object may compute
        is_method = owner is not None and kind is not ModuleType
        # the key of a method must not keep its object alive; all objects of a class share one name, without the address that repr shows
        key = (function.__name__, kind) if is_method else function
        number = self.c_functions.get(key)
        if number is None:
            text = f"<built-in function {function.__name__}>"
            if is_method:
                text = f"<built-in method {function.__name__} of {kind.__name__} object>"
            is_own = is_method and str(kind.__module__).startswith(__package__)  # the compiled core's
            is_hidden = self.modules_only or is_own or function is sys.setprofile
            number = HIDDEN if is_hidden else self._new_number(text, LIBRARY_KIND)
            self.c_functions[key] = number
        return number

    # ------------------------------------------------------------------------------------------------ after the stop

    def called_modules(self) -> list[Any]:
        """The modules that were called and still exist."""
        return [module for reference, _, _ in self.modules.values() if (module := reference()) is not None]

    def names(self) -> tuple[tuple[str, ...], np.ndarray]:
        """By number: the name that is shown, and the module's number, -1 for functions."""
        cut = prefixes()
        named = [_named(text, cut) for text, _ in self.entries]
        return tuple([name for name, _ in named]), np.array([module for _, module in named], np.int64)

    def described(self, first: int) -> list[tuple[Any, ...]]:
        """Of each function from a number on: its name, its module's number, its kind, whether it is written in C, and where its lines
        begin in its bytecode."""
        cut = prefixes()
        entries: list[tuple[Any, ...]] = []
        for number, (text, kind) in enumerate(self.entries[first:], first):
            lines = self.lines_of(number)
            places = (None, None) if lines is None else (lines[0].tolist(), lines[1].tolist())
            entries.append((*_named(text, cut), kind, text.__class__ is str, *places))
        return entries

    def are_c_functions(self) -> np.ndarray:
        """By number: whether it is a function written in C."""
        return np.array([text.__class__ is str for text, _ in self.entries])

    def kinds(self) -> np.ndarray:
        """By number: its kind."""
        return np.array([kind for _, kind in self.entries], np.int8)

    def lines_of(self, number: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Where lines begin in the bytecode that runs in a call with this number, and those lines."""
        text, _ = self.entries[number]
        if text is None or text.__class__ is str:
            return None
        code = self.module_code if text[0].__class__ is str else text[0]
        if code is None:
            return None
        begins, lines = np.array([(begin, at or 0) for begin, _, at in code.co_lines()], np.int64).T
        return begins, lines


def _named(text: Any, cut: tuple[str, ...]) -> tuple[str, int]:
    """The name that is shown of an entry, and the module's number, -1 for functions."""
    if text is None or text.__class__ is str:
        return text or "", -1
    if text[0].__class__ is str:
        return module_frame(*text), text[1]
    return f"{shortened(text[0].co_filename, cut)}({text[1]}): {text[0].co_name}", -1


def prefixes() -> tuple[str, ...]:
    """The folders that imports come from, longest first."""
    folders = {os.path.join(os.path.abspath(p or os.curdir), "") for p in sys.path}
    return tuple(sorted(folders, key=len, reverse=True))


def shortened(path: str, cut: tuple[str, ...]) -> str:
    """A file's path without the folder that it was imported from."""
    for prefix in cut:
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path
