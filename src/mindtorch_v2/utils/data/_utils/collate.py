"""Collating: a list of samples in, one batch of the same structure out. For tensors, arrays, numbers, strings
and containers.
"""

from __future__ import annotations

import collections.abc
import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import mindtorch_v2 as torch

np_str_obj_array_pattern = re.compile(r"[SaUO]")

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

_FnMap = dict[Any, Callable[..., Any]]


def default_convert(data: Any) -> Any:
    """Convert NumPy arrays and numbers to tensors, in containers too; everything else is unchanged."""
    if isinstance(data, torch.Tensor):
        return data
    if type(data).__module__ == "numpy" and not isinstance(data, (np.str_, np.bytes_)):
        if isinstance(data, np.ndarray) and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(item) for item in data])
    return data


def collate(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Collate with the functions of `collate_fn_map` for single values; containers are traversed."""
    elem = batch[0]
    elem_type = type(elem)
    if collate_fn_map is not None:
        function = collate_fn_map.get(elem_type)
        if function is None:
            function = next((fn for kind, fn in collate_fn_map.items() if isinstance(elem, kind)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, collections.abc.Mapping):
        collated = {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in elem}
        return _mapping_like(elem, collated)
    if _is_namedtuple(elem):
        return elem_type(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(elem, collections.abc.Sequence):
        length = len(elem)
        if not all(len(sample) == length for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns if isinstance(elem, tuple) else _sequence_like(elem, columns)
    raise TypeError(default_collate_err_msg_format.format(elem_type))


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _mapping_like(model: Any, content: dict[Any, Any]) -> Any:
    """`content` in a mapping of the model's class; in a plain dict if that class cannot be filled."""
    try:
        if isinstance(model, collections.abc.MutableMapping):
            # a copy, because the class may have further state: a default factory, attributes
            mapping = copy.copy(model)
            mapping.update(content)
            return mapping
        return type(model)(content)  # type: ignore[call-arg]
    except TypeError:
        return content


def _sequence_like(model: Any, content: list[Any]) -> Any:
    """`content` in a sequence of the model's class; in a plain list if that class cannot be filled."""
    if type(model) is list:
        return content
    try:
        if isinstance(model, collections.abc.MutableSequence):
            sequence = copy.copy(model)
            for i, item in enumerate(content):
                sequence[i] = item
            return sequence
        return type(model)(content)  # type: ignore[call-arg]
    except TypeError:
        return content


def collate_tensor_fn(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Stack tensors."""
    elem = batch[0]
    if elem.is_nested:
        raise RuntimeError(
            "Batches of nested tensors are not currently supported by the default collate_fn; please "
            "provide a "
            "custom collate_fn to handle them appropriately."
        )
    if elem.layout is not torch.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please "
            "provide a "
            "custom collate_fn to handle them appropriately."
        )
    return torch.stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Stack arrays into a tensor."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([torch.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Make a tensor from NumPy numbers, with their dtype."""
    return torch.as_tensor(np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Make a float64 tensor from Python floats."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Make a tensor from Python integers."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _FnMap | None = None) -> Any:
    """Return strings and bytes unchanged."""
    return batch


default_collate_fn_map: _FnMap = {
    torch.Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Collate samples: tensors are stacked, numbers become tensors, containers keep their structure."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
