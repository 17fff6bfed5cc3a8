"""torch.distributed.checkpoint.hf_storage: names only; files of safetensors are written and read by the package safetensors itself."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class

_REASON = "use safetensors.torch.save_file on one rank, and load_file on each"
HuggingFaceStorageReader: Any = refused_class(
    "torch.distributed.checkpoint.hf_storage", "HuggingFaceStorageReader", _REASON
)
HuggingFaceStorageWriter: Any = refused_class(
    "torch.distributed.checkpoint.hf_storage", "HuggingFaceStorageWriter", _REASON
)

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]
