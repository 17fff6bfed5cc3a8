"""torch.fx.passes.shape_prop: run a graph on inputs and note each value's shape and dtype in `node.meta`."""

from __future__ import annotations

from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["TensorMetadata", "ShapeProp"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: torch.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: torch.Tensor, include_contiguity: bool = True) -> TensorMetadata:
    memory_format = None
    if include_contiguity:
        candidates = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
        memory_format = next((f for f in candidates if _is_contiguous(result, f)), None)
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        tuple(result.stride()),
        memory_format,
        result.is_quantized,
        {},
    )


def _is_contiguous(tensor: torch.Tensor, memory_format: torch.memory_format) -> bool:
    n_dims = {torch.channels_last: 4, torch.channels_last_3d: 5}.get(memory_format, tensor.dim())
    return tensor.dim() == n_dims and tensor.is_contiguous(memory_format=memory_format)


class ShapeProp(Interpreter):
    """Runs the graph: `node.meta["tensor_meta"]` and `["type"]` are set on the way."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError(
                "ShapeProp: this library has no fake tensors; shapes come from a real run"
            )

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found_tensor = False

        def metadata_of(value: Any) -> Any:
            nonlocal found_tensor
            if isinstance(value, torch.Tensor):
                found_tensor = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, metadata_of)
        if found_tensor:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run on these inputs; the graph's result."""
        return super().run(*args)
