"""torch.sparse: products, sums and softmax of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .. import _dispatch, _sparse, _sparse_compressed, _sparse_ops
from .._legacy import SPARSE as _TYPES
from .._ops.sparse import Invariants as _Invariants

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags",
    "spsolve", "sum", "to_sparse_semi_structured",
]  # fmt: skip

globals().update(_TYPES)


def mm(sparse: Any, dense: Any, reduce: str | None = None) -> Any:
    """The product of two matrices, sparse or dense, with gradients for both."""
    if reduce is not None:
        return _sparse_compressed.mm_reduced(sparse, dense, reduce)
    return _dispatch.OPS["_sparse_mm"].entry(sparse, dense)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Any:
    """beta * mat + alpha * mat1 @ mat2, with `mat1` sparse."""
    return _sparse_ops.addmm(mat, mat1, mat2, beta, alpha)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of a sparse tensor: dense over all dimensions, else sparse."""
    if dtype is not None:
        return _sparse.total(input, dim, False, dtype)
    if dim is None:
        return _dispatch.OPS["_sparse_sum"].entry(input)
    return _dispatch.OPS["_sparse_sum.dim"].entry(input, dim if isinstance(dim, int) else tuple(dim))


def _softmax(input: Any, dim: int, dtype: Any, log: bool) -> Any:
    coalesced = (input if dtype is None else input.to(dtype)).coalesce()
    values = coalesced.values()
    dim %= coalesced.ndim
    if dim >= coalesced.sparse_dim():
        inner = dim - coalesced.sparse_dim() + 1
        new_values = torch.log_softmax(values, inner) if log else torch.softmax(values, inner)
    else:
        other_indices = np.delete(coalesced._places, dim, 0)
        extent = tuple(n for d, n in enumerate(coalesced._extent[: coalesced.sparse_dim()]) if d != dim)
        _, group = np.unique(_sparse.keys(other_indices, extent), return_inverse=True)
        groups, count = _dispatch.wrap(group.astype(np.int64)), int(group.max(initial=-1)) + 1
        largest = torch.full((count, *values.shape[1:]), float("-inf"), dtype=values.dtype)
        index = groups.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
        largest = largest.scatter_reduce(0, index, values.detach(), "amax")
        shifted = values - largest.index_select(0, groups)
        sums = torch.zeros(count, *values.shape[1:], dtype=values.dtype).index_add(0, groups, shifted.exp())
        new_values = (
            shifted - sums.log().index_select(0, groups)
            if log
            else shifted.exp() / sums.index_select(0, groups)
        )
    return torch.sparse_coo_tensor(
        coalesced._indices(), new_values, coalesced.shape, check_invariants=False, is_coalesced=True
    )


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Softmax over the specified elements; the others count as minus infinity."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return _softmax(input, dim, dtype, True)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix with the rows of `diagonals` on the diagonals `offsets`."""
    if layout is not None and layout is not torch.sparse_coo:
        raise NotImplementedError(f"spdiags: layout {layout} is not supported, only torch.sparse_coo is")
    rows, columns = shape
    values = diagonals._array if diagonals.ndim == 2 else diagonals._array[None]
    parts, elements = [], []
    for row, offset in zip(values, offsets._array.reshape(-1).tolist()):
        column = np.arange(max(offset, 0), min(columns, rows + offset, len(row)))
        parts.append(np.stack((column - offset, column)))
        elements.append(row[column])
    return _sparse.make(np.concatenate(parts, 1).astype(np.int64), np.concatenate(elements), (rows, columns))


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0, out: Any = None
) -> Any:
    """beta * input + alpha * (mat1 @ mat2) at the places of `input`, which is a CSR tensor."""
    if out is not None:
        raise NotImplementedError("sampled_addmm: out= is not supported")
    return _sparse_compressed.sampled_addmm(input, mat1, mat2, beta, alpha)


def spsolve(input: Any, other: Any, *, left: bool = True) -> Any:
    """X with input @ X = other, for a square CSR matrix; without gradients."""
    if not left:
        raise NotImplementedError("spsolve: only left=True is supported")
    return _sparse_compressed.solved(input, other)


def to_sparse_semi_structured(original_tensor: Any, transposed: bool = False) -> Any:
    """Raises: semi-structured sparsity is a feature of CUDA devices."""
    raise RuntimeError("to_sparse_semi_structured needs a CUDA device, and there is none")


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """`gradcheck` for functions of sparse tensors: their values are checked."""

    def checked(func: Any, inputs: Any, **options: Any) -> bool:
        input_tuple = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        values_or_tensors, patterns = [], []
        for tensor in input_tuple:
            if isinstance(tensor, torch.Tensor) and tensor.is_sparse:
                parts = tensor.detach().coalesce()
                patterns.append(parts)
                values_or_tensors.append(parts.values().clone().requires_grad_(tensor.requires_grad))
            else:
                patterns.append(None)
                values_or_tensors.append(tensor)

        def on_values(*values: Any) -> Any:
            arguments = [
                v
                if p is None
                else torch.sparse_coo_tensor(
                    p._indices(), v, p.shape, check_invariants=False, is_coalesced=True
                )
                for v, p in zip(values, patterns)
            ]
            output = func(*arguments)
            results = output if isinstance(output, (tuple, list)) else (output,)
            dense = tuple(
                r.coalesce().values() if isinstance(r, torch.Tensor) and r.is_sparse else r for r in results
            )
            return dense if isinstance(output, (tuple, list)) else dense[0]

        options.pop("masked", None)
        return gradcheck(on_values, tuple(values_or_tensors), **options)

    return checked


class check_sparse_tensor_invariants:
    """Context manager, or setting by `enable`: constructors check every index."""

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check every index."""
        return _Invariants.enabled

    @staticmethod
    def enable() -> None:
        """Turn the checks on."""
        _Invariants.enabled = _Invariants.chosen = True

    @staticmethod
    def disable() -> None:
        """Turn the checks off."""
        _Invariants.enabled, _Invariants.chosen = False, True

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.saved_state, _Invariants.enabled = _Invariants.enabled, self.state
        _Invariants.chosen = True

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        assert self.saved_state is not None
        _Invariants.enabled, self.saved_state = self.saved_state, None

    def __call__(self, mth: Any) -> Any:
        """`mth` with checks on (or off)."""
        import functools

        @functools.wraps(mth)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return inside
