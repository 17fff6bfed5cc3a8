# The compiled reader: slices of the text of a trace file in, columns of numbers to its handler out.

from collections.abc import Sequence
from typing import Protocol

from ..arrays import Array

# What the reader calls. Texts are JSON, byte by byte as the file has them; numbers are from 0 on.
class Handler(Protocol):
    # How the events of a category are added, and their kind: as `host`, `runtime`, `frames`, `device`; by `phase`; `ignored`; or by
    # `python`, see `group`.
    def meaning(self, cat: str | None, /) -> tuple[str, int]: ...
    # Of the keys of arguments: whether rare ones are among them, and the places of those that have no column, for ops and for events
    # of devices.
    def layout(self, keys: tuple[str, ...], /) -> tuple[bool, Sequence[int], Sequence[int]]: ...
    def name(
        self, text: str | bytes, /
    ) -> int: ...  # as a str where it holds no escapes; so are the next two that may be
    def thread(self, text: bytes, /) -> int: ...  # of [pid, tid]
    def device_thread(self, text: bytes, /) -> int: ...  # of [pid, tid] of an event of a device
    def inputs(self, text: bytes, /) -> int: ...  # of [concrete inputs, types, strides, dims]
    def stack(self, text: str | bytes, /) -> int: ...
    def extra(self, text: bytes, /) -> int: ...  # of those of an op's arguments that have no column
    def device_extra(self, text: bytes, /) -> int: ...
    def launched_kernel(
        self, text: str | bytes, /
    ) -> int: ...  # of the name of a kernel; a number as of `extra`
    # Events of a category were added.
    def counted(self, cat: str | None, count: int, /) -> None: ...
    # Rows of the table `host`, `frames`, `device` or `memory`; whether all times are no more precise than microseconds.
    def columns(self, table: str, columns: dict[str, Array], coarse: bool, /) -> None: ...
    # Add the events of a category, of which at least one is unusual: a list.
    def group(self, cat: str | None, text: bytes, /) -> None: ...

class Reader:
    # synthetic, allocates: the keys of arguments that mark synthetic events. merged_from: pids from here on are numbers of devices.
    def __new__(cls, handler: Handler, synthetic: str, allocates: str, merged_from: int) -> Reader: ...
    # Add the events of text[:end]; how many they are. None: they are not plainly valid JSON, and none was added.
    def take(self, text: bytes, end: int, /) -> int | None: ...
    # Hand all rows to the handler.
    def flush(self) -> None: ...
