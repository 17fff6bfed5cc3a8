"""The arguments of `Module.to` in; device, dtype, non_blocking and memory format out."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ..._dtype import of_python_type

_FORMS = (
    "torch.device device = None, torch.dtype dtype = None, ",
    "torch.dtype dtype, ",
    "Tensor tensor, ",
)
_REST = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Parse `to(device, dtype)`, `to(dtype)` and `to(tensor)` with their options."""
    args = tuple(map(of_python_type, args))  # `to(float)` is `to(torch.float64)`
    options = {name: of_python_type(value) for name, value in kwargs.items()}
    memory_format = options.pop("memory_format", None)
    first = args[0] if args else None
    names: tuple[str, ...]
    if isinstance(first, torch.Tensor) or (not args and "tensor" in options):
        names = ("tensor",)
    elif isinstance(first, torch.dtype):
        names = ("dtype",)
    else:
        names = ("device", "dtype")
    names += ("non_blocking", "copy")
    if len(args) > len(names) or not options.keys() <= set(names[len(args) :]):
        raise TypeError(_invalid_arguments_message(args, kwargs))
    options.update(zip(names, args))
    if not _types_match(options, memory_format):
        raise TypeError(_invalid_arguments_message(args, kwargs))
    if "tensor" in options:
        like = options["tensor"]
        return like.device, like.dtype, options.get("non_blocking", False), memory_format
    device = options.get("device")
    if device is not None and not isinstance(device, torch.device):
        device = torch.device(device)
    return device, options.get("dtype"), options.get("non_blocking", False), memory_format


def _types_match(options: dict[str, Any], memory_format: Any) -> bool:
    return (
        isinstance(options.get("device"), (torch.device, str, int, type(None)))
        and isinstance(options.get("dtype"), (torch.dtype, type(None)))
        and isinstance(options.get("tensor"), (torch.Tensor, type(None)))
        and isinstance(options.get("non_blocking", False), bool)
        and isinstance(options.get("copy", False), bool)
        and isinstance(memory_format, (torch.memory_format, type(None)))
    )


def _invalid_arguments_message(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    got = [_type_text(value) for value in args] + [f"{k}={_type_text(v)}" for k, v in kwargs.items()]
    text = ", ".join(got) + (", " if kwargs else "")
    forms = "".join(f" * ({form}{_REST})\n" for form in _FORMS)
    return f"to() received an invalid combination of arguments - got ({text}), but expected one of:\n{forms}"


def _type_text(value: Any) -> str:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return "Parameter" if kind.__name__ == "Parameter" else "Tensor"
    if isinstance(value, (torch.dtype, torch.device, torch.memory_format)):
        return f"torch.{kind.__name__}"
    return kind.__name__
