"""Rules of TorchScript's ONNX exporter that packages build theirs on. There is no exporter, so calling one raises."""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse(name: str) -> NoReturn:
    from . import OnnxExporterError

    raise OnnxExporterError(f"torch.onnx.symbolic_opset11.{name}: this library exports no models")


def select(g: Any, self: Any, dim: Any, index: Any) -> NoReturn:
    """Raises: there is no exporter."""
    _refuse("select")


def squeeze(g: Any, self: Any, dim: Any = None) -> NoReturn:
    """Raises: there is no exporter."""
    _refuse("squeeze")


def unsqueeze(g: Any, self: Any, dim: Any) -> NoReturn:
    """Raises: there is no exporter."""
    _refuse("unsqueeze")
