"""Sequences of different lengths: padding a list of them; packing a padded batch step by step, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._dispatch import composite, op
from .._dtype import BY_NUM
from .._tensor import Tensor
from ._namespace import functions as F
from .creation import _full
from .shape import as_own

_NOT_SORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
    "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if "
    "you do not "
    "need ONNX exportability."
)


def _blocks(lengths: Any) -> Iterator[tuple[int, int, int]]:
    """Runs of steps that have the same number of sequences: (first step, end, number of sequences)."""
    start = 0
    for i, length in enumerate(reversed(lengths)):
        if length > start:
            yield start, length, len(lengths) - i
            start = length
        elif length < start:
            raise RuntimeError(_NOT_SORTED)


def _checked_lengths(lengths: Any, batch_size: int) -> Any:
    if lengths.ndim != 1 or lengths.dtype != np.int64:
        kind = BY_NUM[lengths.dtype.num]._abbr
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D cpu {kind} tensor"
        )
    if len(lengths) != batch_size:
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(lengths)} (batch_size={batch_size})"
        )
    lengths = lengths.tolist()
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    return lengths


@op("aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    on="tensors", expose="function", node="PackPaddedSequenceBackward0", outputs=1)  # fmt: skip
def _pack_padded_sequence(input: Any, lengths: Any, batch_first: bool) -> Any:
    steps = F.transpose(input, 0, 1) if batch_first else input
    known = _checked_lengths(lengths._array, steps.shape[1])
    rest = steps.shape[2:]
    batch_sizes = F.empty((known[0],), dtype=lengths.dtype)
    pieces = []
    for start, end, n in _blocks(known):
        pieces.append(F.slice(F.slice(steps, 0, start, end), 1, 0, n).contiguous().view((-1, *rest)))
        batch_sizes._array[start:end] = n
    return F.cat(pieces), batch_sizes


_pack_padded_sequence.derivative(
    input=lambda g, input_shape, result1, batch_first: F._pack_padded_sequence_backward(
        g, input_shape, result1, batch_first
    )
)


@op("aten::_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, "
    "bool batch_first) -> Tensor", on="tensors", expose="no")  # fmt: skip
def _pack_padded_sequence_backward(
    grad: Any, input_size: tuple[int, ...], batch_sizes: Any, batch_first: bool
) -> Any:
    size = list(input_size)
    if batch_first:
        size[0], size[1] = size[1], size[0]
    steps = F.zeros(size, dtype=grad.dtype)
    offset = 0
    for i, n in enumerate(batch_sizes._array.tolist()):
        F.slice(F.select(steps, 0, i), 0, 0, n).copy_(F.slice(grad, 0, offset, offset + n))
        offset += n
    return as_own(F.transpose(steps, 0, 1)) if batch_first else steps


_pack_padded_sequence_backward.derivative(
    grad=lambda g, batch_sizes, batch_first: F.cat(
        [
            (F.transpose(g, 0, 1) if batch_first else g)[i, :n]
            for i, n in enumerate(batch_sizes._array.tolist())
        ]
    )
)


@composite(
    "aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
    "int total_length) -> (Tensor, Tensor)", expose="function"
)  # fmt: skip
def _pad_packed_sequence(
    data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: int
) -> Any:
    sizes = batch_sizes._array.tolist()
    rest = data.shape[1:]
    if total_length > 0 and total_length < len(sizes):
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            "total_length="
            f"{total_length} and max sequence length being {len(sizes)}"
        )
    output = _full((max(total_length, len(sizes)), sizes[0], *rest), padding_value, dtype=data.dtype)
    lengths = F.empty((sizes[0],), dtype=batch_sizes.dtype)
    start = offset = 0
    for i in range(1, len(sizes) + 1):
        n, following = sizes[start], sizes[i] if i < len(sizes) else 0
        if following == n:
            continue
        count = n * (i - start)
        piece = F.slice(data, 0, offset, offset + count)
        target = F.slice(F.slice(output, 0, start, i), 1, 0, n)
        target.copy_(piece.view((i - start, n, *rest)))
        lengths._array[following:n] = i
        start, offset = i, offset + count
    return (F.transpose(output, 0, 1) if batch_first else output), lengths


@composite(
    "aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., "
    'str padding_side="right") -> Tensor', expose="no"
)  # fmt: skip
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for i, sequence in enumerate(sequences):
        if not isinstance(sequence, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(sequence).__name__}"
            )
    first = sequences[0]
    longest = max(t.shape[0] for t in sequences)
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = _full((*shape, *first.shape[1:]), padding_value, dtype=first.dtype)
    for i, sequence in enumerate(sequences):
        length = sequence.shape[0]
        start = longest - length if padding_side == "left" else 0
        if batch_first:
            F.narrow(F.select(out, 0, i), 0, start, length).copy_(sequence)
        else:
            F.select(F.narrow(out, 0, start, length), 1, i).copy_(sequence)
    return out
