"""The C allocator: keep freed memory of the size of tensors for the next op instead of returning it to the system each time.

glibc serves blocks above 128 KB by mmap and returns them at once, so every temporary of a megabyte costs its page faults again: an Adam step
on such tensors takes 4.9 ms instead of 2.8. MINDTORCH_KEEP_MALLOC=1 leaves the allocator as it is.
"""

from __future__ import annotations

import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MMAP_BYTES = 32 << 20  # glibc's own upper limit
_TRIM_BYTES = 256 << 20


def tune() -> bool:
    """Raise glibc's limits; False with another C library, or if the user opted out."""
    if not sys.platform.startswith("linux") or os.environ.get("MINDTORCH_KEEP_MALLOC"):
        return False
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES) and mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES))
