"""functorch.compile: the convention of calls with one list. What compiles raises: there is no compiler."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_function
from ..aot_autograd import make_boxed_func

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "make_boxed_compiler",
    "make_boxed_func",
    "memory_efficient_fusion",
    "nop",
]

_REASON = "nothing is compiled here; call the function or module itself"
aot_function: Any = refused_function("functorch.compile", "aot_function", _REASON)
aot_module: Any = refused_function("functorch.compile", "aot_module", _REASON)
aot_module_simplified: Any = refused_function("functorch.compile", "aot_module_simplified", _REASON)
make_boxed_compiler: Any = refused_function("functorch.compile", "make_boxed_compiler", _REASON)
memory_efficient_fusion: Any = refused_function("functorch.compile", "memory_efficient_fusion", _REASON)


def nop(fx_g: Any, _: Any) -> Any:
    """The compiler that returns its graph."""
    return fx_g
