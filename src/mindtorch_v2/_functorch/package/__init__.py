"""functorch, the package that torch brings beside itself: `torch.func` under its old names, which warn. `as_torch()` serves it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ... import __version__ as __version__
from ... import func as _func
from .._stateless import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combined_state,
    functional_module,
    functional_module_with_buffers,
)

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


def _deprecated(name: str, instead: str, function: Callable[..., Any]) -> Callable[..., Any]:
    text = (
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated as of PyTorch 2.0 "
        f"and will be deleted in a future version of PyTorch >= 2.3. Please use `{instead}` instead; see the PyTorch 2.0 release notes "
        "and/or the `torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def warning_function(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    warning_function.__name__ = warning_function.__qualname__ = name
    return warning_function


vmap = _deprecated("vmap", "torch.vmap", _func.vmap)
grad = _deprecated("grad", "torch.func.grad", _func.grad)
grad_and_value = _deprecated("grad_and_value", "torch.func.grad_and_value", _func.grad_and_value)
vjp = _deprecated("vjp", "torch.func.vjp", _func.vjp)
jvp = _deprecated("jvp", "torch.func.jvp", _func.jvp)
jacrev = _deprecated("jacrev", "torch.func.jacrev", _func.jacrev)
jacfwd = _deprecated("jacfwd", "torch.func.jacfwd", _func.jacfwd)
hessian = _deprecated("hessian", "torch.func.hessian", _func.hessian)
functionalize = _deprecated("functionalize", "torch.func.functionalize", _func.functionalize)
make_functional = _deprecated("make_functional", "torch.func.functional_call", functional_module)
make_functional_with_buffers = _deprecated(
    "make_functional_with_buffers", "torch.func.functional_call", functional_module_with_buffers
)
combine_state_for_ensemble = _deprecated(
    "combine_state_for_ensemble", "torch.func.stack_module_state", combined_state
)
