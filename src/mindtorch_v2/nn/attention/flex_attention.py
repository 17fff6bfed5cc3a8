"""torch.nn.attention.flex_attention: attention whose scores are changed by a function and masked by another; queries, keys, values in, values out.

The whole matrix of scores is computed, as torch does without a compiler. A score or mask function is called once, with
index tensors of shapes (B, 1, 1, 1), (1, H, 1, 1), (1, 1, Q, 1) and (1, 1, 1, KV) that broadcast to all scores, where torch
maps a function of scalars over them. The block lists of a `BlockMask` are data for a compiled kernel: as in torch
without a compiler, the mask function alone decides.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, NamedTuple, NoReturn, TypedDict

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

__all__ = [
    "BlockMask",
    "flex_attention",
    "AuxOutput",
    "AuxRequest",
    "FlexKernelOptions",
    "create_block_mask",
    "create_mask",
    "or_masks",
    "and_masks",
    "noop_mask",
]

_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30


class AuxRequest(NamedTuple):
    """What `flex_attention` returns besides its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was requested: the log of the sum of exponentials of each row of scores, and the largest score."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of torch's GPU kernels; `flex_attention` takes none of them here."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]


class _ModificationType(Enum):
    """Whether a function changes scores or masks them."""

    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def _get_mod_type(fn: Callable) -> _ModificationType:
    """The kind of function, by its number of positional parameters without defaults."""
    positional = [
        p
        for p in inspect.signature(fn).parameters.values()
        if p.default is inspect.Parameter.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return {5: _ModificationType.SCORE_MOD, 4: _ModificationType.MASK_MOD}.get(
        len(positional), _ModificationType.UNKNOWN
    )


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    return score


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that allows everything."""
    return batch.new_ones(size=(), dtype=torch.bool, device=batch.device)


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """A mask that allows what any of the masks allows."""
    return _combined(mask_mods, torch.logical_or, False)


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """A mask that allows what all of the masks allow."""
    return _combined(mask_mods, torch.logical_and, True)


def _combined(mask_mods: tuple[Any, ...], combine: Callable, start: bool) -> _mask_mod_signature:
    if not all(callable(mask_mod) for mask_mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = torch.full((), start, dtype=torch.bool, device=b.device)
        for mod in mask_mods:
            result = combine(result, mod(b, h, q_idx, kv_idx))
        return result

    return mask_mod


def _indices(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """The index of each dimension, in a shape that broadcasts to all of them."""
    return [
        torch.arange(0, size, device=device).view([-1 if d == place else 1 for d in range(4)])
        for place, size in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """The mask, or the scores of zero as changed, of every query and key."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    indices = _indices(sizes, device)
    kind = _get_mod_type(mod_fn)
    if kind is _ModificationType.SCORE_MOD:
        scores = mod_fn(torch.zeros(sizes, device=device), *indices)
        return torch.where(torch.isneginf(scores.broadcast_to(sizes)), False, True)
    if kind is _ModificationType.MASK_MOD:
        return mod_fn(*indices).broadcast_to(sizes).contiguous()
    raise AssertionError("mod_fn must take 5 positional arguments to change scores, or 4 to mask them")


# ------------------------------------------------------------------------------------------------ block masks


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are set, and the column numbers with those in front."""
    dense = dense.to(torch.int32)
    return (
        dense.sum(-1).to(torch.int32).contiguous(),
        torch.argsort(dense, dim=-1, descending=True, stable=True).to(torch.int32).contiguous(),
    )


def _dense(num_blocks: Tensor, indices: Tensor, columns: int | None = None) -> Tensor:
    """Blocks as 0 and 1, from counts and ordered column numbers."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < num_blocks.unsqueeze(-1)
    width = indices.shape[-1] if columns is None else columns
    result = torch.zeros(*indices.shape[:-1], width + 1, dtype=torch.int32, device=indices.device)
    places = torch.where(listed, indices.to(torch.int64), width)  # what is not listed goes to a spare column
    return result.scatter_(-1, places, 1)[..., :width].contiguous()


def _transposed(num_blocks: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    if num_blocks is None or indices is None:
        return None, None
    return _ordered(_dense(num_blocks, indices).transpose(-2, -1))


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: its indices are those of the whole mask. "
        "Set `mask_mod` of the slice to a function of its own indices."
    )


class BlockMask:
    """A mask as lists of blocks: of each row of blocks, those that need the mask function and those that are allowed whole."""

    _TENSORS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
        "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
    )  # fmt: skip

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: _mask_mod_signature = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for name, one, other in (
            ("full_kv", full_kv_num_blocks, full_kv_indices),
            ("q", q_num_blocks, q_indices),
            ("full_q", full_q_num_blocks, full_q_indices),
        ):
            if (one is None) != (other is None):
                raise AssertionError(f"{name}_num_blocks and {name}_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _mask_mod_signature | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask from the lists of each query block; the lists of each key block are derived."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        queries = full_queries = (None, None)
        if compute_q_blocks:
            queries = _transposed(kv_num_blocks, kv_indices)  # type: ignore[assignment]
            full_queries = _transposed(full_kv_num_blocks, full_kv_indices)  # type: ignore[assignment]
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
            *queries, *full_queries, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The lengths, lists, block size and mask function; `flatten`: without inner tuples."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *(getattr(self, name) for name in self._TENSORS), *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, heads, queries and keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores, without those of batches and heads that are broadcast."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Each block as 1 if any of it is allowed, else 0."""
        blocks = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            blocks = blocks | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return blocks

    def sparsity(self) -> float:
        """The percentage of blocks that are masked whole."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        computed = blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The mask with its lists on a device."""
        lists = [None if (x := getattr(self, n)) is None else x.to(device) for n in self._TENSORS]
        return BlockMask(self.seq_lengths, *lists, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)  # type: ignore[arg-type]

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks."""
        index = index if isinstance(index, tuple) else (index,)
        padded = (*index, *(slice(None),) * (3 - len(index)))
        padded = tuple(
            slice(i + size if i < 0 else i, (i + size if i < 0 else i) + 1) if isinstance(i, int) else i
            for i, size in zip(padded, self.kv_num_blocks.shape)
        )
        whole = self.full_kv_num_blocks is not None
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[padded],
            self.kv_indices[padded],
            self.full_kv_num_blocks[padded] if whole else None,  # type: ignore[index]
            self.full_kv_indices[padded] if whole else None,  # type: ignore[index]
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner of the mask, for shorter sequences."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def crop(num_blocks: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
            if num_blocks is None or indices is None:
                return None, None
            return _ordered(_dense(num_blocks, indices)[..., :rows, :columns])

        num_blocks, indices = crop(self.kv_num_blocks, self.kv_indices)
        full_num_blocks, full_indices = crop(self.full_kv_num_blocks, self.full_kv_indices)
        assert num_blocks is not None
        assert indices is not None
        return BlockMask.from_kv_blocks(
            num_blocks, indices, full_num_blocks, full_indices, self.BLOCK_SIZE, self.mask_mod,
            (new_q_len, new_kv_len), self.q_indices is not None,
        )  # fmt: skip

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of each batch and head: full, partial and empty cells of at most `grid_size`; -1: every block."""
        dense = self.to_dense()
        *batch, rows, columns = dense.shape
        if isinstance(grid_size, int):
            grid_size = (rows, columns) if grid_size == -1 else (grid_size, grid_size)
        step_rows = max(1, math.ceil(rows / grid_size[0]))
        step_columns = max(1, math.ceil(columns / grid_size[1]))
        pictures = []
        places = [()] if not batch else list(torch.ones(*batch).nonzero().tolist())
        for place in places[:limit]:
            blocks = dense[tuple(place)]
            lines = [f"({', '.join(map(str, place))})" if place else ""]
            for row in range(0, rows, step_rows):
                shares = [
                    float(blocks[row : row + step_rows, column : column + step_columns].float().mean())
                    for column in range(0, columns, step_columns)
                ]
                lines.append("".join("██" if share == 1 else "░░" if share > 0 else "  " for share in shares))
            pictures.append("\n".join(lines) + "\n")
        return "\n".join(pictures) + ("\n...\n" if len(places) > limit else "")

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"

    def __repr__(self) -> str:
        shapes = ",\n".join(
            f"    {name}={None if (x := getattr(self, name)) is None else x.shape}" for name in self._TENSORS
        )
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{shapes},\n    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"
        )


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The block mask of a mask function. None for batches or heads: the mask is the same for all."""
    if _get_mod_type(mask_mod) is not _ModificationType.MASK_MOD:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {_get_mod_type(mask_mod)}")
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order is for a GPU kernel")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padding = (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN)
    mask = torch.nn.functional.pad(mask, padding)
    allowed = mask.view(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    full = (
        allowed == size[0] * size[1] if separate_full_blocks else torch.zeros_like(allowed, dtype=torch.bool)
    )
    partial_lists = _ordered((allowed > 0) & ~full)
    full_lists = _ordered(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        *partial_lists, *full_lists, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


def _create_empty_block_mask(query: Tensor, key: Tensor) -> BlockMask:
    """A mask of one block that allows everything."""
    return BlockMask.from_kv_blocks(
        torch.ones([1, 1, 1], dtype=torch.int32, device=query.device),
        torch.zeros([1, 1, 1, 1], dtype=torch.int32, device=query.device),
        BLOCK_SIZE=_LARGE_SPARSE_BLOCK_SIZE,
        seq_lengths=(1, 1),
    )


# -------------------------------------------------------------------------------------------------- attention


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if not (query.dtype == key.dtype == value.dtype):
        raise ValueError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, "
            f"key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, kv_heads = query.size(-3), key.size(-3)
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % kv_heads != 0:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={kv_heads}."
        )
    if query.size(0) != key.size(0) and key.size(0) != 1:
        raise ValueError(
            f"Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask=None, Bq={query.size(0)}, and Bkv={key.size(0)}."
        )


def _check_block_mask(block_mask: BlockMask, query: Tensor, key: Tensor) -> None:
    q_len, kv_len = query.size(-2), key.size(-2)
    mask_q, mask_kv = block_mask.shape[-2:]
    if (mask_q, mask_kv) == (q_len, kv_len) or block_mask.BLOCK_SIZE[0] == _LARGE_SPARSE_BLOCK_SIZE:
        return
    text = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and kv_len={kv_len}. "
    if mask_q >= q_len and mask_kv >= kv_len:
        text += (
            "As the block mask was created for a larger length than you're using it for, you can either 1. create a new block mask with "
            "the correct length, or 2. 'adjust' the existing block mask to the correct length by calling block_mask._adjust(q_len, "
            "kv_len). This essentially 'crops' the block mask to the upper left corner, which does not work for all mask_mods!"
        )
    else:
        text += "As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
    raise ValueError(text)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with `score_mod(score, b, h, q, kv)` applied to each score and `block_mask` to all; differentiable.

    Rows in which everything is masked give zeros. Options of GPU kernels have no effect.
    """
    _check(query, key, value, enable_gqa)
    if block_mask is not None:
        _check_block_mask(block_mask, query, key)
    if return_lse:
        if return_aux is not None:
            raise ValueError("Cannot specify both return_lse and return_aux. Use return_aux only.")
        warnings.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
            stacklevel=2,
        )
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    precision = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = (query @ key.transpose(-2, -1)).to(precision)
    scores = scores * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
    indices = _indices(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *indices).to(precision).broadcast_to(scores.shape)
    if block_mask is not None:
        scores = torch.where(block_mask.mask_mod(*indices), scores, -math.inf)
    visible = (scores != -math.inf).any(-1, keepdim=True)
    # A row without any score is computed on zeros and replaced, so that its gradient is zero and not NaN.
    weights = torch.softmax(torch.where(visible, scores, 0.0), dim=-1)
    weights = torch.where(visible, weights, 0.0)
    result = weights.to(query.dtype) @ value
    if not return_lse and return_aux is None:
        return result
    wants_lse = return_lse or (return_aux is not None and return_aux.lse)
    lse = None
    if wants_lse:
        sums = torch.logsumexp(torch.where(visible, scores, 0.0), dim=-1)
        lse = torch.where(visible.squeeze(-1), sums, -math.inf)
    if return_lse:
        return result, lse
    assert return_aux is not None
    return result, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
