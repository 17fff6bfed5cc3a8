"""What work on a device may raise. Nothing here raises it: programs name these errors to catch them."""

from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


class AcceleratorError(RuntimeError):
    """An accelerator reports a failure."""


for _error in (OutOfMemoryError, AcceleratorError):
    _error.__module__ = "torch"
