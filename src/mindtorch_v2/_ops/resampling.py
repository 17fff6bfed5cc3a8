"""Resizing of images: nearest, linear, cubic, and the filters that smooth before they shrink.

Every method is separable: along each dimension an output element is a weighted sum of a few input elements (taps). A backward op is the
transposed map, so each is the derivative of the other.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._dispatch import op
from .._dtype import BY_NUM, LOW_FLOATS
from ._layout import is_channels_last

# Up to this size a dense matrix product is faster than gathering the taps (measured: 2 to 4 times at 28, equal at 64).
_DENSE = 64

# Below this many elements the choice does not matter.
_SMALL = 1 << 12

# The scale arguments of an op, by its number of dimensions.
_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}


# ---------------------------------------------------------------------------------------------------- taps


def _step(n: int, out: int, align: bool, scale: float | None, kind: Any) -> Any:
    """How far apart in the input two neighbours of the output are."""
    if align:
        return kind(n - 1) / kind(out - 1) if out > 1 else kind(0)
    return kind(1.0 / scale) if scale is not None and scale > 0 else kind(n) / kind(out)


def _nearest_taps(n: int, out: int, scale: float | None, exact: bool) -> np.ndarray:
    step = _step(n, out, False, scale, np.float32)
    places = np.arange(out, dtype=np.float32)
    if exact:
        places += np.float32(0.5)
    return np.minimum(np.floor(places * step).astype(np.int64), n - 1)


def _linear_taps(
    n: int, out: int, align: bool, scale: float | None, kind: Any
) -> tuple[np.ndarray, np.ndarray]:
    step = _step(n, out, align, scale, kind)
    places = np.arange(out, dtype=kind)
    source = places * step if align else np.maximum((places + kind(0.5)) * step - kind(0.5), kind(0))
    first = np.minimum(source.astype(np.int64), n - 1)
    weight = np.clip(source - first.astype(kind), 0, 1).astype(kind)
    return np.stack([first, np.minimum(first + 1, n - 1)]), np.stack([kind(1) - weight, weight])


def cubic_weights(t: np.ndarray, a: float = -0.75) -> list[np.ndarray]:
    """Weights of the four neighbours of a position `t` after the second."""

    def near(x: np.ndarray) -> np.ndarray:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> np.ndarray:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic_taps(
    n: int, out: int, align: bool, scale: float | None, kind: Any
) -> tuple[np.ndarray, np.ndarray]:
    step = _step(n, out, align, scale, kind)
    places = np.arange(out, dtype=kind)
    source = places * step if align else (places + kind(0.5)) * step - kind(0.5)
    first = np.floor(source)
    weights = cubic_weights(source - first)
    base = first.astype(np.int64)
    return np.stack([np.clip(base + k, 0, n - 1) for k in (-1, 0, 1, 2)]), np.stack(weights).astype(kind)


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _keys(x: np.ndarray) -> np.ndarray:
    x, a = np.abs(x), -0.5
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_FILTERS = {"bilinear": (_triangle, 2), "bicubic": (_keys, 4), "lanczos": (_lanczos, 6)}


@functools.lru_cache(256)
def _smoothing_matrix(name: str, n: int, out: int, align: bool, scale: float | None, kind: Any) -> np.ndarray:
    """Weights [out, n] of a filter that is stretched by the step where the image shrinks."""
    filter_, width = _FILTERS[name]
    step = _step(n, out, align, scale, kind)
    stretch = max(step, kind(1))
    support = kind(width * 0.5) * stretch
    centre = step * (np.arange(out, dtype=kind) + kind(0.5))
    first = np.maximum((centre - support + kind(0.5)).astype(np.int64), 0)
    last = np.minimum((centre + support + kind(0.5)).astype(np.int64), n)
    j = np.arange(n)
    weights = filter_((j - centre[:, None] + 0.5) / stretch)
    weights = np.where((j >= first[:, None]) & (j < last[:, None]), weights, 0)
    total = weights.sum(1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)).astype(kind)


@functools.lru_cache(256)
def _taps(
    name: str, n: int, out: int, align: bool, scale: float | None, kind: Any, low: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Input indices [taps, out] and their weights, which are rounded to `low`."""
    if name in ("nearest", "exact"):
        places = _nearest_taps(n, out, scale, name == "exact")
        return places[None], np.ones((1, out), kind)
    places, weights = (_cubic_taps if name == "cubic" else _linear_taps)(n, out, align, scale, kind)
    return places, weights if low is None else weights.astype(low).astype(kind)


@functools.lru_cache(256)
def _matrix(
    name: str, n: int, out: int, align: bool, scale: float | None, kind: Any, low: Any = None
) -> np.ndarray:
    """The taps of one dimension as a matrix [out, n]."""
    if name in _FILTERS:
        return _smoothing_matrix(name, n, out, align, scale, kind)
    places, weights = _taps(name, n, out, align, scale, kind, low)
    matrix = np.zeros((out, n), kind)
    rows = np.arange(out)
    for place, weight in zip(places, weights):
        matrix[rows, place] += weight
    return matrix


# ---------------------------------------------------------------------------------------------------- applying them


@functools.lru_cache(256)
def _sparse(transposed: bool, *arguments: Any) -> Any:
    """The taps as a sparse matrix; zero weights are kept, because 0 * inf must give NaN."""
    from scipy.sparse import csr_array

    if arguments[0] in _FILTERS:
        matrix = csr_array(_matrix(*arguments))
    else:
        places, weights = _taps(*arguments)
        count, out = places.shape
        ends = np.arange(0, out * count + 1, count)
        matrix = csr_array((weights.T.reshape(-1), places.T.reshape(-1), ends), shape=(out, arguments[1]))
    return matrix.T.tocsr() if transposed else matrix


def _multiply(x: np.ndarray, axis: int, matrix: np.ndarray) -> np.ndarray:
    """Apply a matrix along one dimension of a contiguous array."""
    out, n = matrix.shape
    if axis == x.ndim - 1:
        return (x.reshape(-1, n) @ matrix.T).reshape(*x.shape[:-1], out)
    product = np.matmul(matrix, x.reshape(math.prod(x.shape[:axis]), n, math.prod(x.shape[axis + 1 :])))
    return product.reshape(*x.shape[:axis], out, *x.shape[axis + 1 :])


def _multiply_sparse(x: np.ndarray, axis: int, matrix: Any) -> np.ndarray:
    """The same with a sparse matrix: one product, where BLAS would start its threads for each of many small ones."""
    (out, n), before = matrix.shape, math.prod(x.shape[:axis])
    rows = np.ascontiguousarray(x.reshape(before, n, -1).swapaxes(0, 1)).reshape(n, -1)
    product = (matrix @ rows).reshape(out, before, -1)
    return np.ascontiguousarray(product.swapaxes(0, 1)).reshape(*x.shape[:axis], out, *x.shape[axis + 1 :])


def _is_finite(x: np.ndarray) -> bool:
    """Whether a dense product is safe: its zeros would turn infinities into NaN. A sum that overflows counts as unsafe too."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum()))


def _is_dense(x: np.ndarray, axis: int, finite: bool) -> bool:
    return not x.size or (finite and (axis == x.ndim - 1 or x.size < _SMALL))


def _gather(x: np.ndarray, axis: int, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted sum of the taps along one dimension."""
    shape = [1] * x.ndim
    shape[axis] = -1
    total = x.take(places[0], axis)
    total *= weights[0].reshape(shape)
    for place, weight in zip(places[1:], weights[1:]):
        part = x.take(place, axis)
        part *= weight.reshape(shape)
        total += part
    return total


def _laid_out(resized: np.ndarray, last: bool, dtype: np.dtype) -> np.ndarray:
    """The result in its dtype; channels innermost where the input's are."""
    if last:
        return np.moveaxis(np.moveaxis(resized, 1, -1).astype(dtype, "C"), -1, 1)
    return np.ascontiguousarray(resized.astype(dtype, copy=False))


def _work_dtype(dtype: np.dtype) -> Any:
    return np.float32 if dtype in LOW_FLOATS else dtype.type


@functools.lru_cache(256)
def _whole_matrix(name: str, n: int, out: int, align: bool, scale: float | None) -> tuple[np.ndarray, int]:
    """Weights as 15-bit integers, and by how many bits they are shifted."""
    weights = _matrix(name, n, out, align, scale, np.float64)
    most, bits = float(weights.max()), 0
    while bits < 22 and int(0.5 + most * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return np.trunc(weights * (1 << bits) + np.copysign(0.5, weights)), bits


def resize_bytes(x: np.ndarray, name: str, size: tuple, align: bool, scales: tuple) -> np.ndarray:
    """Resize an image of bytes by integer weights, rounding to bytes between the two passes; exact in float64."""
    last, dims = is_channels_last(x), len(size)
    work = np.ascontiguousarray(x, np.float64)
    for d in reversed(range(dims)):
        axis = x.ndim - dims + d
        if x.shape[axis] == size[d]:
            continue
        matrix, bits = _whole_matrix(name, x.shape[axis], size[d], align, scales[d])
        work = _multiply(work, axis, matrix)
        work += 1 << (bits - 1)
        work /= 1 << bits
        work = np.floor(work, work).clip(0, 255, work)
    return _laid_out(work, last, x.dtype)


def resize(x: np.ndarray, name: str, size: tuple, align: bool, scales: tuple) -> np.ndarray:
    """The last dimensions at their new sizes."""
    if x.dtype == np.uint8:
        return resize_bytes(x, name, size, align, scales)
    last, dims = is_channels_last(x), len(size)
    kind, low = _work_dtype(x.dtype), _rounded_weights(name, x.dtype, dims)
    work = np.ascontiguousarray(x, kind)
    finite = _is_finite(work)
    for d, (out, scale) in enumerate(zip(size, scales)):
        axis = x.ndim - dims + d
        taps_of = (name, x.shape[axis], out, align, scale, kind, low)
        if name not in _FILTERS and axis == x.ndim - 1 and (x.shape[axis] > _DENSE or not finite):
            work = _gather(work, axis, *_taps(*taps_of))
        elif _is_dense(work, axis, finite):
            work = _multiply(work, axis, _matrix(*taps_of))
        else:
            work = _multiply_sparse(work, axis, _sparse(False, *taps_of))
    return _laid_out(work, last, x.dtype)


def _rounded_weights(name: str, dtype: np.dtype, dims: int) -> Any:
    """The dtype in which torch stores the weights, if it is not the one in which it computes."""
    return dtype if dtype in LOW_FLOATS and (name == "cubic" or dims != 2) else None


def resize_gradient(g: np.ndarray, name: str, input_size: tuple, align: bool, scales: tuple) -> np.ndarray:
    """The gradient of an input of `input_size` from that of the resized image."""
    last, dims = is_channels_last(g), len(scales)
    kind = _work_dtype(g.dtype)
    work = np.ascontiguousarray(g, kind)
    finite = _is_finite(work)
    for d in reversed(range(dims)):
        axis = g.ndim - dims + d
        taps_of = (name, input_size[axis], g.shape[axis], align, scales[d], kind)
        if _is_dense(work, axis, finite):
            work = _multiply(work, axis, _matrix(*taps_of).T)
        else:
            work = _multiply_sparse(work, axis, _sparse(True, *taps_of))
    return _laid_out(work, last, g.dtype)


def _factors(shape: tuple, size: tuple, places: list[np.ndarray]) -> list[int] | None:
    """How often each input element is repeated along each dimension; None if not all are repeated equally often and in order."""
    factors = []
    for n, out, place in zip(shape[len(shape) - len(size) :], size, places):
        k = out // n
        if out % n or not np.array_equal(place, np.arange(out) // k):
            return None
        factors.append(k)
    return factors


def _repeated(x: np.ndarray, factors: list[int]) -> np.ndarray:
    """Every element repeated: first along the last dimension, slice by slice, then as whole rows.

    One assignment to all dimensions at once would go element by element, six times slower.
    """
    lead, k = x.ndim - len(factors), factors[-1]
    rows = np.empty((*x.shape, k), x.dtype)
    for i in range(k):
        rows[..., i] = x
    rows = rows.reshape(*x.shape[:-1], -1)
    if len(factors) == 1:
        return rows
    large, small = list(x.shape[:lead]), list(x.shape[:lead])
    for n, repeats in zip(x.shape[lead:-1], factors):
        large += [n, repeats]
        small += [n, 1]
    repeated = np.empty((*large, rows.shape[-1]), x.dtype)
    repeated[...] = rows.reshape(*small, rows.shape[-1])
    return repeated


def resize_nearest(x: np.ndarray, name: str, size: tuple, scales: tuple) -> np.ndarray:
    """One element of the input, copied, for each of the output."""
    last, dims = is_channels_last(x), len(size)
    lead = x.ndim - dims
    places = [
        _taps(name, n, out, False, s, np.float32)[0][0] for n, out, s in zip(x.shape[lead:], size, scales)
    ]
    factors = _factors(x.shape, size, places) if x.size else None
    if factors is not None and not last:
        return _repeated(x, factors).reshape(*x.shape[:lead], *size)
    for d, place in enumerate(places):
        x = x.take(place, lead + d)
    return _laid_out(x, last, x.dtype)


def resize_nearest_gradient(g: np.ndarray, name: str, input_size: tuple, scales: tuple) -> np.ndarray:
    """For each input element, the sum of the gradients of its copies."""
    dims = len(scales)
    lead = g.ndim - dims
    if g.size and not is_channels_last(g):
        size = g.shape[lead:]
        places = [
            _taps(name, n, o, False, s, np.float32)[0][0] for n, o, s in zip(input_size[lead:], size, scales)
        ]
        factors = _factors(input_size, size, places)
        if factors is not None:
            large = [m for pair in zip(input_size[lead:], factors) for m in pair]
            parts = np.ascontiguousarray(g, _work_dtype(g.dtype)).reshape(*input_size[:lead], *large)
            for d in reversed(range(dims)):
                parts = _sum_few(parts, lead + 2 * d + 1)
            return parts.astype(g.dtype, copy=False)
    return resize_gradient(g, name, input_size, False, scales)


def _sum_few(x: np.ndarray, axis: int) -> np.ndarray:
    """The sum along a short dimension, slice by slice: many times faster than a reduction over two or three elements."""
    if x.shape[axis] > 16:
        return x.sum(axis, dtype=x.dtype)
    before = (slice(None),) * axis
    total = x[(*before, 0)].copy()
    for k in range(1, x.shape[axis]):
        total += x[(*before, k)]
    return total


# ---------------------------------------------------------------------------------------------------- checks


def _check(shape: tuple, size: tuple, dims: int) -> None:
    if len(size) != dims:
        raise RuntimeError(f"It is expected output_size equals to {dims}, but got size {len(size)}")
    if len(shape) != dims + 2:
        raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {len(shape)}")
    if min(*shape[2:], *size) <= 0:
        letters = "DHW"[3 - dims :]
        have = ", ".join(f"{c}: {n}" for c, n in zip(letters, shape[2:]))
        want = ", ".join(f"{c}: {n}" for c, n in zip(letters, size))
        join = " and " if dims == 1 else " "
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({have}){join}output ({want})"
        )
    if 0 in shape[1:]:
        raise RuntimeError(
            f"Non-empty {dims + 2}D data tensor expected but got a tensor with sizes {list(shape)}"
        )


def _refuse(x: np.ndarray, kernel: str, bytes_too: bool, low_too: bool = True) -> None:
    kind = x.dtype
    if kind.kind == "f" or kind in LOW_FLOATS:
        if low_too or kind not in LOW_FLOATS:
            return
    elif kind == np.uint8 and bytes_too:
        return
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{BY_NUM[kind.num]._abbr}'")


def _bad_call(name: str, dims: int, cornered: bool, *arguments: Any) -> TypeError:
    """torch's error for scale factors that are tensors."""
    kinds = [type(v).__name__ for v in arguments]
    corners = "bool align_corners, " if cornered else ""
    scales = "".join(f"float {s} = None, " for s in _SCALES[dims])
    marked = [f"!{k}!" for k in kinds[:-1]] + [
        f"!list of [{', '.join(type(v).__name__ for v in arguments[-1])}]!"
    ]
    if cornered:
        marked[1] = kinds[1]
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(['Tensor', *kinds])}), but expected one of:\n"
        f" * (Tensor input, tuple of ints output_size, {corners}tuple of floats scale_factors)\n"
        f"      didn't match because some of the arguments have invalid types: ({', '.join(['Tensor', *marked])})\n"
        f" * (Tensor input, tuple of ints output_size, {corners}{scales}*, Tensor out = None)\n"
    )


def _target(
    name: str, shape: tuple, output_size: Any, scale_factors: Any, dims: int, cornered: Any
) -> tuple[tuple, tuple]:
    """The output's size and the scales that the caller gave, from the arguments that `interpolate` passes."""
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if output_size is not None:
        return output_size, (None,) * dims
    if len(scale_factors) != dims:
        raise RuntimeError(
            f"It is expected scale_factors equals to {dims}, but got size {len(scale_factors)}"
        )
    for place, factor in enumerate(scale_factors, 1):
        if not isinstance(factor, (int, float, np.number)):
            if hasattr(factor, "_array_missing"):
                raise _bad_call(
                    name,
                    dims,
                    cornered is not None,
                    output_size,
                    *(() if cornered is None else (cornered,)),
                    scale_factors,
                )
            raise TypeError(
                f"{name}(): argument 'scale_factors' must be tuple of floats, "
                f"but found element of type {type(factor).__name__} at pos {place}"
            )
    factors = tuple([float(s) for s in scale_factors])
    return tuple([int(n * s) for n, s in zip(shape[2:], factors)]), factors


# ---------------------------------------------------------------------------------------------------- the ops


def _scale_arguments(dims: int) -> str:
    return "".join(f", float? {name}=None" for name in _SCALES[dims])


def _node(name: str) -> str:
    """UpsampleNearest2DBackward0 of upsample_nearest2d."""
    words = [w[:1].upper() + w[1:] for w in name.strip("_").split("_")]
    return "".join(w[:-1] + "D" if w[-1] == "d" and w[-2:-1].isdigit() else w for w in words) + "Backward0"


def _declare_nearest(aten_name: str, backward_name: str, kind: str, dims: int) -> None:
    name = aten_name.removeprefix("aten::")
    kernel = "upsample_nearest2d_channels_last" if dims == 2 else "compute_indices_weights_nearest"

    def forward(x: np.ndarray, size: tuple, scales: tuple) -> np.ndarray:
        _check(x.shape, size, dims)
        _refuse(x, kernel, True)
        return resize_nearest(x, kind, size, scales)

    @op(
        f"{aten_name}.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        expose="no",
        node=_node(name),
    )
    def vec(input: np.ndarray, output_size: Any, scale_factors: Any) -> np.ndarray:
        return forward(input, *_target(name, input.shape, output_size, scale_factors, dims, None))

    @op(
        f"{aten_name}(Tensor self, SymInt[{dims}] output_size{_scale_arguments(dims)}) -> Tensor",
        expose="no",
        node=_node(name),
    )
    def plain(self: np.ndarray, output_size: Any, *scales: Any) -> np.ndarray:
        return forward(self, output_size, scales)

    @op(
        f"{backward_name}(Tensor grad_output, SymInt[{dims}] output_size, SymInt[{dims + 2}] input_size{_scale_arguments(dims)}) -> Tensor",
        expose="no",
        node=_node(name + "_backward"),
    )
    def backward(grad_output: np.ndarray, output_size: tuple, input_size: tuple, *scales: Any) -> np.ndarray:
        return resize_nearest_gradient(grad_output, kind, input_size, scales)

    def of_vec(g: Any, input_shape: tuple, output_size: Any, scale_factors: Any) -> Any:
        size, scales = _target(name, input_shape, output_size, scale_factors, dims, None)
        return backward(g, size, input_shape, *scales)

    vec.derivative(input=of_vec)
    if dims == 1:
        plain.derivative(
            self=lambda g, self_shape, output_size, scales: backward(g, output_size, self_shape, scales)
        )
        backward.derivative(grad_output=lambda g, output_size, scales: plain(g, output_size, scales))
    elif dims == 2:
        plain.derivative(
            self=lambda g, self_shape, output_size, scales_h, scales_w: backward(
                g, output_size, self_shape, scales_h, scales_w
            )
        )
        backward.derivative(
            grad_output=lambda g, output_size, scales_h, scales_w: plain(g, output_size, scales_h, scales_w)
        )
    else:
        plain.derivative(
            self=lambda g, self_shape, output_size, scales_d, scales_h, scales_w: backward(
                g, output_size, self_shape, scales_d, scales_h, scales_w
            )
        )
        backward.derivative(
            grad_output=lambda g, output_size, scales_d, scales_h, scales_w: plain(
                g, output_size, scales_d, scales_h, scales_w
            )
        )


_declare_nearest("aten::upsample_nearest1d", "aten::upsample_nearest1d_backward", "nearest", 1)
_declare_nearest("aten::_upsample_nearest_exact1d", "aten::_upsample_nearest_exact1d_backward", "exact", 1)
_declare_nearest("aten::upsample_nearest2d", "aten::upsample_nearest2d_backward", "nearest", 2)
_declare_nearest("aten::_upsample_nearest_exact2d", "aten::_upsample_nearest_exact2d_backward", "exact", 2)
_declare_nearest("aten::upsample_nearest3d", "aten::upsample_nearest3d_backward", "nearest", 3)
_declare_nearest("aten::_upsample_nearest_exact3d", "aten::_upsample_nearest_exact3d_backward", "exact", 3)


def _declare_smooth(
    aten_name: str, backward_name: str, kind: str, dims: int, kernel: str, bytes_too: bool
) -> None:
    name = aten_name.removeprefix("aten::")
    low_too = kind not in _FILTERS

    def forward(x: np.ndarray, size: tuple, align: bool, scales: tuple) -> np.ndarray:
        _check(x.shape, size, dims)
        if align and kind == "lanczos":
            raise RuntimeError("Lanczos mode does not support align_corners=True")
        _refuse(x, kernel, bytes_too, low_too)
        return resize(x, kind, size, align, scales)

    @op(
        f"{aten_name}.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        expose="no",
        node=_node(name),
    )
    def vec(input: np.ndarray, output_size: Any, align_corners: bool, scale_factors: Any) -> np.ndarray:
        size, scales = _target(name, input.shape, output_size, scale_factors, dims, align_corners)
        return forward(input, size, align_corners, scales)

    @op(
        f"{aten_name}(Tensor self, SymInt[{dims}] output_size, bool align_corners{_scale_arguments(dims)}) -> Tensor",
        expose="no",
        node=_node(name),
    )
    def plain(self: np.ndarray, output_size: Any, align_corners: bool, *scales: Any) -> np.ndarray:
        return forward(self, output_size, align_corners, scales)

    @op(
        f"{backward_name}(Tensor grad_output, SymInt[{dims}] output_size, SymInt[{dims + 2}] input_size, "
        f"bool align_corners{_scale_arguments(dims)}) -> Tensor",
        expose="no",
        node=_node(name + "_backward"),
    )
    def backward(
        grad_output: np.ndarray, output_size: tuple, input_size: tuple, align_corners: bool, *scales: Any
    ) -> np.ndarray:
        return resize_gradient(grad_output, kind, input_size, align_corners, scales)

    def of_vec(g: Any, input_shape: tuple, output_size: Any, align_corners: bool, scale_factors: Any) -> Any:
        size, scales = _target(name, input_shape, output_size, scale_factors, dims, align_corners)
        return backward(g, size, input_shape, align_corners, *scales)

    vec.derivative(input=of_vec)
    if dims == 1:
        plain.derivative(
            self=lambda g, self_shape, output_size, align_corners, scales: backward(
                g, output_size, self_shape, align_corners, scales
            )
        )
        backward.derivative(
            grad_output=lambda g, output_size, align_corners, scales: plain(
                g, output_size, align_corners, scales
            )
        )
    elif dims == 2:
        plain.derivative(
            self=lambda g, self_shape, output_size, align_corners, scales_h, scales_w: backward(
                g, output_size, self_shape, align_corners, scales_h, scales_w
            )
        )
        backward.derivative(
            grad_output=lambda g, output_size, align_corners, scales_h, scales_w: plain(
                g, output_size, align_corners, scales_h, scales_w
            )
        )
    else:
        plain.derivative(
            self=lambda g, self_shape, output_size, align_corners, scales_d, scales_h, scales_w: backward(
                g, output_size, self_shape, align_corners, scales_d, scales_h, scales_w
            )
        )
        backward.derivative(
            grad_output=lambda g, output_size, align_corners, scales_d, scales_h, scales_w: plain(
                g, output_size, align_corners, scales_d, scales_h, scales_w
            )
        )


_declare_smooth(
    "aten::upsample_linear1d",
    "aten::upsample_linear1d_backward",
    "linear",
    1,
    "compute_indices_weights_linear",
    False,
)
_declare_smooth(
    "aten::upsample_bilinear2d",
    "aten::upsample_bilinear2d_backward",
    "linear",
    2,
    "upsample_bilinear2d_channels_last",
    True,
)
_declare_smooth(
    "aten::upsample_trilinear3d",
    "aten::upsample_trilinear3d_backward",
    "linear",
    3,
    "compute_indices_weights_linear",
    False,
)
_declare_smooth(
    "aten::upsample_bicubic2d",
    "aten::upsample_bicubic2d_backward",
    "cubic",
    2,
    "compute_indices_weights_cubic",
    True,
)
_declare_smooth(
    "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_bilinear2d_aa_backward",
    "bilinear",
    2,
    "compute_index_ranges_weights",
    True,
)
_declare_smooth(
    "aten::_upsample_bicubic2d_aa",
    "aten::_upsample_bicubic2d_aa_backward",
    "bicubic",
    2,
    "compute_index_ranges_weights",
    True,
)
_declare_smooth(
    "aten::_upsample_lanczos2d_aa",
    "aten::_upsample_lanczos2d_aa_backward",
    "lanczos",
    2,
    "compute_index_ranges_weights",
    True,
)
