"""Sampling images at given positions: affine grids, grid_sampler and its gradients.

Along each dimension a position reads a few places of the image (taps), each with a weight; the corners of a position are the products of
its taps. All corners of all positions are one sparse matrix, so that sampling and its transpose are one product each.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import BY_NUM, LOW_FLOATS
from . import _core
from ._half_precision import in_float32
from ._namespace import functions as F

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


# ---------------------------------------------------------------------------------------------------- positions and taps


class Tap(NamedTuple):
    """One place that each position reads along a dimension: its number, whether it is inside, the weight and its derivatives."""

    place: np.ndarray
    inside: np.ndarray
    weight: Any
    slope: Any
    curve: Any


def _reflected(u: np.ndarray, size: int, align: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions mirrored at the image's ends until they are inside, and the sign of their direction."""
    kind = u.dtype.type
    low, span = (kind(0), kind(size - 1)) if align else (kind(-0.5), kind(size))
    if span == 0:
        return np.zeros_like(u), np.zeros_like(u)
    away = u - low
    sign = np.where(away < 0, kind(-1), kind(1))
    away = np.abs(away)
    turns, rest = np.floor(away / span), np.fmod(away, span)
    odd = np.fmod(turns, kind(2)) != 0
    return np.where(odd, span - rest, rest) + low, np.where(odd, -sign, sign)


def _clipped(u: np.ndarray, size: int, planar: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions clipped to the image, and where that changes nothing. NaN becomes the start (3-d: the end)."""
    kind = u.dtype.type
    free = (u > 0) & (u < kind(size - 1))
    held = np.minimum(np.maximum(u, kind(0)), kind(size - 1))
    return np.where(np.isnan(u), kind(0 if planar else size - 1), held), free.astype(u.dtype)


def _bounded(u: np.ndarray, size: int, padding: int, align: bool, planar: bool) -> tuple[np.ndarray, Any]:
    """Positions after the padding mode is applied, and the derivative of that."""
    if padding == ZEROS:
        return u, 1
    slope: Any = 1
    if padding == REFLECTION:
        u, slope = _reflected(u, size, align)
    u, free = _clipped(u, size, planar)
    return u, slope * free


def _tap(place: np.ndarray, size: int, weight: Any, slope: Any, curve: Any) -> Tap:
    inside = (place >= 0) & (place <= size - 1)
    return Tap(np.where(inside, place, 0).astype(np.int64), inside, weight, slope, curve)


def _near(x: np.ndarray) -> tuple:
    a, b, one, two, three, six = map(x.dtype.type, (1.25, 2.25, 1, 2, 3, 6))
    return (a * x - b) * x * x + one, (three * a * x - two * b) * x, six * a * x - two * b


def _far(x: np.ndarray) -> tuple:
    a, five, eight, four, three, ten, six = map(x.dtype.type, (-0.75, -3.75, -6, -3, -2.25, -7.5, -4.5))
    return ((a * x - five) * x + eight) * x - four, (three * x - ten) * x + eight, six * x - ten


def _cubic(t: np.ndarray) -> list[tuple]:
    """Weight, slope and curvature of the four neighbours of a position that lies `t` after the second."""
    one, two = t.dtype.type(1), t.dtype.type(2)
    parts = [(_far(t + one), one), (_near(t), one), (_near(one - t), -one), (_far(two - t), -one)]
    return [(weight, sign * slope, curve) for (weight, slope, curve), sign in parts]


def _taps(
    c: np.ndarray, size: int, mode: int, padding: int, align: bool, planar: bool
) -> tuple[list[Tap], Any]:
    """The taps of positions in [-1, 1] along one dimension, and the factor of their derivatives."""
    kind = c.dtype.type
    if align:
        u, scale = (c + kind(1)) / kind(2) * kind(size - 1), kind(size - 1) / kind(2)
    else:
        u, scale = ((c + kind(1)) * kind(size) - kind(1)) / kind(2), kind(size) / kind(2)
    if mode == BICUBIC:
        first = np.floor(u)
        taps = []
        for k, parts in enumerate(_cubic(u - first)):
            taps.append(_tap(_bounded(first + kind(k - 1), size, padding, align, planar)[0], size, *parts))
        return taps, scale
    u, slope = _bounded(u, size, padding, align, planar)
    if not planar:
        u = np.where(np.abs(u) < 2**31, u, kind(-100))
    if mode == NEAREST:
        return [_tap(np.rint(u), size, kind(1), kind(0), kind(0))], kind(0)
    first = np.floor(u)
    t = u - first
    return [
        _tap(first, size, kind(1) - t, kind(-1), kind(0)),
        _tap(first + kind(1), size, t, kind(1), kind(0)),
    ], scale * slope


class Corners:
    """All corners of all positions: rows of the image (the last row is zero) and their weights, [positions, corners]."""

    def __init__(self, x: np.ndarray, grid: np.ndarray, mode: int, padding: int, align: bool) -> None:
        self.size, dims = x.shape[2:], x.ndim - 2
        self.batch, self.channels = x.shape[:2]
        self.out = grid.shape[1:-1]
        self.dims, self.count = dims, math.prod(self.out)
        self.nothing = self.batch * math.prod(self.size)
        self.dtype, self.low = x.dtype, x.dtype in LOW_FLOATS
        self.work = np.dtype(np.float32) if self.low else x.dtype
        positions = grid.reshape(self.batch * self.count, dims)
        self.taps, self.scales = [], []
        with np.errstate(invalid="ignore", over="ignore"):
            for d, size in enumerate(self.size):  # the grid's last dimension starts with the image's last
                taps, scale = _taps(positions[:, dims - 1 - d], size, mode, padding, align, dims == 2)
                self.taps.append(taps)
                self.scales.append(scale)
        self.choices = list(itertools.product(*self.taps))
        self.rows = np.stack([self._row(choice) for choice in self.choices], 1)

    def _row(self, choice: tuple) -> np.ndarray:
        row: Any = np.repeat(np.arange(self.batch, dtype=np.int64), self.count)
        inside: Any = True
        for tap, size in zip(choice, self.size):
            row = row * size + tap.place
            inside = inside & tap.inside
        return np.where(inside, row, self.nothing)

    def weights(self, *along: int) -> np.ndarray:
        """The corners' weights, differentiated along the given dimensions."""
        corner_weights = np.empty(self.rows.shape, self.work)
        positive = self.dtype.type(1)
        with np.errstate(invalid="ignore", over="ignore"):
            for k, choice in enumerate(self.choices):
                value: Any = positive
                for d in reversed(range(self.dims)):
                    value = value * (choice[d].weight, choice[d].slope, choice[d].curve)[along.count(d)]
                corner_weights[:, k] = value
        return corner_weights

    def matrix(self, weights: np.ndarray) -> Any:
        """Positions x rows."""
        from scipy.sparse import csr_array

        count, corners = self.rows.shape
        ends = np.arange(0, count * corners + 1, corners)
        return csr_array((weights.reshape(-1), self.rows.reshape(-1), ends), shape=(count, self.nothing + 1))

    def rows_of(self, x: np.ndarray) -> np.ndarray:
        """An image as rows of channels, with a last row of zeros."""
        made = np.zeros((self.nothing + 1, self.channels), self.work)
        if x.size:
            made[:-1].reshape(self.batch, -1, self.channels)[...] = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
        return made

    def positions_of(self, g: np.ndarray) -> np.ndarray:
        """A sampled image as rows of channels."""
        flat = g.reshape(self.batch, self.channels, self.count).swapaxes(1, 2)
        return np.ascontiguousarray(flat.reshape(-1, self.channels), self.work)

    def image(self, rows: np.ndarray, size: tuple, dtype: np.dtype) -> np.ndarray:
        """Rows of channels as an image."""
        flat = rows.reshape(self.batch, math.prod(size), self.channels).swapaxes(1, 2)
        return flat.astype(dtype, "C").reshape(self.batch, self.channels, *size)

    def products(self, rows: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The inner products of each position's gradient with the rows at its corners."""
        made = np.empty(self.rows.shape, self.work)
        channels, by_channel = np.ascontiguousarray(rows.T), g.T
        for k in range(made.shape[1]):
            made[:, k] = np.add.reduce(channels[:, self.rows[:, k]] * by_channel, 0, initial=0)
        return made

    def along(self, d: int, dots: np.ndarray) -> np.ndarray:
        """The derivative of all positions along a dimension, from the inner products of their corners."""
        weighted = self.weights(d) * dots
        return np.add.reduce(np.ascontiguousarray(weighted.T), 0, initial=0) * self.scales[d]

    def grid(self, parts: list, dtype: np.dtype) -> np.ndarray:
        """One value per position and dimension, as a grid."""
        made = np.empty((self.batch * self.count, self.dims), dtype)
        for d, part in enumerate(parts):
            made[:, self.dims - 1 - d] = part
        return made.reshape(self.batch, *self.out, self.dims)


# ---------------------------------------------------------------------------------------------------- grid_sampler


def sample(x: np.ndarray, grid: np.ndarray, mode: int, padding: int, align: bool) -> np.ndarray:
    """The image's values at the positions of a grid."""
    fused = _core.grid_sample(x, grid, mode, padding, align)
    if fused is not None:
        return fused
    corners = Corners(x, grid, mode, padding, align)
    if not corners.low:
        found = corners.matrix(corners.weights()) @ corners.rows_of(x)
    else:
        found = _sample_low(corners, x)
    return corners.image(found, corners.out, x.dtype)


def _sample_low(corners: Corners, x: np.ndarray) -> np.ndarray:
    """The same for half and bfloat16, which torch rounds after every step; cubic interpolates rows before columns."""
    rows = corners.rows_of(x).astype(x.dtype)
    if len(corners.choices) != 16:
        weights = corners.weights().astype(x.dtype)
        return _rounded_sum(
            [rows[corners.rows[:, k]] * weights[:, k : k + 1] for k in range(weights.shape[1])]
        )
    down, across = [[tap.weight[:, None] for tap in taps] for taps in corners.taps]
    lines = [
        _rounded_sum([rows[corners.rows[:, 4 * i + j]] * weight for j, weight in enumerate(across)])
        for i in range(4)
    ]
    return _rounded_sum([line * weight for line, weight in zip(lines, down)])


def _rounded_sum(parts: list[np.ndarray]) -> np.ndarray:
    made = parts[0]
    for part in parts[1:]:
        made = made + part
    return made


@in_float32
def sample_gradient(
    g: np.ndarray, x: np.ndarray, grid: np.ndarray, mode: int, padding: int, align: bool, mask: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The gradients by the image and by the grid."""
    fused = _core.grid_sample_backward(g, x, grid, mode, padding, align, bool(mask[0]), bool(mask[1]))
    if fused is not None:
        to_image, to_grid = fused
        none = np.empty(0, g.dtype)
        return none if to_image is None else to_image, none if to_grid is None else to_grid
    corners = Corners(x, grid, mode, padding, align)
    rows = corners.positions_of(g)
    to_image = to_grid = np.empty(0, g.dtype)
    if mask[0]:
        back = corners.matrix(corners.weights()).T @ rows
        to_image = corners.image(back[:-1], corners.size, x.dtype)
    if mask[1] and mode == NEAREST:
        to_grid = np.zeros(grid.shape, grid.dtype)
    elif mask[1]:
        dots = corners.products(corners.rows_of(x), rows)
        parts = [corners.along(d, dots) for d in range(corners.dims)]
        to_grid = corners.grid(parts, grid.dtype)
    return to_image, to_grid


def sample_second(
    gg_image: Any,
    gg_grid: Any,
    g: np.ndarray,
    x: np.ndarray,
    grid: np.ndarray,
    mode: int,
    padding: int,
    align: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of `sample_gradient`'s two results, with respect to g, the image and the grid."""
    corners = Corners(x, grid, mode, padding, align)
    rows = corners.positions_of(g)
    image = corners.rows_of(x)
    to_g: Any = np.zeros(rows.shape, corners.work)
    to_image: Any = np.zeros(image.shape, corners.work)
    parts: list = [0] * corners.dims
    slopes = [corners.weights(d) for d in range(corners.dims)]
    if gg_image is not None:
        back = corners.rows_of(gg_image)
        to_g += corners.matrix(corners.weights()) @ back
        dots = corners.products(back, rows)
        parts = [(slope * dots).sum(1) * scale for slope, scale in zip(slopes, corners.scales)]
    if gg_grid is not None and mode != NEAREST:
        flat = gg_grid.reshape(-1, corners.dims).astype(corners.work, copy=False)
        along = [flat[:, corners.dims - 1 - d] * corners.scales[d] for d in range(corners.dims)]
        matrix = corners.matrix(np.add.reduce([slope * a[:, None] for slope, a in zip(slopes, along)]))
        to_g += matrix @ image
        to_image += matrix.T @ rows
        dots = corners.products(image, rows)
        for d, e in itertools.product(range(corners.dims), repeat=2):
            parts[d] = parts[d] + (corners.weights(d, e) * dots).sum(1) * along[e] * corners.scales[d]
    return (
        corners.image(to_g, corners.out, g.dtype),
        corners.image(to_image[:-1], corners.size, x.dtype),
        corners.grid(parts, grid.dtype),
    )


def _check(x: Any, grid: Any) -> None:
    sizes = f"input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
    if x.shape[0] != grid.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}"
        )
    dims = len(x.shape) - 2
    if grid.shape[-1] != dims:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {dims} in last dimension, but got grid with sizes {list(grid.shape)}"
        )
    for d, n in enumerate(x.shape[2:], 2):
        if n == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(x.shape)} with dimension {d} being empty"
            )


def _check_dims(x: Any, grid: Any, wanted: int) -> None:
    if len(x.shape) != wanted or len(grid.shape) != wanted:
        raise RuntimeError(
            f"grid_sampler(): expected {wanted}D input and grid with same number of dimensions, "
            f"but got input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
        )


def _check_dtypes(x: np.ndarray, grid: np.ndarray, kernel: str) -> None:
    mine, theirs = BY_NUM[x.dtype.num], BY_NUM[grid.dtype.num]
    if not mine.is_floating_point:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{mine._abbr}'")
    if mine is not theirs:
        raise RuntimeError(f"expected scalar type {mine._abbr} but found {theirs._abbr}")


@op(
    "mindtorch::grid_sampler_second(Tensor? gg_input, Tensor? gg_grid, Tensor grad_output, Tensor input, Tensor grid, "
    "int interpolation_mode, int padding_mode, bool align_corners) -> (Tensor, Tensor, Tensor)",
    expose="no",
)
def grid_sampler_second(
    gg_input: Any,
    gg_grid: Any,
    grad_output: np.ndarray,
    input: np.ndarray,
    grid: np.ndarray,
    mode: int,
    padding: int,
    align: bool,
) -> Any:
    return sample_second(gg_input, gg_grid, grad_output, input, grid, mode, padding, align)


def _declare(aten_name: str, backward_name: str, dims: int, kernel: str) -> Any:
    arguments = "Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners"

    @op(f"{aten_name}({arguments}) -> Tensor", expose="function", node=f"GridSampler{dims}DBackward0")
    def sampler(
        input: np.ndarray, grid: np.ndarray, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> np.ndarray:
        _check_dims(input, grid, dims + 2)
        _check(input, grid)
        _check_dtypes(input, grid, kernel)
        return sample(input, grid, interpolation_mode, padding_mode, align_corners)

    @op(
        f"{backward_name}(Tensor grad_output, {arguments}, bool[2] output_mask) -> (Tensor, Tensor)",
        expose="no",
        node=f"GridSampler{dims}DBackwardBackward0",
    )
    def backward(
        grad_output: np.ndarray,
        input: np.ndarray,
        grid: np.ndarray,
        mode: int,
        padding: int,
        align: bool,
        output_mask: Any,
    ) -> Any:
        return sample_gradient(grad_output, input, grid, mode, padding, align, output_mask)

    @sampler.backward("input", "grid")
    def _(
        g: Any,
        input: Any,
        grid: Any,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        needs: Any,
    ) -> Any:
        to_input, to_grid = backward(g, input, grid, interpolation_mode, padding_mode, align_corners, needs)
        return to_input if needs[0] else None, to_grid if needs[1] else None

    @backward.backward("grad_output", "input", "grid")
    def _(
        grads: Any,
        grad_output: Any,
        input: Any,
        grid: Any,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        output_mask: Any,
    ) -> Any:
        first, second = (g if asked else None for g, asked in zip(grads, output_mask))
        if first is None and second is None:
            return None, None, None
        return grid_sampler_second(
            first, second, grad_output, input, grid, interpolation_mode, padding_mode, align_corners
        )

    return sampler


_SAMPLERS = {
    4: _declare(
        "aten::grid_sampler_2d", "aten::grid_sampler_2d_backward", 2, "grid_sampler_2d_cpu_kernel_impl"
    ),
    5: _declare("aten::grid_sampler_3d", "aten::grid_sampler_3d_backward", 3, "grid_sampler3d_cpu"),
}


@composite(
    "aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    expose="function",
)
def grid_sampler(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    for position, (name, value) in enumerate((("input", input), ("grid", grid)), 1):
        if not isinstance(value, _dispatch.Tensor):
            raise TypeError(
                f"grid_sampler(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
            )
    _check(input, grid)
    if len(input.shape) == 5 and interpolation_mode == BICUBIC:
        _check_dims(input, grid, 5)
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _SAMPLERS[4 if len(input.shape) == 4 else 5](
        input, grid, interpolation_mode, padding_mode, align_corners
    )


# ---------------------------------------------------------------------------------------------------- affine grids


def _base(like: Any, size: tuple, align: bool) -> Any:
    """The position of every pixel and a one: [batch, pixels, dims + 1]."""
    spatial = size[2:]
    dims = len(spatial)
    base = F.empty((size[0], *spatial, dims + 1), dtype=like.dtype)
    for d in reversed(range(dims)):
        column = F.select(base, -1, dims - 1 - d)
        n = spatial[d]
        line = F.linspace(-1, 1, n, dtype=like.dtype) if n > 1 else F.zeros((n,), dtype=like.dtype)
        if not align and n > 1:
            line = F.div(F.mul(line, n - 1), n)
        for _ in range(dims - 1 - d):
            line = F.unsqueeze_(line, -1)
        F.copy_(column, line)
    F.fill_(F.select(base, -1, dims), 1)
    return F.view(base, (size[0], -1, dims + 1))


def _check_theta(theta: Any, size: tuple) -> None:
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    dims = len(size) - 2
    if (theta.shape[0], theta.shape[2]) != (size[0], dims + 1):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {dims + 1}] "
            f"but got: [{theta.shape[0]}, {theta.shape[2]}]."
        )
    if theta.shape[1] != dims:
        count = size[0] * math.prod(size[2:]) * theta.shape[1]
        raise RuntimeError(f"shape '{[size[0], *size[2:], dims]}' is invalid for input of size {count}")


@op(
    "aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    expose="function",
    on="tensors",
)
def affine_grid_generator(theta: Any, size: tuple, align_corners: bool) -> Any:
    _check_theta(theta, size)
    base = _base(theta, size, align_corners)
    grid = F.view(F.bmm(base, F.transpose(theta, 1, 2)), (size[0], *size[2:], len(size) - 2))
    return _dispatch.wrap(grid._array)  # above autograd it is no view


@op(
    "aten::affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    expose="no",
    on="tensors",
)
def affine_grid_generator_backward(grad: Any, size: tuple, align_corners: bool) -> Any:
    base = F.transpose(_base(grad, size, align_corners), 1, 2)
    flat = F.reshape(grad, (size[0], -1, len(size) - 2))
    return _dispatch.wrap(F.transpose(F.bmm(base, flat), 1, 2)._array)


affine_grid_generator.derivative(
    theta=lambda g, size, align_corners: affine_grid_generator_backward(g, size, align_corners)
)
affine_grid_generator_backward.derivative(
    grad=lambda g, size, align_corners: affine_grid_generator(g, size, align_corners)
)
