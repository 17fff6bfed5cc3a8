"""Nested state dicts as flat ones: `{"optim": {"lr": 1}}` and `{"optim.lr": 1}`, with the path of each entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._tensor import Tensor

Path = tuple[Any, ...]


def _has_entries(value: Any) -> bool:
    """Whether a list is opened: if a tensor or a mapping is somewhere in it."""
    return any(
        isinstance(item, (Tensor, Mapping)) or (isinstance(item, list) and _has_entries(item))
        for item in value
    )


def _walk(path: Path, value: Any) -> Any:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk((*path, str(key)), item)
    elif isinstance(value, list) and _has_entries(value):
        for i, item in enumerate(value):
            yield from _walk((*path, i), item)
    else:
        yield path, value


def flatten_state_dict(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """The entries by their joined paths, and the paths."""
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for path, value in _walk((), state_dict):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path
    return flat, paths


def set_element(root: Any, path: Path, value: Any) -> None:
    """Put a value at a path; dicts and lists on the way are made as needed. As in torch, keys of paths are texts: 0 becomes "0"."""
    container = root
    for key, following in zip(path, (*path[1:], None)):
        leaf: Any = value if following is None else ([] if isinstance(following, int) else {})
        if isinstance(container, list):
            container.extend([None] * (key + 1 - len(container)))
            missing = container[key] is None
        else:
            missing = key not in container
        if following is None or missing:
            container[key] = leaf
        container = container[key]


def unflatten_state_dict(state_dict: Mapping[str, Any], mapping: Mapping[str, Path]) -> dict[str, Any]:
    """The nested dict of a flat one."""
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
