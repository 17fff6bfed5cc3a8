"""What can be wrong with a file as a whole. All are ValueErrors with one sentence that names the file."""

from __future__ import annotations


class TraceError(ValueError):
    """A file that gives no trace."""


class NotATraceError(TraceError):
    """A file of another kind, or an empty one."""


class BrokenTraceError(TraceError):
    """A trace that would have to be repaired, where that is not wanted (`strict=True`)."""


class RefusedTraceError(TraceError):
    """A file that exceeds a limit: it unpacks to far more than it is, or one event in it never ends."""
