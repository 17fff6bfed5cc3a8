"""Sobol sequences: points that fill a cube evenly. Direction numbers are those of Joe and Kuo, from SciPy."""

from __future__ import annotations

import numpy as np

import mindtorch_v2 as torch

from ._tensor import Tensor


class SobolEngine:
    """Draws points of a Sobol sequence, optionally scrambled, of up to 21201 dimensions."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = torch.from_numpy(_direction_numbers(dimension, self.MAXBIT))
        self.shift = torch.zeros(dimension, dtype=torch.long)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone(memory_format=torch.contiguous_format)
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: torch.dtype | None = None) -> Tensor:
        """The next `n` points, one per row."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if self.num_generated == 0:
            first = self._first_point.to(dtype)
            points = first if n == 1 else torch.cat((first, self._next(n - 1, dtype)))
        else:
            points = self._next(n, dtype)
        self.num_generated += n
        if out is None:
            return points
        return out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: torch.dtype | None = None) -> Tensor:
        """The next `2**m` points; with those drawn before, their number must be a power of two."""
        n, total = 2**m, self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Return to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        self._walk(n - 1 if self.num_generated == 0 else n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(parts)})"

    def _scramble(self) -> None:
        """A random shift, and a random lower triangular matrix over each dimension's bits."""
        generator = None
        if self.seed is not None:
            generator = torch.Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shifts = torch.randint(2, (self.dimension, bits), generator=generator)
        self.shift = torch.mv(shifts, torch.pow(2, torch.arange(0, bits)))
        matrices = torch.randint(2, (self.dimension, bits, bits), generator=generator).tril().numpy()
        bit_indices = np.arange(bits)
        matrices[:, bit_indices, bit_indices] = 1
        high_first = np.left_shift(1, bit_indices[::-1])
        state = self.sobolstate.numpy()
        digits = (state[..., None] & high_first != 0).astype(np.int64)
        state[...] = (np.matmul(digits, matrices.transpose(0, 2, 1)) % 2 * high_first).sum(-1)

    def _walk(self, n: int) -> np.ndarray:
        """The next `n` points as integers, one per row: each differs from the one before by one direction
        number.
        """
        if n <= 0:
            return np.zeros((0, self.dimension), np.int64)
        n_generated = max(self.num_generated - 1, 0)
        point_indices = np.arange(n_generated, n_generated + n)
        lowest_zero = np.log2((~point_indices & (point_indices + 1)).astype(np.float64)).astype(np.int64)
        steps = self.sobolstate.numpy()[:, lowest_zero].T.copy()
        steps[0] ^= self.quasi.numpy()
        points = np.bitwise_xor.accumulate(steps, axis=0)
        self.quasi = torch.from_numpy(points[-1].copy())
        return points

    def _next(self, n: int, dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(self._walk(n)).to(dtype) * (1.0 / 2**self.MAXBIT)


def _direction_numbers(dimension: int, bits: int) -> np.ndarray:
    from scipy.stats import qmc

    return qmc.Sobol(d=dimension, scramble=False, bits=bits)._sv.astype(np.int64)
