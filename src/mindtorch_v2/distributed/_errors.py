"""The exceptions of torch.distributed."""

from __future__ import annotations


class DistError(RuntimeError):
    """A failure of a distributed program."""


class DistBackendError(DistError):
    """A collective failed."""


class DistNetworkError(DistError):
    """A connection failed."""


class DistStoreError(DistError):
    """A key-value store failed or timed out."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has no value."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
