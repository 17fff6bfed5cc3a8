"""Errors of whole files. All are ValueErrors with one sentence that names the file."""

from __future__ import annotations


class TraceError(ValueError):
    """A file that cannot be opened as a trace."""


class NotATraceError(TraceError):
    """A file of another kind, or an empty one."""


class BrokenTraceError(TraceError):
    """A trace that would have to be repaired, where that is not wanted (`strict=True`)."""


class RefusedTraceError(TraceError):
    """A file that exceeds a limit: it unpacks to far more bytes than it has, or an event in it is too long."""
