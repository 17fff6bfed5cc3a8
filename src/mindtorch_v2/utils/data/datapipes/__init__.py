"""Data pipes: datasets that are chained by method calls.

The base classes and decorators; no ready-made pipes.
"""

from __future__ import annotations

from . import _decorator, datapipe

__all__ = ["_decorator", "datapipe"]
