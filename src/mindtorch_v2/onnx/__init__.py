"""torch.onnx: raises on export, because no graph is captured here."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export", "OnnxExporterError"]


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


class OperatorExportTypes(IntEnum):
    """How ops without an ONNX equivalent were exported by TorchScript's exporter."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(IntEnum):
    """ONNX's numbers of element types."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class ONNXProgram:
    """An exported model; cannot be built."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise OnnxExporterError("torch.onnx.ONNXProgram: this library exports no models")


_symbolics: dict[tuple[str, int], Any] = {}  # what packages register for an exporter


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Keep an exporter's rule for an op; `export` raises before any rule is used."""
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget an exporter's rule for an op."""
    _symbolics.pop((symbolic_name, opset_version), None)


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(model: Any, args: tuple[Any, ...] = (), f: Any = None, **options: Any) -> NoReturn:
    """Raises: exporting needs a captured graph, and this library runs eagerly only."""
    raise OnnxExporterError(
        "torch.onnx.export is not supported: this library runs eagerly and captures no graph; "
        "save the state_dict with torch.save and export it with torch"
    )
