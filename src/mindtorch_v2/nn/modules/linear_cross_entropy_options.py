"""Options of linear_cross_entropy for splitting the batch, and their values for given sizes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import mindtorch_v2 as torch

if TYPE_CHECKING:
    from mindtorch_v2 import device as Device
    from mindtorch_v2 import dtype as DType

__all__ = ["LinearCrossEntropyOptions"]


class _AutoDefault(NamedTuple):
    acc_policy: str
    chunking_method: str


_AUTO_FALLBACK = _AutoDefault("compact", "aspect_ratio:2")
_AUTO_LOW_PRECISION = _AutoDefault("accurate", "aspect_ratio")


def _divisor(method: str) -> int:
    """The n of 'aspect_ratio:n'; 0 if it is not such a name."""
    name, colon, number = method.partition(":")
    if name != "aspect_ratio":
        return 0
    if not colon:
        return 1
    return int(number) if number.isdecimal() else 0


@dataclasses.dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """Chunk size and precision of the chunked linear_cross_entropy."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        method = self.chunking_method
        if method not in (None, "auto") and not _divisor(method):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        dtypes = (None, torch.float16, torch.bfloat16, torch.float32, torch.float64)
        if not any(self.acc_dtype is dtype for dtype in dtypes):
            raise ValueError(
                "acc_dtype must be one of "
                "{None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, "
                f"got {self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    def _compute_batch_chunk_size(
        self, num_batches: int, in_features: int, num_classes: int, method: str | None = None
    ) -> int:
        """The number of rows for which a chunk's logits take about as much memory as the input, over the
        method's n.
        """
        method = self.chunking_method if method is None else method
        if method is None:
            return num_batches
        divisor = _divisor(method)
        if not divisor:
            raise AssertionError(f"unhandled chunking_method: {method!r}")
        parts = -(-num_classes // in_features)
        rows = -(-num_batches // parts)
        power = 1 << (rows - 1).bit_length()
        return min(max(power // divisor, 1), num_batches)

    def _adjust(
        self,
        num_batches: int,
        in_features: int,
        num_classes: int,
        dtype: DType,
        device: Device | None = None,
    ) -> LinearCrossEntropyOptions:
        """The same options with all values decided."""
        low = dtype in (torch.float16, torch.bfloat16)
        default = _AUTO_LOW_PRECISION if low else _AUTO_FALLBACK
        changes: dict[str, Any] = {}
        if self.acc_policy == "auto":
            changes["acc_policy"] = default.acc_policy
        if self.acc_dtype is None:
            changes["acc_dtype"] = torch.float32 if low and self.acc_policy == "auto" else dtype
        method = None if self.batch_chunk_size is not None else self.chunking_method
        if method == "auto":
            method = default.chunking_method
        changes["chunking_method"] = method
        if self.batch_chunk_size is None:
            changes["batch_chunk_size"] = (
                num_batches
                if method is None
                else self._compute_batch_chunk_size(num_batches, in_features, num_classes, method)
            )
        return dataclasses.replace(self, **changes)
