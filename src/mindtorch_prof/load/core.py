"""Which core reads files: the compiled reader where it was built, for the slices that it understands; the Python code for the rest.

The compiled reader adds the events of a slice to the columns of a Collector by itself. It asks a `_Handler` for the number of each
text that it has not met before, and gives it the events that it does not add, category by category. The tables are the Collector's
own: both ways give the same numbers to the same texts, and the rows of both stand in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..arrays import Array
from ..core import compiled
from ..trace import ALLOCATES, OP, PYTHON, RUNTIME, SYNTHETIC
from .categories import DEVICE, HOST, category
from .collect import MERGED_FROM, NUMBERED_FLOWS, Collector, places_of_extras

if TYPE_CHECKING:
    from ._reader import Reader

MODULE = "mindtorch_prof.load._reader"


def compiled_reader(collector: Collector) -> SliceReader | None:
    """What reads slices into a collector; None: the Python code does."""
    module = compiled(MODULE)
    if module is None:
        return None
    return SliceReader(collector, module.Reader(_Handler(collector), SYNTHETIC, ALLOCATES, MERGED_FROM))


class SliceReader:
    """Reads slices into a collector. All their rows are in its columns only after `flush`."""

    def __init__(self, collector: Collector, reader: Reader) -> None:
        self._collector, self._reader = collector, reader
        self.flush = reader.flush

    def take(self, text: bytes, end: int) -> int | None:
        """Add the events of text[:end], and give their number; None: none was added, they have to be parsed in Python."""
        count = self._reader.take(text, end)
        self._collector.count += count or 0
        return count


class _Handler:
    """What the compiled reader calls; see _reader.pyi. Texts are JSON."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def meaning(self, cat: str | None) -> tuple[str, int]:
        if cat in NUMBERED_FLOWS:
            return "ignored", 0
        meaning = category(cat)
        if meaning is None:
            return "phase", OP
        where, kind = meaning
        if where == DEVICE:
            return "device", kind
        if where != HOST:
            return "python", kind
        return {PYTHON: "frames", RUNTIME: "runtime"}.get(kind, "host"), kind

    def layout(self, keys: tuple[str, ...]) -> tuple[bool, list[int], list[int]]:
        return places_of_extras(keys)

    def name(self, text: str | bytes) -> int:
        return self._collector.names[_decoded(text)]

    def thread(self, text: bytes) -> int:
        pid, tid = orjson.loads(text)
        return self._collector.threads[pid, tid]

    def device_thread(self, text: bytes) -> int:
        pid, tid = orjson.loads(text)
        return self._collector.device_thread((pid, tid))

    def inputs(self, text: bytes) -> int:
        return self._collector.inputs[orjson.dumps(orjson.loads(text))]

    def stack(self, text: str | bytes) -> int:
        return self._collector.stacks[_decoded(text)]

    def extra(self, text: bytes) -> int:
        return self._collector.extra_number(orjson.loads(text))

    def device_extra(self, text: bytes) -> int:
        return self._collector.device_extra_number(orjson.loads(text))

    def launched_kernel(self, text: str | bytes) -> int:
        return self._collector.launched_kernel_number(_decoded(text))

    def counted(self, cat: str | None, count: int) -> None:
        self._collector.count_category(cat or "", count)

    def columns(self, table: str, columns: dict[str, Array], coarse: bool) -> None:
        getattr(self._collector, table).add_columns(columns, coarse)

    def group(self, cat: str | None, text: bytes) -> None:
        self._collector.add_group(cat, orjson.loads(text))


def _decoded(text: str | bytes) -> str:
    """A text, from its JSON where it holds escapes."""
    if isinstance(text, str):
        return text
    decoded: str = orjson.loads(text)
    return decoded
