"""Programs that are run as `python` would run them: a file or a module in, its code and namespace out; and how it ended."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pkgutil
import signal
import sys
import threading
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_RUNNERS = {__file__}  # files whose frames a program's traceback does not begin with


def hide_frames_of(file: str) -> None:
    """Leave the frames of a file that runs programs out of their tracebacks."""
    _RUNNERS.add(file)


class ProgramError(Exception):
    """The program does not exist or cannot be read."""


@dataclass(frozen=True)
class Program:
    """A program: a file (or a directory or zip file with a __main__.py), or with `module` a module, as for `python -m`."""

    target: str
    arguments: Sequence[str] = ()
    module: bool = False

    @property
    def name(self) -> str:
        """A short name, for files."""
        if self.module:
            return self.target.rpartition(".")[2]
        return os.path.splitext(os.path.basename(os.path.normpath(self.target)))[0]


def prepared(program: Program) -> tuple[types.CodeType, dict[str, Any]]:
    """The program's code, and the namespace of a new `__main__`. Sets sys.argv and sys.path[0] as `python` does."""
    sys.argv[:] = [program.target, *program.arguments]
    if program.module:
        _first_on_path(os.getcwd())
        spec = _module_spec(program.target)
        return _from_spec(spec)
    importer = pkgutil.get_importer(program.target)
    if importer is not None:  # a directory or a zip file
        _first_on_path(program.target)
        main_spec = importer.find_spec("__main__")
        if main_spec is None:
            raise ProgramError(f"{program.target}: has no __main__.py; expected a Python program")
        return _from_spec(main_spec)
    _first_on_path(os.path.dirname(os.path.realpath(program.target)))
    try:
        with open(program.target, "rb") as stream:
            source = stream.read()
    except OSError as error:
        raise ProgramError(f"{program.target}: cannot be read: {error.strerror}") from error
    file = os.path.abspath(program.target)
    main = _new_main(file, None, None)
    main["__loader__"] = importlib.machinery.SourceFileLoader("__main__", file)
    return _compiled(source, file), main


def _module_spec(name: str) -> importlib.machinery.ModuleSpec:
    """The spec of a module, or of a package's __main__."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError, AttributeError) as error:
        raise ProgramError(f"there is no module {name}: {error}") from error
    if spec is None:
        raise ProgramError(f"there is no module {name} that can be run")
    return spec


def _from_spec(spec: importlib.machinery.ModuleSpec) -> tuple[types.CodeType, dict[str, Any]]:
    loader: Any = spec.loader
    try:
        code = loader.get_code(spec.name)
    except SyntaxError as error:
        raise SystemExit(reported(error)[0]) from None
    if code is None:
        raise ProgramError(f"{spec.name}: has no Python code")
    origin = spec.origin or spec.name
    sys.argv[0] = origin
    main = _new_main(origin, spec, spec.parent)
    main["__loader__"], main["__cached__"] = loader, spec.cached
    return code, main


def _new_main(file: str, spec: Any, package: str | None) -> dict[str, Any]:
    """Replace `__main__`, where pickle and multiprocessing look for the program, by an empty module."""
    main = types.ModuleType("__main__")
    main.__file__, main.__spec__, main.__package__ = file, spec, package
    main.__dict__.update(__builtins__=__builtins__, __annotations__={}, __cached__=None)
    sys.modules["__main__"] = main
    return main.__dict__


def _compiled(source: bytes, file: str) -> types.CodeType:
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise SystemExit(reported(error)[0]) from None


def _first_on_path(directory: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [directory]


def join_threads() -> None:
    """Wait for the program's threads, as the interpreter does at its end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def reported(error: BaseException) -> tuple[int, int]:
    """Exit code and signal for an exception of the program, which is printed as the interpreter does."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0, 0
        print(error.code, file=sys.stderr)  # noqa: T201
        return 1, 0
    _show(error)
    return (130, signal.SIGINT) if isinstance(error, KeyboardInterrupt) else (1, 0)


def ending(error: BaseException) -> str:
    """Why a recording ended, for people: by this exception."""
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r})"
    if isinstance(error, KeyboardInterrupt):
        return "signal SIGINT (KeyboardInterrupt)"
    return f"exception {type(error).__name__}: {error}"[:500]


def _show(error: BaseException) -> None:
    """Print the traceback, from the program's own first frame on."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _RUNNERS:
        traceback = traceback.tb_next
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            pass
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
