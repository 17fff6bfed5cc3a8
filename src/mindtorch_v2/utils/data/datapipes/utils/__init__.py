"""Helpers of ready-made pipes: files, columns, decoders."""

from __future__ import annotations

from . import common, decoder, snapshot

__all__ = ["common", "decoder", "snapshot"]
