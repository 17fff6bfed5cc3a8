"""torch.types: aliases for annotations."""
# ruff: noqa: PYI042, PYI047  the names are torch's, for other modules to import

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from . import _device as _device_module
from . import _dtype as _dtype_module
from ._size import Size
from ._storage import UntypedStorage
from ._tensor import Tensor
from .storage import TypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

_bool: TypeAlias = builtins.bool
_bytes: TypeAlias = builtins.bytes
_complex: TypeAlias = builtins.complex
_float: TypeAlias = builtins.float
_int: TypeAlias = builtins.int
_str: TypeAlias = builtins.str
_device: TypeAlias = _device_module.device
_dtype: TypeAlias = _dtype_module.dtype
_layout: TypeAlias = _dtype_module.layout

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int]

Number: TypeAlias = int | float | bool
_Number = (int, float, bool)  # for isinstance

FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = _device | str | int | None

# sizes are plain integers here: nothing is traced symbolically
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool

Storage: TypeAlias = UntypedStorage | TypedStorage
