"""torch.jit: TorchScript's names. Functions and modules run eagerly; nothing is compiled."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn

from .._compile import warn_eager
from .._tensor import Tensor
from ..futures import Future

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


def _overload(func: Any) -> Any:
    """Declare a signature of the function of the same name that follows: for TorchScript's compiler, which is not there."""
    return func


def _overload_method(func: Any) -> Any:
    """The same for a method."""
    return func


class Error(Exception):
    """An error inside a scripted function; functions run eagerly here and raise their own."""


class ScriptWarning(Warning):
    """A warning about scripting."""


class TracerWarning(Warning):
    """A warning about tracing."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Suppress warnings about the library itself; there are none."""


class Attribute(NamedTuple):
    """A value with its TorchScript type."""

    value: Any
    type: Any


class ScriptFunction:
    """A compiled function, for isinstance checks; `script` and `trace` return the function itself."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("a ScriptFunction cannot be built: this library has no compiler")


class ScriptMethod:
    """A compiled method, for isinstance checks."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("a ScriptMethod cannot be built: this library has no compiler")


def __getattr__(name: str) -> Any:
    if name in ("ScriptModule", "RecursiveScriptModule", "TracedModule", "TopLevelTracedModule"):
        from . import _module

        return getattr(_module, name)
    if name == "_get_trace_graph":
        from . import _trace_graph

        return _trace_graph._get_trace_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_scripting() -> bool:
    """Whether code runs as TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether `_get_trace_graph` is calling this code; `trace` calls nothing."""
    tracer = sys.modules.get(f"{__name__}._trace_graph")
    return tracer is not None and tracer.state is not None


def script(
    obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """Return `obj` unchanged: a function, module, class, list or dict runs eagerly."""
    if not callable(obj) and not builtins.isinstance(obj, (list, dict)):
        raise TypeError(f"{type(obj)} is a built-in class")
    warn_eager("torch.jit.script")
    return obj


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-05,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Call `func` with the examples, as tracing does (random numbers are drawn, buffers are updated), and return it unchanged.

    It runs eagerly, for inputs of any shape.
    """
    warn_eager("torch.jit.trace")
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    elif example_inputs is not None:
        func(*_arguments(example_inputs))
    else:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    return func


def _arguments(example_inputs: Any) -> tuple:
    """Examples as positional arguments: one tensor or dict is the only argument."""
    is_single = builtins.isinstance(example_inputs, (Tensor, dict))
    return (example_inputs,) if is_single else tuple(example_inputs)


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-05,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Call the methods of `mod` that `inputs` names with their examples, as tracing does, and return it unchanged."""
    warn_eager("torch.jit.trace_module")
    for name, examples in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        if example_inputs_is_kwarg:
            method(**examples)
        else:
            method(*_arguments(examples))
    return mod


def script_method(fn: Callable) -> Callable:
    """Return `fn` unchanged."""
    warn_eager("torch.jit.script_method")
    return fn


def script_if_tracing(fn: Callable) -> Callable:
    """Return `fn` unchanged: nothing is ever traced."""
    return fn


_script_if_tracing = script_if_tracing


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that TorchScript leaves to Python; the mark has no effect. Used bare or with arguments."""
    if callable(drop):
        return drop
    if drop or kwargs.get("drop_on_export"):
        warnings.warn(
            "ignore(True) has been deprecated. TorchScript will now drop the function call on compilation. "
            "Use torch.jit.unused now. {}",
            category=FutureWarning,
            stacklevel=2,
        )
    return lambda fn: fn


def unused(fn: Callable) -> Callable:
    """Mark a function that TorchScript leaves out; the mark has no effect."""
    return fn


def export(fn: Callable) -> Callable:
    """Mark a method that TorchScript includes; the mark has no effect."""
    return fn


def interface(obj: Any) -> Any:
    """Mark a class as a TorchScript interface; the mark has no effect."""
    return obj


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return `the_value`; the type is for TorchScript."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` has a type, checking elements of containers such as `list[int]`; a tuple means any of
    several.
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, option) for option in target_type)
    origin, arguments = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        if target_type in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
            raise RuntimeError(
                f"Attempted to use {target_type} without a contained type. Please add a contained type, e.g. "
                f"{getattr(target_type, '__name__', target_type)}[int]"
            )
        return builtins.isinstance(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, type(None) if option is None else option) for option in arguments)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, arguments[0]) and isinstance(v, arguments[1]) for k, v in obj.items())
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is ...):
        return len(obj) == len(arguments) and all(map(isinstance, obj, arguments))
    return all(isinstance(item, arguments[0]) for item in obj)


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """Run `func` immediately; returns a complete future with its result."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The result of `fork`."""
    return future.wait()


_fork, _wait = fork, wait


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Return `mod` unchanged, if it is in evaluation mode."""
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() first"
        )
    warn_eager("torch.jit.freeze")
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """Return `mod` unchanged."""
    warn_eager("torch.jit.optimize_for_inference")
    return mod


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises: there is no TorchScript program to save."""
    raise RuntimeError(
        "torch.jit.save: there is no TorchScript program to save, because nothing is compiled; "
        "use torch.save(module.state_dict(), f)"
    )


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> NoReturn:
    """Raises: TorchScript programs cannot be run."""
    if builtins.isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    raise RuntimeError(
        "torch.jit.load: a TorchScript archive holds a program, which this library cannot run; "
        "save the state_dict with torch.save and load that"
    )


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context manager: enable or disable optimisation of TorchScript; no effect."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Context manager: another fuser; no effect."""
    yield


class strict_fusion:
    """Context manager: TorchScript must fuse the block; no effect in eager mode, as in torch."""

    def __init__(self) -> None:
        warn_eager("torch.jit.strict_fusion")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


_fusion_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Set how TorchScript programs are specialised; returns the previous setting. No effect."""
    global _fusion_strategy
    before, _fusion_strategy = _fusion_strategy, strategy
    return before


_onednn_fusion = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Set whether TorchScript uses oneDNN's fusion. No effect."""
    global _onednn_fusion
    _onednn_fusion = enabled


def onednn_fusion_enabled() -> bool:
    """Whether oneDNN's fusion is enabled."""
    return _onednn_fusion
