"""Counts of values by number or by bin: `bincount`, `histc`, `histogram`, `histogramdd`. Arrays in, counts (and edges) out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors, return_types
from .._dispatch import composite, function, op, wrap
from .._dtype import INTEGRAL_NUMS, NP_BFLOAT16, NP_BOOL
from . import _dims
from ._children import INT64, UNKNOWN, Child, child, dtype_number, tensor, tensor_of


@op("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", nondifferentiable=True)
def bincount(self: np.ndarray, weights: Any, minlength: int) -> Any:
    if self.dtype.num not in INTEGRAL_NUMS or self.dtype is NP_BOOL:
        raise _op_errors.not_implemented("bincount_cpu", self)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    counts = np.bincount(self, weights, minlength)
    if weights is None:
        return counts.astype(np.int64)
    return counts.astype(weights.dtype if weights.dtype == np.float32 else np.float64)


@op(
    "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    nondifferentiable=True,
    out=True,
)
def histc(self: np.ndarray, bins: int, min: Any, max: Any) -> Any:
    low, high = min, max
    if self.dtype.kind != "f" and self.dtype is not NP_BFLOAT16:
        raise _op_errors.not_implemented("histogram_cpu", self)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if low == high and self.size:
        low, high = self.min(), self.max()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{_bound_text(low)}, {_bound_text(high)}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    values = self.reshape(-1).astype(np.float32 if self.dtype.itemsize == 2 else self.dtype, copy=False)
    return _counts(values, bins, float(low), float(high)).astype(self.dtype)


def _counts(values: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """How many values lie in each of the bins, all of one width; the last one includes its upper edge."""
    edges = np.linspace(low, high, bins + 1, dtype=values.dtype)
    values = values[(values >= low) & (values <= high)]
    places = ((values - edges[0]) * (bins / (high - low))).astype(np.int64)
    np.minimum(places, bins - 1, out=places)
    places -= values < edges[places]  # rounding of the quotient
    places += (values >= edges[places + 1]) & (places != bins - 1)
    return np.bincount(places, minlength=bins)


def _bound_text(bound: Any) -> str:
    return "-nan" if math.isnan(bound) else f"{bound:g}"


def _density(hist: np.ndarray, edges: list, density: bool) -> np.ndarray:
    if not density:
        return hist
    volume = np.ones(())
    for d, line in enumerate(edges):
        volume = volume * np.diff(line).reshape([-1 if k == d else 1 for k in range(len(edges))])
    return hist / (hist.sum() * volume)


def _limits(values: np.ndarray, given: Any) -> tuple[float, float]:
    """The outer edges of a histogram of these values."""
    if given is None:
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    else:
        low, high = (float(v) for v in given)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogram(): dimension 0's range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogram(): min should not exceed max, but got min {low:g} max {high:g} for dimension 0"
            )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _count(values: np.ndarray, edges: np.ndarray, weight: Any, density: bool) -> np.ndarray:
    found, _ = np.histogram(values, edges, weights=None if weight is None else weight.reshape(-1))
    return _density(found.astype(values.dtype), [edges], density).astype(values.dtype)


@op(
    "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, "
    "Tensor bin_edges)",
    expose="no",
    returns=return_types.histogram,
    nondifferentiable=True,
)
def _histogram_count(self: np.ndarray, bins: int, range: Any, weight: Any, density: bool) -> Any:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    values = self.reshape(-1)
    edges = np.linspace(*_limits(values, range), bins + 1).astype(self.dtype)
    return _count(values, edges, weight, density), edges


@op(
    "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    expose="no",
    returns=return_types.histogram,
    nondifferentiable=True,
)
def _histogram_edges(self: np.ndarray, bins: np.ndarray, weight: Any, density: bool) -> Any:
    return _count(self.reshape(-1), bins, weight, density), bins.copy()


@function(expose="both")
def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> Any:
    """Counts per bin and the bins' edges."""
    if isinstance(bins, _dispatch.Tensor):
        result = _histogram_edges(input, bins, weight=weight, density=density)
    else:
        result = _histogram_count(input, bins, range=range, weight=weight, density=density)
    return _dispatch.into_out(result, out)


@composite(
    "aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] "
    "bin_edges)",
    expose="no",
)
def _histogramdd_counts(self: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    edges = _bin_edges(self, bins, range, weight, density)
    hist = _from_counts(self, bins, range, weight, density)
    return return_types.histogramdd((hist, tuple(edges)))


def _grid(self: np.ndarray, bins: Any, given: Any) -> list[np.ndarray]:
    points = _dims.rows(self)
    pairs = [None] * len(bins) if given is None else list(zip(given[::2], given[1::2]))
    return [
        np.linspace(*_limits(points[:, d], pairs[d]), n + 1).astype(self.dtype) for d, n in enumerate(bins)
    ]


@op(
    "aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def _edges_op(self: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    return [wrap(line) for line in _grid(self._array, bins, range)]


def _bin_edges(self: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    return _edges_op(self, bins, range=range, weight=weight, density=density)


@op(
    "aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _counts_op(self: np.ndarray, bins: Any, range: Any, weight: Any, density: bool) -> np.ndarray:
    return _grid_counts(self, _grid(self, bins, range), weight, density)


def _grid_counts(self: np.ndarray, edges: list, weight: Any, density: bool) -> np.ndarray:
    points = _dims.rows(self)
    if len(edges) != points.shape[1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    cells = tuple(line.size - 1 for line in edges)
    inside: Any = np.ones(len(points), bool)
    places = []
    for d, line in enumerate(edges):
        values = points[:, d]
        inside &= (values >= line[0]) & (values <= line[-1])
        places.append(np.minimum(line.searchsorted(values, "right") - 1, line.size - 2))
    flat = np.ravel_multi_index([place[inside] for place in places], cells) if places else np.zeros(0, int)
    weights = None if weight is None else weight.reshape(-1)[inside]
    counts = np.bincount(flat, weights, math.prod(cells)).reshape(cells)
    return _density(counts, edges, density).astype(self.dtype)


def _from_counts(self: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    return _counts_op(self, bins, range=range, weight=weight, density=density)


@function(expose="function")
def histogramdd(input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Counts per cell of a grid and the grid's edges."""
    dims = input.shape[-1]
    if not isinstance(bins, (list, tuple)):
        bins = [bins] * dims
    if any(isinstance(b, _dispatch.Tensor) for b in bins):
        edges = [b._array for b in bins]
        found = _grid_counts(input._array, edges, None if weight is None else weight._array, density)
        return return_types.histogramdd((wrap(found), tuple(wrap(line.copy()) for line in edges)))
    return _histogramdd_counts(input, tuple(bins), range, weight, density)


# ---------------------------------------------------------------------------------------------------- what torch shows inside


def _flat(self: Any, dims: int) -> Any:
    """A described table of points: one row per point, or of values: a column."""
    return self if self is UNKNOWN else tensor((math.prod(self.shape) // dims if dims else 0, dims), self)


def _line(ends: Any, bins: int, shape: tuple, self: Any) -> Child:
    """The edges of bins, written to an output of this shape. ends: None where they are values of the input."""
    low, high = (None, None) if ends is None else ends
    return child("aten::linspace.out", low, high, bins + 1, tensor(shape, self))


def _summed(self: Any, bins: tuple) -> Child:
    """The counts of all parts of the input, of which there is one, added."""
    return child("aten::sum.IntList_out", tensor((1, *bins), self), (0,), False, None, tensor(bins, self))


@histc.children
def _(self: Any, bins: int, min: Any, max: Any) -> list[Child]:
    limits = [child("aten::aminmax", self)] if min == max else []
    return [*limits, _line(None if limits else (min, max), bins, (bins + 1,), self), _summed(self, (bins,))]


@_histogram_count.children
def _(self: Any, bins: int, range: Any, weight: Any, density: Any) -> list[Child]:
    limits = [child("aten::aminmax", _flat(self, 1), 0)] if range is None else []
    return [*limits, _line(range, bins, (bins + 1,), self), _summed(self, (bins,))]


_histogram_edges.children(lambda self, bins, weight, density: [_summed(self, (bins.shape[0] - 1,))])


@_edges_op.children
def _edge_children(self: Any, bins: Any, range: Any, weight: Any, density: Any) -> list[Child]:
    limits = [child("aten::aminmax", _flat(self, len(bins)), 0)] if range is None else []
    return limits + [_line(None, n, (0,), self) for n in bins]


_counts_op.children(
    lambda self, bins, *rest: [*_edge_children(self, bins, *rest), _summed(self, tuple(bins))]
)


@bincount.children
def _(self: Any, weights: Any, minlength: Any) -> list[Child]:
    dtype = INT64 if weights is None else dtype_number(tensor((), weights, "double"))
    counts = tensor_of((0,), dtype)  # how many there are depends on values
    cleared = [child("aten::empty.memory_format", None, dtype), child("aten::zero_", counts, children=())]
    return [
        child("aten::min", self),
        child("aten::max", self),
        child("aten::zeros", None, dtype, children=cleared),
    ]
