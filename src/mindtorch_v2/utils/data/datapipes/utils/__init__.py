"""What ready-made pipes share: files, columns, decoders."""

from __future__ import annotations

from . import common, decoder, snapshot

__all__ = ["common", "decoder", "snapshot"]
