"""Random factories: rand, randn, randint, randperm and their `_like` forms: sizes and options in, tensors
out. The drawing and its checks are those of the fills in `random`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _device, _dispatch, _dtype, _sampling
from .._dispatch import composite, function, op
from .._dtype import BY_NUM
from .._meta import is_meta, meta_tensor
from .._random import Generator, default_generator
from . import factories_out
from ._children import UNKNOWN, Child, child, dtype_number, dtype_or_default, empty, tensor_of
from ._scalars import fitting
from .creation import _empty_like, _sizes, finish
from .random import (
    DIGITS,
    check_normal,
    check_out,
    generator_of,
    int64,
    integers,
    invalid_combination,
    normal_,
    normals,
    not_implemented,
    put,
    random_from_,
    shaped,
    uniform_,
    uniforms,
)

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings

_STRIDED = _dtype.strided


# --- rand and randn


def _declare_factory(aten_name: str, draw: Any, fill: str) -> tuple[Any, Any]:
    """Declare a factory and its form with a generator."""
    name = aten_name.removeprefix("aten::")
    tail = (
        "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
    )

    @op(f"{aten_name}(SymInt[] size, *, {tail}", expose="no", nondifferentiable=True)
    def plain(size: tuple, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> np.ndarray:
        return draw(default_generator, size, dtype or _dtype.Default.dtype)

    @op(
        f"{aten_name}.generator(SymInt[] size, *, Generator? generator, {tail}",
        expose="no",
        nondifferentiable=True,
    )
    def drawn(
        size: tuple, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
    ) -> np.ndarray:
        return draw(generator_of(generator, name), size, dtype or _dtype.Default.dtype)

    def inside(
        size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, *, settings: Settings
    ) -> list[Child]:
        result = tensor_of(size, dtype_or_default(dtype, settings))
        return [empty(size, dtype, layout, pin_memory), child(fill, result, 0.0, 1.0)]

    plain.children(inside)
    drawn.children(lambda size, generator, *options, settings: inside(size, *options, settings=settings))
    return plain, drawn


def _declare_like(aten_name: str, draw: Any, fill: str) -> tuple[Any, Any]:
    """Declare a factory like another tensor and its form with a generator."""
    name = aten_name.removeprefix("aten::")
    tail = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
            "MemoryFormat? memory_format=None) -> Tensor")  # fmt: skip

    def filled(self: np.ndarray, gen: Generator, dtype: Any, memory_format: Any) -> np.ndarray:
        array = _empty_like.op.kernel(self, dtype, None, None, None, memory_format)
        return put(array, draw(gen, array.shape, BY_NUM[array.dtype.num], array.flags.c_contiguous))

    @op(f"{aten_name}(Tensor self, *, {tail}", expose="no", nondifferentiable=True)
    def plain(
        self: np.ndarray, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any
    ) -> np.ndarray:
        return filled(self, default_generator, dtype, memory_format)

    @op(f"{aten_name}.generator(Tensor self, *, Generator? generator, {tail}",
        expose="no", nondifferentiable=True)  # fmt: skip
    def drawn(
        self: np.ndarray,
        generator: Any,
        dtype: Any,
        layout: Any,
        device: Any,
        pin_memory: Any,
        memory_format: Any,
    ) -> np.ndarray:
        return filled(self, generator_of(generator, name), dtype, memory_format)

    plain.children(lambda self, *options: _inside_like(self, options, fill, 0.0, 1.0))
    drawn.children(lambda self, generator, *options: _inside_like(self, options, fill, 0.0, 1.0))
    return plain, drawn


def _inside_like(self: Any, options: tuple, fill: str, *bounds: Any) -> list[Child]:
    """The children of a factory like another tensor."""
    result = tensor_of(self.shape, dtype_number(self) if options[0] is None else options[0])
    return [child("aten::empty_like", self, *options, allocates=True), child(fill, result, *bounds)]


def _draw_uniform(gen: Generator, size: tuple, dtype: Any, contiguous: bool = True) -> np.ndarray:
    if dtype._rank < 2:
        raise not_implemented("check_uniform_bounds", dtype)
    return uniforms(gen, math.prod(size), dtype).reshape(size)


def _draw_normal(gen: Generator, size: tuple, dtype: Any, contiguous: bool = True) -> np.ndarray:
    count = math.prod(size)
    check_normal(dtype, count)
    return normals(gen, count, dtype, 0.0, 1.0, contiguous).reshape(size)


def _front(name: str, ops: tuple[Any, Any], fill: Any, doc: str) -> Any:
    plain, drawn = ops

    def factory(
        *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = _STRIDED,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False, names: Any = None,
        **keyword: Any,
    ) -> Any:  # fmt: skip
        shape = _sizes(size, keyword.pop("size", None), name)
        if keyword:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(keyword))}'")
        if (device is not None or _device._state.default is not None) and _device.resolve(
            device
        ) is _device.META:
            return finish(meta_tensor(shape, (dtype or _dtype.Default.dtype)._np), requires_grad)
        if out is not None:
            check_out(name, out)
            if generator is None:
                getattr(factories_out, name)(shape, result=out)
            else:
                fill(shaped(out, shape), generator=generator)
            return finish(out, requires_grad, pin_memory)
        tensor = (
            plain(shape, dtype=dtype) if generator is None else drawn(shape, generator=generator, dtype=dtype)
        )
        return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor

    factory.__name__, factory.__doc__ = name, doc
    return function(name, expose="function")(factory)


def _like_front(name: str, ops: tuple[Any, Any], doc: str) -> Any:
    plain, drawn = ops

    def like(
        input: Any, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
    ) -> Any:  # fmt: skip
        if is_meta(input) or (device is not None and _device.resolve(device) is _device.META):
            return finish(meta_tensor(input.shape, (dtype or input.dtype)._np), requires_grad)
        if generator is None:
            tensor = plain(input, dtype=dtype, memory_format=memory_format)
        else:
            tensor = drawn(input, generator=generator, dtype=dtype, memory_format=memory_format)
        return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor

    like.__name__, like.__doc__ = name, doc
    return function(name, expose="function")(like)


rand = _front(
    "rand",
    _declare_factory("aten::rand", _draw_uniform, "aten::uniform_"),
    uniform_,
    "Uniform numbers of [0, 1).",
)
randn = _front(
    "randn",
    _declare_factory("aten::randn", _draw_normal, "aten::normal_"),
    normal_,
    "Standard normal numbers.",
)
rand_like = _like_front(
    "rand_like",
    _declare_like("aten::rand_like", _draw_uniform, "aten::uniform_"),
    "Uniform numbers of [0, 1) like another tensor.",
)
randn_like = _like_front(
    "randn_like",
    _declare_like("aten::randn_like", _draw_normal, "aten::normal_"),
    "Standard normal numbers like another tensor.",
)


# --- randint


_TAIL = "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"


def _declare_randint(text: str, with_low: bool, with_generator: bool) -> Any:
    """Declare one overload of aten::randint."""

    def parts(arguments: tuple) -> tuple[Any, Any, Any, Any, list]:
        rest = list(arguments)
        low = rest.pop(0) if with_low else 0
        high, size = rest.pop(0), rest.pop(0)
        generator = rest.pop(0) if with_generator else None
        return low, high, size, generator, rest

    @op(text, expose="no", nondifferentiable=True)
    def randint_op(*arguments: Any) -> np.ndarray:
        low, high, size, generator, options = parts(arguments)
        gen = generator_of(generator, "randint")
        dtype = options[0] if isinstance(options[0], _dtype.dtype) else _dtype.int64
        return integers(gen, math.prod(size), dtype, low, high).reshape(size)

    @randint_op.children
    def _(*arguments: Any) -> list[Child]:
        low, high, size, _, (dtype, layout, _, pin_memory) = parts(arguments)
        result = tensor_of(size, dtype)
        return [empty(size, dtype, layout, pin_memory), child("aten::random_.from", result, low, high)]

    return randint_op


_randint_high = _declare_randint(f"aten::randint(SymInt high, SymInt[] size, *, {_TAIL}", False, False)
_randint_high_gen = _declare_randint(
    f"aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, {_TAIL}", False, True
)
_randint_low = _declare_randint(
    f"aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, {_TAIL}", True, False
)
_randint_low_gen = _declare_randint(
    f"aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, {_TAIL}",
    True,
    True,
)

_RANDINT_OPTIONS = (
    "Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
    "bool pin_memory = False, bool requires_grad = False"
)
_RANDINT_OVERLOADS = tuple(
    f"{first}, tuple of ints size, *, {gen}{_RANDINT_OPTIONS}"
    for first in ("int high", "int low, int high")
    for gen in ("torch.Generator generator, ", "")
)


def _named(args: tuple, keyword: dict, order: tuple[str, ...]) -> dict:
    """Positional arguments by their names; the first, low, may be omitted."""
    names = order if len(args) + len(keyword) >= len(order) else order[1:]
    return {**keyword, **dict(zip([n for n in names if n not in keyword], args))}


@function(expose="function")
def randint(
    *args: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = _STRIDED,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, **keyword: Any,
) -> Any:  # fmt: skip
    """Integers of [low, high)."""
    values = _named(args, keyword, ("low", "high", "size"))
    size = values.get("size")
    if (
        "high" not in values
        or len(args) + len(keyword) > 3
        or not isinstance(size, (tuple, list, np.ndarray))
    ):
        raise invalid_combination("randint", args, {**keyword, "generator": generator}, _RANDINT_OVERLOADS)
    low, high = values.get("low"), values["high"]
    for position, (name, value) in enumerate(
        (("low", low), ("high", high)) if low is not None else (("high", high),), 1
    ):
        if not hasattr(value, "__index__") or isinstance(value, bool):
            raise TypeError(
                f"randint(): argument '{name}' (position {position}) must be int, not {type(value).__name__}"
            )
    shape = _sizes((size,))
    high = int64(high.__index__())
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor(shape, (dtype or _dtype.int64)._np), requires_grad)
    if out is not None:
        first = 0 if low is None else int64(low.__index__())
        check_out("randint", out)
        if generator is not None:
            random_from_(shaped(out, shape), first, high, generator=generator)
        elif low is None:
            factories_out.randint(high, shape, result=out)
        else:
            factories_out.randint_low(first, high, shape, result=out)
        return finish(out, requires_grad, pin_memory)
    dtype = dtype or _dtype.int64
    if low is None:
        if generator is None:
            tensor = _randint_high(high, shape, dtype=dtype)
        else:
            tensor = _randint_high_gen(high, shape, generator=generator, dtype=dtype)
    else:
        low = int64(low.__index__())
        if generator is None:
            tensor = _randint_low(low, high, shape, dtype=dtype)
        else:
            tensor = _randint_low_gen(low, high, shape, generator=generator, dtype=dtype)
    return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor


def _declare_randint_like(text: str, with_low: bool, with_generator: bool) -> Any:
    """Declare one overload of aten::randint_like."""

    def parts(arguments: tuple) -> tuple[Any, Any, Any, Any, tuple]:
        high = 2 if with_low else 1  # its place
        low, options = arguments[1] if with_low else 0, arguments[high + 1 :]
        if with_generator:
            return arguments[0], low, arguments[high], options[0], options[1:]
        return arguments[0], low, arguments[high], None, options

    @op(text, expose="no", nondifferentiable=True)
    def randint_like_op(*arguments: Any) -> np.ndarray:
        self, low, high, generator, options = parts(arguments)
        gen = generator_of(generator, "randint_like")
        array = _empty_like.op.kernel(self, options[0], None, None, None, options[-1])
        return put(array, integers(gen, array.size, BY_NUM[array.dtype.num], low, high))

    @randint_like_op.children
    def _(*arguments: Any) -> list[Child]:
        self, low, high, _, options = parts(arguments)
        return _inside_like(self, options, "aten::random_.from", low, high)

    return randint_like_op


_LIKE_TAIL = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
              "MemoryFormat? memory_format=None) -> Tensor")  # fmt: skip
_randint_like = _declare_randint_like(
    f"aten::randint_like(Tensor self, SymInt high, *, {_LIKE_TAIL}", False, False
)
_randint_like_gen = _declare_randint_like(
    f"aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, {_LIKE_TAIL}",
    False,
    True,
)
_randint_like_low = _declare_randint_like(
    f"aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, {_LIKE_TAIL}", True, False
)
_randint_like_low_gen = _declare_randint_like(
    f"aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, {_LIKE_TAIL}",
    True,
    True,
)


@function(expose="function")
def randint_like(
    input: Any, *bounds: Any, generator: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
    **keyword: Any,
) -> Any:  # fmt: skip
    """Integers of [low, high) like another tensor."""
    values = _named(bounds, keyword, ("low", "high"))
    if "high" not in values or not values.keys() <= {"low", "high"}:
        raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    high, low = values["high"], values.get("low")
    high = int(high.item()) if isinstance(high, _dispatch.Tensor) else int64(high.__index__())
    if is_meta(input) or (device is not None and _device.resolve(device) is _device.META):
        return finish(meta_tensor(input.shape, (dtype or input.dtype)._np), requires_grad)
    options = {"dtype": dtype, "memory_format": memory_format}
    if generator is not None:
        options["generator"] = generator
    if low is None:
        tensor = (_randint_like if generator is None else _randint_like_gen)(input, high, **options)
    else:
        draw = _randint_like_low if generator is None else _randint_like_low_gen
        tensor = draw(input, int64(low.__index__()), high, **options)
    return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor


# --- randperm


def _permutation(n: int, generator: Any, dtype: Any) -> np.ndarray:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype._rank == 2:
        most = (1 << DIGITS[dtype._name]) + 1
        if n > most:
            raise RuntimeError(f"n cannot be greater than {most} for {dtype._abbr} type.")
    elif dtype._rank == 1:
        fitting(n, dtype._np)
    else:
        raise not_implemented("randperm", dtype)
    return _sampling.permutation(generator_of(generator, "randperm"), n).astype(dtype._np, copy=False)


@composite(
    "aten::randperm.generator_out(SymInt n, Generator? generator, Tensor(a!) result) -> Tensor(a!)",
    expose="no",
)
def _randperm_into(n: int, generator: Any, result: Any) -> Any:
    values = _permutation(n, generator, result.dtype)
    np.copyto(shaped(result, (n,))._array, values)
    _dispatch.storage_of(result)._version += 1
    return result


@op(f"aten::randperm(SymInt n, *, {_TAIL}", expose="no", nondifferentiable=True)
def _randperm(n: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> np.ndarray:
    return _permutation(n, None, dtype)


@op(
    f"aten::randperm.generator(SymInt n, *, Generator? generator, {_TAIL}",
    expose="no",
    nondifferentiable=True,
)
def _randperm_gen(
    n: int, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> np.ndarray:
    return _permutation(n, generator, dtype)


@_randperm.children
def _(n: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> list[Child]:
    size = UNKNOWN if n is UNKNOWN else (n,)
    return [
        empty(size, dtype, layout, pin_memory),
        child("aten::randperm.generator_out", n, None, tensor_of(size, dtype)),
    ]


_randperm_gen.children(lambda n, generator, *options: _randperm.op.children_rule(n, *options))


@_randperm_into.children
def _(n: Any, generator: Any, result: Any) -> list[Child]:
    size = UNKNOWN if n is UNKNOWN else (n,)
    return [
        child("aten::scalar_tensor", n - (n > 0), dtype_number(result), 0, None, None),
        child("aten::resize_", result, size),
        child("aten::resize_", result, size),
    ]


@function(expose="function")
def randperm(
    n: Any, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = _STRIDED,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """The integers of [0, n) in random order."""
    if not hasattr(n, "__index__") or isinstance(n, bool):
        raise TypeError(f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    n = n.__index__()
    if out is not None:
        check_out("randperm", out)
        return finish(_randperm_into(n, generator, out), requires_grad, pin_memory)
    dtype = dtype or _dtype.int64
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor((n,), dtype._np), requires_grad)
    tensor = (
        _randperm(n, dtype=dtype) if generator is None else _randperm_gen(n, generator=generator, dtype=dtype)
    )
    return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor
