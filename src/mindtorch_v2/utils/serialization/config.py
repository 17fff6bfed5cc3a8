"""The options of `torch.save` and `torch.load`, read at each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...serialization import LoadEndianness


class save:
    """Options for writing files."""

    compute_crc32: bool = True
    storage_alignment: int = 64


class load:
    """Options for reading files. `mmap_flags`: 2 keeps writes private (MAP_PRIVATE), 1 writes to the file."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = 2


__all__ = ["load", "save"]
