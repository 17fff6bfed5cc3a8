"""The graph of a pipe: all pipes that it takes items from."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Collection
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[DataPipe, "DataPipeGraph"]]


def _stub_unpickler() -> str:
    return "STUB"


def _referenced_pipes(datapipe: Any, only_datapipe: bool, seen: set[int]) -> list[Any]:
    """The pipes that a pipe refers to: in its pickled form, or only among its attributes."""
    captured: list[Any] = []

    def capture(obj: Any) -> Any:
        if obj is datapipe or id(obj) in seen:
            raise NotImplementedError
        captured.append(obj)
        return _stub_unpickler, ()

    def attributes(state: Any) -> dict[Any, Any]:
        values = (
            state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, tuple) else ()
        )
        pipe_attributes: dict[Any, Any] = {}
        for key, value in values:
            if isinstance(value, (IterDataPipe, MapDataPipe)):
                pipe_attributes[key] = value
            elif isinstance(value, Collection) and not isinstance(value, str):
                pipe_attributes[key] = [
                    item for item in value if isinstance(item, (IterDataPipe, MapDataPipe))
                ]
        return pipe_attributes

    hooks = (
        IterDataPipe.reduce_ex_hook,
        MapDataPipe.reduce_ex_hook,
        IterDataPipe.getstate_hook,
        MapDataPipe.getstate_hook,
    )
    try:
        IterDataPipe.reduce_ex_hook = MapDataPipe.reduce_ex_hook = capture
        if only_datapipe:
            IterDataPipe.getstate_hook = MapDataPipe.getstate_hook = attributes
        pickle.Pickler(io.BytesIO()).dump(datapipe)
    finally:
        (
            IterDataPipe.reduce_ex_hook,
            MapDataPipe.reduce_ex_hook,
            IterDataPipe.getstate_hook,
            MapDataPipe.getstate_hook,
        ) = hooks
    return captured


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The graph of a pipe, from attributes that are pipes or collections of pipes."""
    return _traverse(datapipe, True, set())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """The graph of a pipe, from everything it would be pickled with; `traverse_dps` replaces this."""
    text = (
        "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    )
    if not only_datapipe:
        text += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _traverse(datapipe, bool(only_datapipe), set())


def _traverse(datapipe: Any, only_datapipe: bool, above: set[int]) -> DataPipeGraph:
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in above:
        return {}
    inner = {*above, id(datapipe)}
    found: DataPipeGraph = {}
    for pipe in _referenced_pipes(datapipe, only_datapipe, inner):
        found.update(_traverse(pipe, only_datapipe, inner))
    return {id(datapipe): (datapipe, found)}
