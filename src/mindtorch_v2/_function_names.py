"""The module and name under which torch itself keeps a public function: a function in, `torch._C._nn.gelu` out.

`torch.fx` prints and runs these names, and `__torch_function__` handlers get the arguments of functions that
torch writes in Python in a normal form.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

_PACKAGE = __name__.rpartition(".")[0]

# Functions of torch.nn.functional that are torch's C functions, and where those are.
BUILTINS_OF_NN_FUNCTIONAL = {
    name: f"torch.{name}"
    for name in (
        "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
        "conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu "
        "relu_ rrelu_ selu_ sigmoid tanh threshold_"
    ).split()
} | {
    name: f"torch._C._nn.{name}"
    for name in (
        "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus softshrink"
    ).split()
}  # fmt: skip
BUILTINS_OF_NN_FUNCTIONAL["logsigmoid"] = "torch._C._nn.log_sigmoid"

# Functions of torch that are written in Python, in torch.functional.
PYTHON_FUNCTIONS_OF_TORCH = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum lu meshgrid "
    "norm split stft tensordot unique unique_consecutive unravel_index".split()
)
# Modules whose functions torch binds with the module's name in front: torch.linalg.norm is torch._C._linalg.linalg_norm.
_PREFIXED_MODULES = ("linalg", "fft", "special")


def normal_arguments(function: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a function that torch writes in Python, as its handlers get them.

    Parameters without a default are positional, the others are passed by name, defaults included. A call that does
    not fit the signature is returned as it is: the function itself reports the mistake.
    """
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            if function.__name__ == "einsum" and len(value) == 2 and isinstance(value[1], (list, tuple)):
                value = (value[0], *value[1])  # operands in a list: torch calls itself with them spread
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(value)
        else:
            named[name] = value
    return tuple(positional), named


def named_arguments(function: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The same with every argument passed by name: the initializers of `torch.nn.init`."""
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    return (), dict(bound.arguments)


@functools.cache
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


def python_function_names() -> dict[int, str]:
    """Functions that torch writes in Python: torch's qualified name by the function's id."""
    names: dict[int, str] = {}
    functional = import_module(f"{_PACKAGE}.nn.functional")
    for name, function in vars(functional).items():
        public = not name.startswith("_") and name not in BUILTINS_OF_NN_FUNCTIONAL
        if public and inspect.isfunction(function) and (function.__module__ or "").startswith(_PACKAGE):
            names[id(function)] = f"torch.nn.functional.{name}"
    torch_functional = import_module(f"{_PACKAGE}.functional")
    for name in PYTHON_FUNCTIONS_OF_TORCH:
        function = getattr(torch_functional, name, None)
        if function is not None:
            names[id(function)] = f"torch.functional.{name}"
    return names


@functools.cache
def qualified_names() -> dict[int, str]:
    """torch's qualified name of each public function of this package, by the function's id."""
    torch = import_module(_PACKAGE)
    names = python_function_names()
    functional = import_module(f"{_PACKAGE}.nn.functional")
    for name, place in BUILTINS_OF_NN_FUNCTIONAL.items():
        if hasattr(functional, name):
            names.setdefault(id(getattr(functional, name)), place)
    builtins_of_nn = import_module(f"{_PACKAGE}._C._nn")
    for module_name in _PREFIXED_MODULES:
        module = import_module(f"{_PACKAGE}.{module_name}")
        for name, function in vars(module).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                names.setdefault(id(function), f"torch._C._{module_name}.{module_name}_{name}")
    for name, value in vars(torch).items():
        if inspect.isroutine(value) and not name.startswith("__"):
            names.setdefault(id(value), f"torch.{name}")
    names[id(torch._assert)] = "torch._assert"
    for name in dir(builtins_of_nn):
        names.setdefault(id(getattr(builtins_of_nn, name)), f"torch._C._nn.{name}")
    for name, value in vars(torch.Tensor).items():
        if inspect.isroutine(value):
            names.setdefault(id(value), f"torch.Tensor.{name}")
    return names


def is_builtin(function: Any) -> bool:
    """Whether a function of this package is a built-in function in torch, as `torch.relu` is and `torch.nn.functional.relu` is not."""
    module, _, name = qualified_names().get(id(function), "").rpartition(".")
    return module.startswith("torch._C") or (module == "torch" and name not in PYTHON_FUNCTIONS_OF_TORCH)


def qualified_name(function: Any) -> str:
    """torch's qualified name of a function or class of this package; others under their own module and name."""
    known = qualified_names().get(id(function))
    if known is not None:
        return known
    module = torch_module_name(getattr(function, "__module__", None) or "")
    name = getattr(function, "__name__", type(function).__name__)
    return f"{module}.{name}" if module else name


def torch_module_name(module: str) -> str:
    """The name of a module with this package's name replaced by torch's."""
    if module == _PACKAGE or module.startswith(_PACKAGE + "."):
        return "torch" + module[len(_PACKAGE) :]
    return module
