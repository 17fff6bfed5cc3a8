"""Random fills: uniform_, normal_, random_ and the like, and torch.normal. The numbers come from
`_sampling`; this module adds tensors, argument checks and torch's error messages."""

from __future__ import annotations

import functools
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _device, _dispatch, _dtype, _sampling
from .._dispatch import function, op
from .._dtype import BY_NUM
from .._meta import meta_tensor
from .._random import Generator, default_generator
from . import factories_out
from ._children import (
    UNKNOWN,
    Child,
    child,
    dtype_number,
    dtype_or_default,
    empty,
    empty_like,
    item,
    tensor,
    tensor_of,
)
from ._layout import dense_order, empty_as
from ._namespace import functions as F
from .creation import _sizes, finish

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings

_STRIDED = _dtype.strided
_C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int", "uint16": "short unsigned int", "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


# --- common steps


def generator_of(generator: Any, name: str) -> Generator:
    """The generator an op draws from: the one given, or the default."""
    if generator is None:
        return default_generator
    if isinstance(generator, Generator):
        return generator
    raise TypeError(f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}")


def real(value: Any, where: str) -> float:
    """A float argument as a Python float; `where` starts the error message otherwise."""
    if isinstance(value, (int, float, np.floating, np.integer)):
        return float(value)
    if isinstance(value, _dispatch.Tensor) and value.ndim == 0 and not value._rg:
        return float(value.item())
    raise TypeError(f"{where} must be float, not {type(value).__name__}")


def not_implemented(kernel: str, dtype: Any) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype._abbr}'")


def invalid_combination(name: str, args: tuple, kwargs: dict, accepted: tuple[str, ...]) -> TypeError:
    """torch's TypeError for arguments that fit no overload."""
    kinds = [type(a).__name__ for a in args]
    kinds += [f"{k}={type(v).__name__}" for k, v in kwargs.items() if v is not None]
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(kinds)}), "
        "but expected one of:\n" + "".join(f" * ({line})\n" for line in accepted)
    )


def target(self: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The array a fill writes to."""
    if out is None:
        return empty_as(self)
    if 0 in out.strides and out.size and any(s == 0 and n > 1 for s, n in zip(out.strides, out.shape)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )
    return out


def in_memory_order(array: np.ndarray) -> np.ndarray:
    """A view whose row-major order is the order in memory, in which torch draws."""
    if array.flags.c_contiguous:
        return array
    return array.transpose(dense_order(array.shape, array.strides))


def put(out: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Write values that were drawn in the order of memory."""
    ordered = in_memory_order(out)
    ordered[...] = values.reshape(ordered.shape)
    return out


def _doubled(dtype: Any) -> np.dtype:
    """The dtype of the real and imaginary parts."""
    return dtype.to_real()._np


def _zeros(g: Any) -> Any:
    return F.zeros_like(g)


# --- uniform


@functools.cache
def _largest(dtype: Any) -> float:
    return float(_dtype.finfo(dtype).max)


def _check_uniform(dtype: Any, low: float, high: float) -> None:
    if dtype._rank < 2:
        raise not_implemented("check_uniform_bounds", dtype)
    if 0 <= low <= high <= 1:
        return
    scalar = dtype.to_real()
    largest = _largest(scalar)
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[scalar._name]}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar._abbr}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def uniforms(gen: Generator, count: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    if dtype._rank == 3:
        return _sampling.uniform(gen, 2 * count, _doubled(dtype), low, high).view(dtype._np)
    return _sampling.uniform(gen, count, dtype._np, low, high)


@op("aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
    inplace="aten::uniform_", expose="no")  # fmt: skip
def uniform(self: np.ndarray, from_: Any, to: Any, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    gen = generator_of(generator, "uniform_")
    low = real(from_, "uniform_(): argument 'from' (position 1)")
    high = real(to, "uniform_(): argument 'to' (position 2)")
    dtype = BY_NUM[out.dtype.num]
    _check_uniform(dtype, low, high)
    return put(out, uniforms(gen, out.size, dtype, low, high))


uniform.derivative(self=_zeros)
uniform_ = uniform.op.inplace.entry


# --- normal


def check_normal(dtype: Any, count: int, std: float = 1.0) -> None:
    """Raise for a negative std, and for dtypes without normal numbers unless `count` is 0."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype._rank < 2 and count:
        raise not_implemented("normal_kernel_cpu", dtype)


def normals(
    gen: Generator, count: int, dtype: Any, mean: float = 0.0, std: float = 1.0, contiguous: bool = True
) -> np.ndarray:
    if not count:
        return np.empty(0, dtype._np)
    if dtype._rank == 3:
        std /= math.sqrt(2.0)
        return _sampling.normal(gen, 2 * count, _doubled(dtype), mean, std, contiguous).view(dtype._np)
    return _sampling.normal(gen, count, dtype._np, mean, std, contiguous)


def _normal_fill(self: np.ndarray, mean: Any, std: Any, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    gen = generator_of(generator, "normal_")
    mean = real(mean, "normal_(): argument 'mean' (position 1)")
    std = real(std, "normal_(): argument 'std' (position 2)")
    dtype = BY_NUM[out.dtype.num]
    check_normal(dtype, out.size, std)
    return put(out, normals(gen, out.size, dtype, mean, std, out.flags.c_contiguous))


_normal_inplace = op(
    "aten::normal(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
    inplace="aten::normal_", expose="no",
)(_normal_fill)  # fmt: skip
_normal_inplace.derivative(self=_zeros)
normal_ = _normal_inplace.op.inplace.entry


def _check_stds(std: np.ndarray) -> None:
    if std.dtype.kind in "cW":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.size and not std.min() >= 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")


def _zeros_of(shape: Any, g: Any) -> Any:
    return F.zeros(tuple(shape), dtype=g.dtype)


@op("aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    node="NormalBackward3", expose="no")  # fmt: skip
def _normal_tensor_tensor(mean: np.ndarray, std: np.ndarray, generator: Any) -> np.ndarray:
    _check_stds(std)
    gen = generator_of(generator, "normal")
    dtype = BY_NUM[mean.dtype.num]
    shape = np.broadcast_shapes(mean.shape, std.shape)
    check_normal(dtype, math.prod(shape))
    out = normals(gen, math.prod(shape), dtype).reshape(shape)
    np.multiply(out, std, out=out, casting="unsafe")
    return np.add(out, mean, out=out)


_normal_tensor_tensor.derivative(
    mean=lambda g, mean_shape: _zeros_of(mean_shape, g), std=lambda g, std_shape: _zeros_of(std_shape, g)
)


@op("aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
    node="NormalBackward1", expose="no")  # fmt: skip
def _normal_tensor_float(mean: np.ndarray, std: Any, generator: Any) -> np.ndarray:
    gen = generator_of(generator, "normal")
    std = real(std, "normal(): argument 'std' (position 2)")
    dtype = BY_NUM[mean.dtype.num]
    check_normal(dtype, mean.size, std)
    out = normals(gen, mean.size, dtype, 0.0, std).reshape(mean.shape)
    return np.add(out, mean, out=out)


_normal_tensor_float.derivative(mean=lambda g, mean_shape: _zeros_of(mean_shape, g))


@op("aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    node="NormalBackward2", expose="no")  # fmt: skip
def _normal_float_tensor(mean: Any, std: np.ndarray, generator: Any) -> np.ndarray:
    _check_stds(std)
    gen = generator_of(generator, "normal")
    dtype = BY_NUM[std.dtype.num]
    check_normal(dtype, std.size)
    out = normals(gen, std.size, dtype).reshape(std.shape)
    np.multiply(out, std, out=out)
    return np.add(out, dtype._np.type(mean), out=out)


_normal_float_tensor.derivative(std=lambda g, std_shape: _zeros_of(std_shape, g))


@op("aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no", nondifferentiable=True)  # fmt: skip
def _normal_float_float(
    mean: float,
    std: float,
    size: tuple,
    generator: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
) -> np.ndarray:
    dtype = dtype or _dtype.Default.dtype
    check_normal(dtype, math.prod(size), std)
    gen = generator_of(generator, "normal")
    return normals(gen, math.prod(size), dtype, mean, std).reshape(size)


def _check_children(std: Any) -> list[Child]:
    """The ops by which torch checks standard deviations."""
    lowest = tensor((), std)
    return [
        child("aten::min", std),
        child("aten::ge.Scalar", lowest, 0),
        item(tensor((), std, "bool")),
    ]


@_normal_tensor_tensor.children
def _(mean: Any, std: Any, generator: Any) -> list[Child]:
    shape = UNKNOWN if mean is UNKNOWN else np.broadcast_shapes(mean.shape, std.shape)
    result = tensor(shape, mean)
    return [
        *_check_children(std),
        empty(shape, dtype_number(mean), memory_format=0),
        *_check_children(std),
        child("aten::mul_.Tensor", result, std),
        child("aten::add_.Tensor", result, mean),
    ]


@_normal_tensor_float.children
def _(mean: Any, std: Any, generator: Any) -> list[Child]:
    return [
        empty_like(mean, 0),
        empty_like(mean, 0, allocates=False),
        child("aten::add_.Tensor", tensor(mean.shape, mean), mean),
    ]


@_normal_float_tensor.children
def _(mean: Any, std: Any, generator: Any) -> list[Child]:
    result = tensor(std.shape, std)
    return [
        *_check_children(std),
        empty_like(std, 0),
        *_check_children(std),
        child("aten::full", (), mean, dtype_number(std), 0, None, None),
        child("aten::mul_.Tensor", result, std),
        child("aten::add_.Tensor", result, tensor((), std)),
    ]


@_normal_float_float.children
def _(
    mean: Any,
    std: Any,
    size: Any,
    generator: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    *,
    settings: Settings,
) -> list[Child]:
    result = tensor_of(size, dtype_or_default(dtype, settings))
    return [empty(size, dtype, layout, pin_memory), child("aten::normal_", result, mean, std)]


_NORMAL_OVERLOADS = (
    "Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
    "Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None",
    "float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
    (
        "float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None, "
        "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
        "bool pin_memory = False, bool requires_grad = False"
    ),
)


@function(expose="function")
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
    layout: Any = _STRIDED, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Normal numbers, with a mean and a standard deviation for all or for each element."""
    of_mean, of_std = isinstance(mean, _dispatch.Tensor), isinstance(std, _dispatch.Tensor)
    numbers = (int, float, np.number)
    fits = (of_mean or isinstance(mean, numbers)) and (of_std or isinstance(std, numbers))
    if not fits or (size is None) != (of_mean or of_std) or isinstance(size, int):
        arguments = (mean, std) if size is None else (mean, std, size)
        raise invalid_combination(
            "normal", arguments, {"generator": generator, "out": out}, _NORMAL_OVERLOADS
        )
    if of_mean or of_std:
        if of_mean:
            make = _normal_tensor_tensor if of_std else _normal_tensor_float
        else:
            make = _normal_float_tensor
        return finish(make(mean, std, generator=generator), False, False, out)
    shape = _sizes((size,))
    if out is not None:
        check_out("normal", out)
        factories_out.normal(float(mean), float(std), shape, generator=generator, result=out)
        return out
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor(shape, (dtype or _dtype.Default.dtype)._np), requires_grad)
    drawn = _normal_float_float(float(mean), float(std), shape, generator=generator, dtype=dtype)
    return finish(drawn, requires_grad, pin_memory)


def check_out(name: str, out: Any) -> None:
    """Refuse an `out=` that requires gradients."""
    if out._rg and _dispatch.grad_state.enabled:
        raise RuntimeError(
            f"aten::{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def shaped(out: Any, shape: tuple) -> Any:
    """`out=` of a factory, in `shape`."""
    if tuple(out.shape) != shape:
        out.resize_(shape)
    return out


# --- other continuous fills


def _fill(text: str, inplace: str, draw: Any, check: Any) -> Any:
    """Declare a fill of one or two float parameters.

    `draw(gen, n, np_dtype, *parameters)` gives the numbers, `check(dtype, n, *parameters)` raises for bad ones."""
    kernel_name = inplace.removeprefix("aten::")

    @op(text, inplace=inplace, expose="no")
    def fill(self: np.ndarray, *arguments: Any, out: Any = None) -> np.ndarray:
        out = target(self, out)
        *values, generator = arguments
        gen = generator_of(generator, kernel_name)
        names = [a.name for a in fill.op.schema.arguments[1:]]
        parameters = [
            real(value, f"{kernel_name}(): argument '{name}' (position {i})")
            for i, (name, value) in enumerate(zip(names, values), 1)
        ]
        dtype = BY_NUM[out.dtype.num]
        check(dtype, out.size, *parameters)
        return put(out, draw(gen, out.size, dtype._np, *parameters)) if out.size else out

    fill.derivative(self=_zeros)
    return fill.op.inplace.entry


def _check_exponential(dtype: Any, count: int, rate: float) -> None:
    if dtype._rank != 2 and count:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating "
            f"point but you specified {dtype._abbr}"
        )
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")


def _check_cauchy(dtype: Any, count: int, median: float, sigma: float) -> None:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if dtype._rank != 2:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point "
            f"but you specified {_C_NAMES[dtype._name]}"
        )


def _check_log_normal(dtype: Any, count: int, mean: float, std: float) -> None:
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if dtype._rank != 2 and count:
        raise not_implemented("log_normal_cpu", dtype)


def _check_geometric(dtype: Any, count: int, p: float) -> None:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if dtype._rank in (0, 3) and count:
        raise not_implemented("geometric_cpu", dtype)


exponential_ = _fill("aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
                     "aten::exponential_", _sampling.exponential, _check_exponential)  # fmt: skip
cauchy_ = _fill("aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) "
                "-> Tensor", "aten::cauchy_", _sampling.cauchy, _check_cauchy)  # fmt: skip
log_normal_ = _fill("aten::log_normal(Tensor self, float mean=1., float std=2., *, "
                    "Generator? generator=None) -> Tensor",
                    "aten::log_normal_", _sampling.log_normal, _check_log_normal)  # fmt: skip
geometric_ = _fill("aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
                   "aten::geometric_", _sampling.geometric, _check_geometric)  # fmt: skip


# --- integers


@functools.lru_cache(maxsize=32)
def _bounds(dtype: Any) -> tuple[int, int]:
    if dtype._rank == 0:
        return 0, 1
    if dtype._rank == 1:
        return _dtype.iinfo(dtype).min, _dtype.iinfo(dtype).max
    if dtype._rank == 2:
        largest = int(_dtype.finfo(dtype).max)
        return -largest, largest
    raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")


def _check_range(dtype: Any, low: int, last: int) -> None:
    lowest, largest = _bounds(dtype)
    for name, value in (("from", low), ("to - 1", last)):
        if not lowest <= value <= largest:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[dtype._name]}")
    if dtype._rank == 2:
        digits = DIGITS[dtype._name]
        for name, value in (("from", low), ("to - 1", last)):
            if not -(1 << digits) <= value <= 1 << digits:
                warnings.warn(
                    f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                    f"{_C_NAMES[dtype._name]} can support discrete uniform distribution only within this "
                    "range. This warning will become an error in version 1.7 release, please fix the code in "
                    "advance",
                    UserWarning, stacklevel=4,
                )  # fmt: skip


def _as_float(value: int, dtype: Any) -> int:
    """An integer rounded to the dtype."""
    if abs(value) <= 1 << DIGITS[dtype._name]:
        return value
    wide = float(dtype._np.type(value))
    return int(wide) if math.isfinite(wide) else value


def _first_representable(low: int, dtype: Any) -> int:
    """The lower bound, raised to a number that the float dtype can represent."""
    rounded = _as_float(low + 1, dtype)
    return low if rounded >= low else rounded + (1 << ((abs(low + 1)).bit_length() - DIGITS[dtype._name]))


def _last_representable(high: int, dtype: Any) -> int:
    """The upper bound, lowered likewise."""
    rounded = _as_float(high - 1, dtype)
    return high if rounded < high else rounded - (1 << ((abs(high - 1)).bit_length() - DIGITS[dtype._name]))


def integers(gen: Generator, count: int, dtype: Any, low: int, high: int | None) -> np.ndarray:
    """Checked integers of [low, high); without `high` up to the last the dtype can hold without gaps."""
    if high is not None:
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
            )
        if dtype._rank == 2:
            low, high = _first_representable(low, dtype), _last_representable(high, dtype)
            if low >= high:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                    f"from={low} >= to={high}"
                )
        _check_range(dtype, low, high - 1)
    else:
        last = 1 << DIGITS[dtype._name] if dtype._rank == 2 else _bounds(dtype)[1]
        if dtype._rank == 2:
            low = _first_representable(low, dtype)
            if low > last:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
                    f"dtype, but got from={low} > to_inc={last}"
                )
        _check_range(dtype, low, last)
        high = last + 1
    return _sampling.integers(gen, count, dtype._np, low, high)


def int64(value: Any) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return int(value)


@op("aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
    inplace="aten::random_.from", expose="no", node="RandomBackward0")  # fmt: skip
def _random_from(self: np.ndarray, from_: int, to: int | None, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    return put(out, integers(generator_of(generator, "random_"), out.size, BY_NUM[out.dtype.num], from_, to))


@op("aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
    inplace="aten::random_.to", expose="no", node="RandomBackward1")  # fmt: skip
def _random_to(self: np.ndarray, to: int, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    return put(out, integers(generator_of(generator, "random_"), out.size, BY_NUM[out.dtype.num], 0, to))


@op("aten::random(Tensor self, *, Generator? generator=None) -> Tensor",
    inplace="aten::random_", expose="no", node="RandomBackward2")  # fmt: skip
def _random(self: np.ndarray, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    dtype = BY_NUM[out.dtype.num]
    if not out.size:
        return out
    if dtype._rank == 3 or dtype._name in ("uint16", "uint32", "uint64"):
        raise not_implemented("random_kernel_cpu", dtype)
    return put(out, _sampling.integers_of_dtype(generator_of(generator, "random_"), out.size, dtype._np))


for _declared in (_random_from, _random_to, _random):
    _declared.derivative(self=_zeros)
random_from_, _random_to_, _random_ = (d.op.inplace.entry for d in (_random_from, _random_to, _random))

_RANDOM_OVERLOADS = (
    "*, torch.Generator generator = None",
    "int from, int to, *, torch.Generator generator = None",
    "int to, *, torch.Generator generator = None",
)


@function(expose="method")
def random_(self: Any, *bounds: Any, generator: Any = None, **named: Any) -> Any:
    """Fill with integers of [from, to), of [0, to), or of all that the dtype holds."""
    arguments = (*bounds, *[named[name] for name in ("from", "to") if name in named])
    fits = (
        len(arguments) < 3
        and named.keys() <= {"from", "to"}
        and all(hasattr(v, "__index__") for v in arguments[:1])
    )
    if not fits or (
        len(arguments) == 2 and arguments[1] is not None and not hasattr(arguments[1], "__index__")
    ):
        raise invalid_combination("random_", bounds, {**named, "generator": generator}, _RANDOM_OVERLOADS)
    values = [None if v is None else int64(v.__index__()) for v in arguments]
    if len(values) == 2:
        return random_from_(self, *values, generator=generator)
    return (
        _random_to_(self, values[0], generator=generator) if values else _random_(self, generator=generator)
    )
