"""Sequences of different lengths: padded tensors or lists to PackedSequence, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import mindtorch_v2 as torch

from ..._ops.sequence import _pack_padded_sequence, _pad_packed_sequence
from ..._ops.sequence import pad_sequence as _pad_sequence

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]

_T = TypeVar("_T")
_R = TypeVar("_R")


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: torch.Tensor
    batch_sizes: torch.Tensor
    sorted_indices: torch.Tensor | None
    unsorted_indices: torch.Tensor | None


def bind(optional: _T | None, fn: Callable[[_T], _R]) -> _R | None:
    """`fn(optional)`, or None for None."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """A batch of sequences, step by step: `data` holds all steps, `batch_sizes` the number of sequences per
    step.
    """

    def __new__(
        cls,
        data: torch.Tensor,
        batch_sizes: torch.Tensor | None = None,
        sorted_indices: torch.Tensor | None = None,
        unsorted_indices: torch.Tensor | None = None,
    ) -> Self:
        return super().__new__(
            cls, *_packed_sequence_init_args(data, batch_sizes, sorted_indices, unsorted_indices)
        )

    def pin_memory(self) -> Self:
        """Pin the memory of all tensors."""
        return type(self)(
            self.data.pin_memory(),
            self.batch_sizes,
            bind(self.sorted_indices, lambda t: t.pin_memory()),
            bind(self.unsorted_indices, lambda t: t.pin_memory()),
        )

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert `data` as `Tensor.to` does; the indices move to its device. `batch_sizes` stay on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        options = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        return type(self)(
            data,
            self.batch_sizes,
            bind(self.sorted_indices, lambda t: t.to(data.device, **options)),
            bind(self.unsorted_indices, lambda t: t.to(data.device, **options)),
        )

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Move to CUDA; there is none here, so this raises."""
        return self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Move to the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self) -> Self:
        """As float64."""
        return self.to(dtype=torch.double)

    def float(self) -> Self:
        """As float32."""
        return self.to(dtype=torch.float)

    def half(self) -> Self:
        """As float16."""
        return self.to(dtype=torch.half)

    def long(self) -> Self:
        """As int64."""
        return self.to(dtype=torch.long)

    def int(self) -> Self:
        """As int32."""
        return self.to(dtype=torch.int)

    def short(self) -> Self:
        """As int16."""
        return self.to(dtype=torch.short)

    def char(self) -> Self:
        """As int8."""
        return self.to(dtype=torch.int8)

    def byte(self) -> Self:
        """As uint8."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on CUDA."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the memory of `data` is pinned."""
        return self.data.is_pinned()


def _packed_sequence_init_args(
    data: Any,
    batch_sizes: torch.Tensor | None = None,
    sorted_indices: torch.Tensor | None = None,
    unsorted_indices: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """Complete the fields; the first argument may be a pair (data, batch_sizes)."""
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is None:
        if not (isinstance(data, (list, tuple)) and len(data) == 2):
            raise AssertionError("Expected data to be a list or tuple of length 2")
        data, batch_sizes = data
        return data, batch_sizes, sorted_indices, unsorted_indices
    if batch_sizes.device.type != "cpu":
        raise ValueError(
            "batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
            "manually. "
            "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
            "nn.utils.rnn. "
            "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
        )
    return data, batch_sizes, sorted_indices, unsorted_indices


def _packed_sequence_init(
    data: torch.Tensor,
    batch_sizes: torch.Tensor | None = None,
    sorted_indices: torch.Tensor | None = None,
    unsorted_indices: torch.Tensor | None = None,
) -> PackedSequence:
    return PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices)


def invert_permutation(permutation: torch.Tensor | None) -> torch.Tensor | None:
    """The inverse permutation."""
    if permutation is None:
        return None
    output = torch.empty_like(permutation, memory_format=torch.contiguous_format)
    output.scatter_(0, permutation, torch.arange(0, permutation.numel(), device=permutation.device))
    return output


def pack_padded_sequence(
    input: torch.Tensor,
    lengths: torch.Tensor | list[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack a padded batch whose sequences have the given lengths."""
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    else:
        lengths = lengths.to(dtype=torch.int64)
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = _pack_padded_sequence(input, lengths, batch_first)
    return _packed_sequence_init(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The padded batch of a packed one, in the order before packing, and the lengths."""
    max_seq_length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < max_seq_length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {max_seq_length}"
            )
        max_seq_length = total_length
    padded, lengths = _pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, max_seq_length
    )
    unsorted_indices = sequence.unsorted_indices
    if unsorted_indices is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted_indices), lengths[unsorted_indices.cpu()]


def pad_sequence(
    sequences: torch.Tensor | list[torch.Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> torch.Tensor:
    """Stack sequences of different lengths, padded to the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if isinstance(sequences, torch.Tensor):
        sequences = sequences.unbind(0)
    return _pad_sequence(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(
    padded_sequences: torch.Tensor, lengths: torch.Tensor, batch_first: bool = False
) -> list[torch.Tensor]:
    """The list of sequences in a padded batch."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    idx = torch.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[idx < length] for sequence, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences: list[torch.Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences of different lengths."""
    lengths = torch.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[torch.Tensor]:
    """The list of sequences in a packed batch."""
    padded_sequences, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded_sequences, lengths, batch_first=True)
