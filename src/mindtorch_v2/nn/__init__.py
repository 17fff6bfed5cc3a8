"""torch.nn: modules, parameters, and the packages around them."""

# ruff: noqa: F401, I001  the names of this package are imports; modules come before functional

from __future__ import annotations

from typing import Any

from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .modules import *  # noqa: F403  every layer, by modules.__all__
from . import _reduction, attention, common_types, functional, grad, init, modules, parallel, parameter, utils
from .parallel import DataParallel


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The device, dtype and memory_format among a module's keyword arguments; anything else raises."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - simple - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = kwargs[key]
    return result
