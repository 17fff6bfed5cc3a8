"""The options of `torch.save` and `torch.load`: plain values that both read at each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...serialization import LoadEndianness


class save:
    """How files are written."""

    compute_crc32: bool = True
    storage_alignment: int = 64


class load:
    """How files are read. `mmap_flags`: 2 keeps writes to oneself (MAP_PRIVATE), 1 writes to the file."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = 2


__all__ = ["load", "save"]
