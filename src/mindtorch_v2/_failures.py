"""Exceptions of devices, which nothing here raises: they exist so that programs can catch them."""

from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


class AcceleratorError(RuntimeError):
    """An accelerator reports a failure."""


for _error in (OutOfMemoryError, AcceleratorError):
    _error.__module__ = "torch"
