"""Data pipes: datasets that are chained by method calls. Ready-made ones are in `iter` and `map`."""

from __future__ import annotations

from . import _decorator, _hook_iterator, datapipe, iter, map, utils

__all__ = ["_decorator", "_hook_iterator", "datapipe", "iter", "map", "utils"]
