"""torch.onnx: raises on export, because no graph is captured here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export", "OnnxExporterError"]


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(model: Any, args: tuple[Any, ...] = (), f: Any = None, **options: Any) -> NoReturn:
    """Raises: exporting needs a captured graph, and this library runs eagerly only."""
    raise OnnxExporterError(
        "torch.onnx.export is not supported: this library runs eagerly and captures no graph; "
        "save the state_dict with torch.save and export it with torch"
    )
