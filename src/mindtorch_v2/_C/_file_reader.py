"""torch.PyTorchFileReader: the records of a file that torch.save wrote; a path or a file in, bytes out."""

from __future__ import annotations

import os
from typing import Any

from .._archive import Reader


class PyTorchFileReader:
    """Reads the records of an archive by their names."""

    def __init__(self, name_or_buffer: Any) -> None:
        self._own = isinstance(name_or_buffer, (str, os.PathLike))
        self._file = open(name_or_buffer, "rb") if self._own else name_or_buffer  # noqa: SIM115  (open as long as the reader)
        self._reader = Reader(self._file)

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return self._reader.names()

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return name in self._reader

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._reader.read(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A tensor on the bytes of a record."""
        import mindtorch_v2 as torch

        return torch.frombuffer(bytearray(self.get_record(name)), dtype=dtype, count=numel)

    def serialization_id(self) -> str:
        """The number by which torch identifies the content; empty in files without it."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""

    def __del__(self) -> None:
        if getattr(self, "_own", False) and hasattr(self, "_file"):
            self._file.close()
