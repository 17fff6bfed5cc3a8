"""Sampling: a Generator, a count and a dtype in, a flat NumPy array of torch's CPU numbers out. Independent
of tensors.

Every function gives the numbers in the order torch writes them: memory order of the tensor that is filled.
torch's kernels are compiled with fused multiply-add, and below float64 they round to the dtype at certain
places only; both decide the last bit, so both are reproduced here."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mindtorch_prof.core import compiled

from ._random import Generator

_fused: Any = compiled("mindtorch_v2._ops._fused")
_fused_fma: Any = (lambda *_: None) if _fused is None else _fused.fma
_fused_normals: Any = (lambda *_: None) if _fused is None else _fused.normals
_fused_normal_pairs: Any = (lambda *_: None) if _fused is None else _fused.normal_pairs
_fused_to_single: Any = (lambda *_: None) if _fused is None else _fused.to_single

Array = NDArray[Any]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
F16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)

_TWO_PI = 2.0 * math.pi
_BLOCK = 16384  # elements per pass: the temporaries of one block stay in the second-level cache


# --- uniform draws


def draws64(gen: Generator, n: int) -> NDArray[np.uint64]:
    """n draws of 64 bits, each made of two of 32, the higher half first."""
    raw = gen.raw(2 * n)
    out = raw[0::2] << np.uint64(32)
    out |= raw[1::2]
    return out


def unit53(gen: Generator, n: int) -> NDArray[np.float64]:
    """n float64 in [0, 1): the low 53 bits of a 64-bit draw."""
    if gen.words is not None:
        return _fused.double_units(gen.words, n)
    raw = gen.raw(2 * n)
    bits = raw[0::2] & np.uint64(0x1FFFFF)
    bits <<= np.uint64(32)
    bits |= raw[1::2]
    out = bits.view(np.int64).astype(np.float64)
    out *= 2.0**-53
    return out


def _low24(gen: Generator, n: int) -> NDArray[np.int32]:
    bits = gen.raw(n).astype(np.int32)
    bits &= 0xFFFFFF
    return bits


def unit24(gen: Generator, n: int) -> NDArray[np.float32]:
    """n float32 in [0, 1): the low 24 bits of a 32-bit draw."""
    if gen.words is not None:
        return _fused.units(gen.words, n)
    out = (gen.raw(n).astype(np.int32) & 0xFFFFFF).astype(np.float32)
    out *= np.float32(2.0**-24)
    return out


def uniform(gen: Generator, n: int, dtype: np.dtype[Any], low: float = 0.0, high: float = 1.0) -> Array:
    """n numbers of [low, high); what rounds up to `high` becomes `low`, as in torch."""
    out: Array
    if dtype == F64:
        out = unit53(gen, n)
        if low != 0.0 or high != 1.0:
            out = fma64(out, high - low, low)
    elif low == 0.0 and high == 1.0:
        out = unit24(gen, n)
    else:
        low, high = float(np.float32(low)), float(np.float32(high))
        exact = _low24(gen, n).astype(np.float64)  # 24 bits times 24 bits: the product is exact in float64
        exact *= float(np.float32(high - low)) * 2.0**-24
        exact += low
        out = exact.astype(np.float32)
    if dtype != out.dtype:
        out = out.astype(dtype)
    elif low == 0.0 and high == 1.0:
        return out
    top = out >= dtype.type(high)
    if np.count_nonzero(top):
        out[top] = dtype.type(low)
    return out


# --- fused multiply-add


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    t = total - a
    return total, (a - (total - t)) + (b - t)


def fma64(a: Array, b: float, c: float) -> NDArray[np.float64]:
    """a * b + c in float64 with one rounding (Boldo and Melquiond: low parts are added rounding to odd)."""
    fused = _fused_fma(a, float(b), float(c))
    if fused is not None:
        return fused
    product = a * b
    split = a * 134217729.0
    a_high = split - (split - a)
    a_low = a - a_high
    split_b = b * 134217729.0
    b_high = split_b - (split_b - b)
    b_low = b - b_high
    low = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    c_high, c_low = _two_sum(low, np.float64(c))
    high, rest = _two_sum(product, c_high)
    odd, lost = _two_sum(c_low, rest)
    bits = odd.view(np.int64)
    inexact = (lost != 0.0) & (bits & 1 == 0)
    if inexact.any():
        bits[inexact] += np.where((lost > 0.0) == (odd > 0.0), 1, -1)[inexact]
    return high + odd


def _affine(x: Array, scale: float, shift: float) -> Array:
    """x * scale + shift, fused, in x's own dtype (float32 or float64)."""
    if scale == 1.0 and shift == 0.0:
        x += x.dtype.type(0.0)  # -0 becomes 0
        return x
    if x.dtype == F64:
        return fma64(x, scale, shift)
    wide = x.astype(np.float64)
    wide *= float(np.float32(scale))
    wide += float(np.float32(shift))
    return wide.astype(np.float32)


# --- normal


def _float32(*values: float) -> tuple[float, ...]:
    return tuple(float(np.float32(v)) for v in values)


_LOG = _float32(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LN2_LOW, _LN2_HIGH, _FOUR_OVER_PI, _TWO_PI32 = _float32(-2.12194440e-4, 0.693359375, 4.0 / math.pi, _TWO_PI)
_QUARTER_PI_PARTS = _float32(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_COS = _float32(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN = _float32(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)


class _Float32Math:
    """log, sin and cos of float32 blocks, bit for bit as torch's vector code has them: the polynomials of the
    Cephes library, fused. Values are float64 arrays that hold float32 numbers: products are exact there, and
    `_round` brings each sum back to float32."""

    def __init__(self, size: int) -> None:
        self._narrow = np.empty(size, np.float32)
        self._a, self._b, self._c = np.empty(size), np.empty(size), np.empty(size)

    def _round(self, x: Array) -> None:
        narrow = self._narrow[: x.size]
        narrow[...] = x
        x[...] = narrow

    def _step(self, y: Array, x: Array, constant: float) -> None:
        y *= x
        y += constant
        self._round(y)

    def radius(self, u: NDArray[np.float32]) -> NDArray[np.float32]:
        """sqrt(-2 log(u)) for u in (0, 1]."""
        n = u.size
        bits = u.view(np.int32)
        exponent = bits >> 23
        bits = bits & 0x7FFFFF
        upper = bits >= 0x3504F3  # the mantissa of sqrt(1/2): below it [1, 2), from it on [1/2, 1)
        exponent += upper
        exponent -= 127
        bits -= upper.astype(np.int32) << 23
        bits += 0x3F800000
        x, y, z = self._a[:n], self._b[:n], self._c[:n]
        x[...] = bits.view(np.float32)
        x -= 1.0
        np.multiply(x, x, out=z)
        self._round(z)
        np.multiply(x, _LOG[0], out=y)
        y += _LOG[1]
        self._round(y)
        for constant in _LOG[2:]:
            self._step(y, x, constant)
        y *= x
        self._round(y)
        y *= z
        e = exponent.astype(np.float64)
        tail = e * _LN2_LOW
        self._round(tail)
        y += tail
        self._round(y)
        z *= 0.5
        y -= z
        self._round(y)
        x += y
        self._round(x)
        e *= _LN2_HIGH
        x += e
        self._round(x)
        x *= -2.0
        narrow = x.astype(np.float32)
        return np.sqrt(narrow, out=narrow)

    def circle(self, u: NDArray[np.float32]) -> tuple[Array, Array]:
        """cos and sin of 2 pi u for u in [0, 1)."""
        n = u.size
        x, y, z = self._a[:n], self._b[:n], self._c[:n]
        x[...] = u
        x *= _TWO_PI32
        self._round(x)
        np.multiply(x, _FOUR_OVER_PI, out=y)
        self._round(y)
        octant = y.astype(np.int32)
        octant += 1
        octant &= -2
        j = octant.astype(np.float64)
        for part in _QUARTER_PI_PARTS:
            np.multiply(j, part, out=y)
            x += y
            self._round(x)
        np.multiply(x, x, out=z)
        self._round(z)
        cos = z * _COS[0]
        cos += _COS[1]
        self._round(cos)
        self._step(cos, z, _COS[2])
        cos *= z
        self._round(cos)
        cos *= z
        np.multiply(z, 0.5, out=y)
        cos -= y
        self._round(cos)
        cos += 1.0
        sin = z * _SIN[0]
        sin += _SIN[1]
        self._round(sin)
        self._step(sin, z, _SIN[2])
        sin *= z
        self._round(sin)
        sin *= x
        sin += x
        sin32, cos32 = sin.astype(np.float32), cos.astype(np.float32)
        swapped = (octant & 2).astype(bool)
        c, s = np.where(swapped, sin32, cos32), np.where(swapped, cos32, sin32)
        s_bits, c_bits = s.view(np.int32), c.view(np.int32)
        s_bits ^= (octant & 4) << 29  # the sign bit
        octant += 2
        octant &= 4
        c_bits ^= octant << 29
        return c, s


def _normals_of_pairs32(u: NDArray[np.float32], mean: float, std: float) -> NDArray[np.float32]:
    """Rows of 16 uniforms to rows of 16 normals: eight radii, eight angles."""
    fused = _fused_normals(u, float(mean), float(std))
    if fused is not None:
        return fused
    out = np.empty_like(u)
    rows = _BLOCK // 8
    kernel = _Float32Math(min(len(u), rows) * 8)
    mean, std = float(np.float32(mean)), float(np.float32(std))
    for i in range(0, len(u), rows):
        part, to = u[i : i + rows], out[i : i + rows]
        r = kernel.radius(np.subtract(np.float32(1.0), part[:, :8]).ravel())
        cos, sin = kernel.circle(part[:, 8:].ravel())
        cos *= r
        sin *= r
        to[:, :8] = _affine(cos, std, mean).reshape(-1, 8)
        to[:, 8:] = _affine(sin, std, mean).reshape(-1, 8)
    return out


def _normals_of_pairs64(u: NDArray[np.float64], mean: float, std: float) -> NDArray[np.float64]:
    r = np.sqrt(-2.0 * np.log(1.0 - u[:, :8]))
    theta = _TWO_PI * u[:, 8:]
    return _affine(np.concatenate((r * np.cos(theta), r * np.sin(theta)), axis=1), std, mean)


def _normals_in_rows(gen: Generator, n: int, dtype: np.dtype[Any], mean: float, std: float) -> Array:
    """torch's algorithm from 16 elements on: rows of 16. If elements remain that fill no row, the last 16 are drawn anew."""
    n_full, rest = divmod(n, 16)
    if dtype == F64:
        unit, transform = unit53, _normals_of_pairs64
    else:
        unit, transform = unit24, _normals_of_pairs32  # type: ignore[assignment]
    u = unit(gen, 16 * n_full)
    if dtype in (F32, F64):
        unit(gen, rest)  # torch draws these too before it overwrites them; in half precision it does not
    if rest:
        u = np.concatenate((u, unit(gen, 16)))
    values = transform(u.reshape(-1, 16), mean, std).reshape(-1)
    if rest:
        out = np.empty(n, values.dtype)
        out[: 16 * n_full] = values[:-16]
        out[-16:] = values[-16:]
        values = out
    return values if values.dtype == dtype else values.astype(dtype)


def normal_pairs(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Uniforms, taken two by two, to standard normals, two by two."""
    fused = _fused_normal_pairs(u)
    if fused is not None:
        return fused
    r = np.sqrt(-2.0 * np.log1p(-u[1::2]))
    theta = _TWO_PI * u[0::2]
    out = np.empty_like(u)
    np.multiply(r, np.cos(theta), out=out[0::2])
    np.multiply(r, np.sin(theta), out=out[1::2])
    return out


def normals_one_by_one(gen: Generator, n: int) -> NDArray[np.float64]:
    """n standard normals in float64, pair by pair; a second one left over waits in the generator."""
    out = np.empty(n)
    taken = 0
    if n and gen.waiting_normal is not None:
        out[0] = gen.waiting_normal
        gen.waiting_normal = None
        taken = 1
    missing = n - taken
    if missing:
        pairs = normal_pairs(unit53(gen, missing + missing % 2))
        out[taken:] = pairs[:missing]
        if missing % 2:
            gen.waiting_normal = float(pairs[-1])
    return out


def normal(
    gen: Generator, n: int, dtype: np.dtype[Any], mean: float = 0.0, std: float = 1.0, contiguous: bool = True
) -> Array:
    """n normals. From 16 elements on, torch has another algorithm if the tensor to fill is contiguous."""
    if n >= 16 and contiguous:
        return _normals_in_rows(gen, n, dtype, mean, std)
    return _cast(_affine(normals_one_by_one(gen, n), std, mean), dtype)


def log_normal(gen: Generator, n: int, dtype: np.dtype[Any], mean: float = 1.0, std: float = 2.0) -> Array:
    """exp of n normals."""
    with np.errstate(over="ignore"):
        return _cast(np.exp(fma64(normals_one_by_one(gen, n), std, mean)), dtype)


# --- other continuous distributions


def _cast(x: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == x.dtype:
        return x
    fused = _fused_to_single(x) if dtype == F32 else None
    if fused is not None:
        return fused
    with np.errstate(over="ignore"):
        if dtype in (F16, BF16):
            x = x.astype(np.float32)  # torch goes to half precision in two steps
        return x.astype(dtype, copy=False)


def exponential(gen: Generator, n: int, dtype: np.dtype[Any], rate: float = 1.0) -> Array:
    """n waiting times of the given rate."""
    x = unit53(gen, n)
    np.negative(x, out=x)
    np.log1p(x, out=x)
    x *= -1.0 / rate
    return _cast(x, dtype)


def cauchy(gen: Generator, n: int, dtype: np.dtype[Any], median: float = 0.0, sigma: float = 1.0) -> Array:
    """n Cauchy numbers."""
    return _cast(fma64(np.tan(math.pi * (unit53(gen, n) - 0.5)), sigma, median), dtype)


def geometric(gen: Generator, n: int, dtype: np.dtype[Any], p: float) -> Array:
    """n numbers of trials up to the first success."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.ceil(np.log(unit53(gen, n)) / math.log1p(-p))
        if dtype.kind in "iu" and dtype != np.int32:
            return x.astype(np.int64).astype(dtype)
        return _cast(x, dtype)


# --- discrete distributions


def bernoulli(gen: Generator, n: int, p: float) -> NDArray[np.bool_]:
    """n times whether a float64 uniform is below p."""
    raw = gen.raw(2 * n).reshape(-1, 2)
    bits = raw[:, 0] & np.uint64(0x1FFFFF)
    bits <<= np.uint64(32)
    bits |= raw[:, 1]
    return bits < np.uint64(math.ceil(p * 2.0**53))


def bernoulli_each(gen: Generator, p: Array) -> NDArray[np.bool_]:
    """For each probability whether a uniform is below it; float64 draws for float64 p, else float32 draws."""
    if p.dtype == F64:
        return unit53(gen, p.size) < p
    return unit24(gen, p.size) < p.astype(np.float32, copy=False)


def integers(gen: Generator, n: int, dtype: np.dtype[Any], low: int, high: int) -> Array:
    """n integers of [low, high); from a span of 2**28 on, torch takes 64 bits for each."""
    span = high - low
    if span >= 1 << 28:
        wide = draws64(gen, n)
        if span < 1 << 64:
            wide %= np.uint64(span)
            wide += np.uint64(low & 0xFFFFFFFFFFFFFFFF)
        return wide.view(np.int64).astype(dtype, copy=False)
    narrow = gen.raw(n).astype(np.uint32)
    narrow %= np.uint32(span)
    if low == 0:
        return narrow.astype(dtype)
    out = narrow.astype(np.int64)
    out += low
    return out.astype(dtype, copy=False)


_MANTISSA = {F16: 11, BF16: 8, F32: 24, F64: 53}


def integers_of_dtype(gen: Generator, n: int, dtype: np.dtype[Any]) -> Array:
    """n integers over all that the dtype can hold without gaps from zero on."""
    top = _MANTISSA.get(dtype, 0)
    if dtype == F64:
        return (draws64(gen, n) % np.uint64((1 << top) + 1)).astype(dtype)
    if dtype == np.int64:
        return (draws64(gen, n) & np.uint64(0x7FFFFFFFFFFFFFFF)).view(np.int64)
    if dtype == np.uint64:
        return draws64(gen, n)
    raw = gen.raw(n)
    if top:
        return (raw % np.uint64((1 << top) + 1)).astype(dtype)
    if dtype == np.bool_:
        return (raw & np.uint64(1)).astype(np.bool_)
    return (raw & np.uint64(np.iinfo(dtype).max)).astype(dtype)


def permutation(gen: Generator, n: int) -> NDArray[np.int64]:
    """A random order of range(n)."""
    if n < 2:
        return np.arange(n)
    if n >= 0xFFFFFFFF // 20:
        return _inside_out(n, draws64(gen, n))
    steps = np.arange(n - 1)
    partners = (gen.raw(n - 1) % (np.uint64(n) - steps.view(np.uint64))).view(np.int64)
    partners += steps
    if n > 512:
        return _swaps(partners, n)
    order = list(range(n))
    for i, j in enumerate(partners.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order)


def _by_partner(partners: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Steps sorted by partner, then time; their partners; where a new partner begins."""
    keys = np.sort(partners << 32 | np.arange(partners.size))
    step, partner = keys & 0xFFFFFFFF, keys >> 32
    begins = np.ones(keys.size, np.bool_)
    np.not_equal(partner[1:], partner[:-1], out=begins[1:])
    return step, partner, begins


def _followed(source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the links end: source of source of ... source, until it is its own."""
    while True:
        further = source[source]
        if np.array_equal(further, source):
            return source
        source = further


def _swaps(partners: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """range(n) after the swaps i <-> partners[i] >= i, i = 0, 1, ..., computed without doing them one by one.

    Position p, before its own swap, holds what the last earlier swap with partner p wrote there: the value
    at that swap's own position. These links end at a position without earlier writes, which holds itself."""
    step, partner, begins = _by_partner(partners)
    source = np.arange(n)
    moved = step != partner
    source[partner[moved]] = step[moved]  # of several, the last one stays
    source = _followed(source)
    taken = np.empty(n - 1, np.int64)
    taken[1:] = source[step[:-1]]
    taken[begins] = partner[begins]
    out = np.empty(n, np.int64)
    out[step] = taken
    out[n - 1] = source[n - 1]
    return out


def _inside_out(n: int, draws: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The shuffle for very large n: at step i, position i takes the value of a partner, and the partner gets i."""
    partners = (draws % np.arange(1, n + 1, dtype=np.uint64)).view(np.int64)
    step, partner, begins = _by_partner(partners)
    source = partners.copy()  # where the partner got no value before: what the partner took at its own step
    later = np.flatnonzero(~begins)
    previous = np.full(n, -1)
    previous[step[later]] = step[later - 1]
    settled = previous >= 0
    settled |= partners == np.arange(n)
    source[settled] = np.flatnonzero(settled)
    out = np.where(previous >= 0, previous, np.arange(n))[_followed(source)]
    out[partner] = step  # of several, the last one stays
    return out
