"""Tensors whose memory is a mapped file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import function


@function(expose="function")
def from_file(
    filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The first `size` elements of a file. `shared`: writes go to the file, which is created or extended if needed."""
    kind = (dtype or _dtype.Default.dtype)._np
    wanted = size * kind.itemsize
    try:
        with open(
            filename, "r+b" if shared and os.path.exists(filename) else "w+b" if shared else "rb"
        ) as file:
            length = os.fstat(file.fileno()).st_size
            if length < wanted:
                if not shared:
                    raise RuntimeError(
                        f"file <{filename}> size <{length}> is smaller than the required mapping size <{wanted}>"
                    )
                file.truncate(wanted)
            array = (
                np.memmap(file, kind, "r+" if shared else "c", shape=(size,)) if size else np.empty(0, kind)
            )
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {os.strerror(error.errno or 0)} ({error.errno})"
        ) from None
    tensor = _dispatch.wrap(array.view(np.ndarray))
    if requires_grad:
        tensor.requires_grad = True
    return tensor
