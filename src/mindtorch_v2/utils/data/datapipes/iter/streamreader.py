"""A pipe that reads streams."""

from __future__ import annotations

from collections.abc import Iterator
from io import IOBase
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[tuple]):
    """Labels with the data read from their streams, in chunks of `chunk` bytes or at once."""

    def __init__(self, datapipe: IterDataPipe[tuple[str, IOBase]], chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for label, stream in self.datapipe:
            while True:
                data = stream.read(self.chunk)
                if not data:
                    stream.close()
                    break
                yield label, data
