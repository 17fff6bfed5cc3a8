"""Warnings that are issued once per process, as torch does."""

from __future__ import annotations

import warnings

_given: set[str] = set()


def warn_once(text: str, stacklevel: int = 3) -> None:
    """Issue a UserWarning unless this text was issued before."""
    if text not in _given:
        _given.add(text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)
