"""Warnings that are given once in a process, as torch gives them."""

from __future__ import annotations

import warnings

_given: set[str] = set()


def warn_once(text: str, stacklevel: int = 3) -> None:
    """A UserWarning the first time this text comes."""
    if text not in _given:
        _given.add(text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)
