"""Pipes that call a function for each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """Applies a function to each item, or to some columns of it; the result goes to `output_col` or replaces
    the first of them.
    """

    def __init__(
        self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(fn)
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        if input_col is not None:
            validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        is_list = isinstance(self.input_col, (list, tuple))
        columns = tuple(self.input_col) if is_list else (self.input_col,)
        result = self.fn(*[data[column] for column in columns])
        data_type = type(data)
        data = list(data) if isinstance(data, tuple) else data.copy()
        if self.output_col is None:
            data[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del data[column]
        elif self.output_col == -1 and isinstance(data, list):
            data.append(result)
        else:
            data[self.output_col] = result
        return tuple(data) if issubclass(data_type, tuple) else data

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        if hasattr(self.datapipe, "__len__"):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Collates batches into single items, by `default_collate` or by a function."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        conversion: Callable[..., Any] | dict[str | Any, Callable | Any] | None = default_collate,
        collate_fn: Callable | None = None,
    ) -> None:
        if collate_fn is not None:
            super().__init__(datapipe, fn=collate_fn)
        elif callable(conversion):
            super().__init__(datapipe, fn=conversion)
        else:
            raise TypeError("conversions by column are for data frames, which these pipes do not have")
