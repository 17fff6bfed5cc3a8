"""torch.distributed.tensor.placement_types: values that say how a tensor lies on a mesh of processes.

Programs build and compare them in tables of plans; tensors themselves are not spread over processes here (see DTensor).
"""

from __future__ import annotations

import operator
from typing import ClassVar, SupportsIndex

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What one dimension of a mesh does with a tensor: shards it, replicates it, or holds partial results of it."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is sharded, on dimension `dim` if that is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether every process holds the whole tensor."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether every process holds a part of a reduction, by `reduce_op` if that is given."""
        return False


class Replicate(Placement):
    """Every process holds the whole tensor."""

    def is_replicate(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash(Replicate)

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Shard(Placement):
    """Every process holds one chunk of the tensor along dimension `dim`."""

    def __init__(self, dim: SupportsIndex) -> None:
        self._dim = operator.index(dim)

    @property
    def dim(self) -> int:
        """The dimension of the tensor that is cut."""
        return self._dim

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self._dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """Length and start of the chunk of process `rank` where a dimension is cut as `torch.chunk` cuts it."""
        chunk = -(-curr_local_size // num_chunks)
        start = min(chunk * rank, curr_local_size)
        return min(chunk, curr_local_size - start), start

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and self._dim == other._dim

    def __hash__(self) -> int:
        return hash((Shard, self._dim))

    def __repr__(self) -> str:
        return f"Shard(dim={self._dim})"

    def __str__(self) -> str:
        return f"S({self._dim})"


class _StridedShard(Placement):
    """A shard of a dimension that a mesh dimension further right has cut into `split_factor` pieces before."""

    def __init__(self, dim: SupportsIndex, *, split_factor: SupportsIndex = 1) -> None:
        self._dim = operator.index(dim)
        self._split_factor = operator.index(split_factor)

    @property
    def dim(self) -> int:
        """The dimension of the tensor that is cut."""
        return self._dim

    @property
    def split_factor(self) -> int:
        """The number of pieces that the dimension was cut into before."""
        return self._split_factor

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _StridedShard)
            and self._dim == other._dim
            and self._split_factor == other._split_factor
        )

    def __hash__(self) -> int:
        return hash((_StridedShard, self._dim, self._split_factor))

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self._dim}, sf={self._split_factor})"

    def __str__(self) -> str:
        return f"_S({self._dim}, {self._split_factor})"


class Partial(Placement):
    """Every process holds a tensor that `reduce_op` over the processes makes whole."""

    ALL_REDUCE_OPS: ClassVar[tuple[str, ...]] = ("sum", "avg", "min", "max", "product")
    LINEAR_REDUCE_OPS: ClassVar[tuple[str, ...]] = ("sum", "avg")

    def __init__(self, reduce_op: str | None = None) -> None:
        if reduce_op is not None and not isinstance(reduce_op, str):
            raise TypeError(f"Partial: reduce_op must be a str or None, not {type(reduce_op).__name__}")
        self._reduce_op = "sum" if reduce_op is None else reduce_op

    @property
    def reduce_op(self) -> str:
        """The name of the reduction."""
        return self._reduce_op

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or reduce_op == self._reduce_op

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and self._reduce_op == other._reduce_op

    def __hash__(self) -> int:
        return hash((Partial, self._reduce_op))

    def __repr__(self) -> str:
        return f"Partial({self._reduce_op})"

    def __str__(self) -> str:
        return f"P({self._reduce_op})"
