"""Pipes that filter items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """The items for which a function, of them or of some of their columns, returns True."""

    def __init__(self, datapipe: IterDataPipe[Any], filter_fn: Callable, input_col: Any = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(filter_fn)
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def _apply_filter_fn(self, data: Any) -> bool:
        if self.input_col is None:
            return self.filter_fn(data)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*[data[column] for column in self.input_col])
        return self.filter_fn(data[self.input_col])

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            wanted, filtered = self._returnIfTrue(data)
            if wanted:
                yield filtered
            else:
                StreamWrapper.close_streams(data)

    def _returnIfTrue(self, data: Any) -> tuple[bool, Any]:
        wanted = self._apply_filter_fn(data)
        if not isinstance(wanted, bool):
            raise ValueError(
                "Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(wanted)
            )
        return wanted, data
