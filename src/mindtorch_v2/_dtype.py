"""Data types: torch's dtype objects, their NumPy equivalents, the default dtype and type promotion. Independent of tensors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["dtype", "finfo", "iinfo", "layout", "memory_format"]


def _without_tensors(d: dtype) -> NotImplementedError:
    return NotImplementedError(f"{d!r}: this library has the name of this dtype, but no tensors of it")


class dtype:
    """A tensor element type, such as `torch.float32`."""

    __module__ = "mindtorch_v2"  # where torch has it, and where pickle finds it
    __slots__ = (
        "_name",
        "_np",
        "_rank",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "itemsize",
        "_abbr",
    )

    def __init__(self, name: str, np_dtype: Any, rank: int, abbr: str, itemsize: int = 0) -> None:
        self._name = name
        if np_dtype is not None:
            self._np = np.dtype(np_dtype)
            itemsize = self._np.itemsize
        self._rank = rank  # 0 bool, 1 integer, 2 float, 3 complex, 4 quantized or uninterpreted
        self._abbr = abbr  # the name in error texts ("Float") and legacy tensor types
        self.is_floating_point = rank == 2
        self.is_complex = rank == 3
        self.is_signed = not (rank == 0 or name.startswith(("uint", "quint", "bits")) or name.endswith("fnu"))
        self.itemsize = itemsize

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "_np":
            raise _without_tensors(self)
        raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")

    def __repr__(self) -> str:
        return "torch." + self._name

    def __reduce__(self) -> str:
        return self._name

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self

    def to_real(self) -> dtype:
        """The real type of the same precision."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type of the same precision."""
        if self in _REAL:
            return self
        if self in FLOAT8:
            raise RuntimeError(f"Unknown Complex ScalarType for {self._abbr}")
        if self is float16 and HALF_COMPLEX:
            return complex32
        return complex128 if self is float64 else complex64


class layout:
    """How a tensor's elements are laid out: `torch.strided`, `torch.sparse_coo`, `torch.sparse_csr` ..."""

    __module__ = "mindtorch_v2"
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return "torch." + self._name

    def __reduce__(self) -> str:
        return self._name


class memory_format:
    """The order of dimensions in memory, such as `torch.channels_last`."""

    __module__ = "mindtorch_v2"
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return "torch." + self._name

    def __reduce__(self) -> str:
        return self._name


bool_ = dtype("bool", np.bool_, 0, "Bool")
uint8 = dtype("uint8", np.uint8, 1, "Byte")
int8 = dtype("int8", np.int8, 1, "Char")
int16 = dtype("int16", np.int16, 1, "Short")
int32 = dtype("int32", np.int32, 1, "Int")
int64 = dtype("int64", np.int64, 1, "Long")
uint16 = dtype("uint16", np.uint16, 1, "UInt16")
uint32 = dtype("uint32", np.uint32, 1, "UInt32")
uint64 = dtype("uint64", np.uint64, 1, "UInt64")
float16 = dtype("float16", np.float16, 2, "Half")
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, 2, "BFloat16")
float32 = dtype("float32", np.float32, 2, "Float")
float64 = dtype("float64", np.float64, 2, "Double")
float8_e4m3fn = dtype("float8_e4m3fn", ml_dtypes.float8_e4m3fn, 2, "Float8_e4m3fn")
float8_e5m2 = dtype("float8_e5m2", ml_dtypes.float8_e5m2, 2, "Float8_e5m2")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 2, "Float8_e4m3fnuz")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 2, "Float8_e5m2fnuz")
float8_e8m0fnu = dtype("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, 2, "Float8_e8m0fnu")
complex32 = dtype("complex32", getattr(ml_dtypes, "complex32", None), 3, "ComplexHalf", 4)
complex64 = dtype("complex64", np.complex64, 3, "ComplexFloat")
complex128 = dtype("complex128", np.complex128, 3, "ComplexDouble")

ALL = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
# Stored and converted; torch computes nothing in them but copies, comparisons and abs
FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)
# Empty with a version of ml_dtypes that does not have it
HALF_COMPLEX = (complex32,) if hasattr(ml_dtypes, "complex32") else ()
# dtypes of which this library has no tensors: programs compare with them and list them
WITHOUT_TENSORS = (
    *(() if HALF_COMPLEX else (complex32,)),
    dtype("float4_e2m1fn_x2", None, 2, "Float4_e2m1fn_x2", 1),
    dtype("qint8", None, 4, "QInt8", 1),
    dtype("quint8", None, 4, "QUInt8", 1),
    dtype("qint32", None, 4, "QInt32", 4),
    dtype("quint4x2", None, 4, "QUInt4x2", 1),
    dtype("quint2x4", None, 4, "QUInt2x4", 1),
    *(
        dtype(f"bits{n}", None, 4, f"Bits{n}", size)
        for n, size in (("1x8", 1), ("2x4", 1), ("4x2", 1), ("8", 1), ("16", 2))
    ),
    *(
        dtype(f"{sign}int{bits}", None, 1, f"{sign.upper()}Int{bits}", 1)
        for sign in ("u", "")
        for bits in range(1, 8)
    ),
)
NAMES = {
    **{d._name: d for d in (*ALL, *FLOAT8, complex32, *WITHOUT_TENSORS)},
    "chalf": complex32,
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
}
BY_NUM: dict[int, dtype] = {d._np.num: d for d in (*ALL, *FLOAT8, *HALF_COMPLEX)}
BY_NUM[np.dtype(np.longlong).num] = int64
BY_NUM[np.dtype(np.ulonglong).num] = uint64
_REAL = {complex32: float16, complex64: float32, complex128: float64}

strided = layout("strided")
sparse_coo = layout("sparse_coo")
jagged = layout("jagged")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
preserve_format = memory_format("preserve_format")

NP_BOOL, NP_INT64, NP_FLOAT32, NP_FLOAT64 = bool_._np, int64._np, float32._np, float64._np
NP_BFLOAT16, NP_FLOAT16 = bfloat16._np, float16._np
LOW_FLOATS = frozenset((NP_FLOAT16, NP_BFLOAT16))  # a set: comparing dtypes takes 0.1 us each
NP_FLOAT8 = tuple(d._np for d in FLOAT8)
# torch's names of types whose elements NumPy itself does not have
NOT_IN_NUMPY = {d._np: d._abbr for d in (bfloat16, *FLOAT8, *HALF_COMPLEX)}


def in_numpy(np_dtype: np.dtype) -> np.dtype:
    """A NumPy dtype that holds all numbers of a dtype of NOT_IN_NUMPY."""
    return complex64._np if BY_NUM[np_dtype.num].is_complex else NP_FLOAT32


# NumPy type numbers of bool and the integers: those that a floating function turns into the default dtype
INTEGRAL_NUMS = frozenset(n for n, d in BY_NUM.items() if d._rank < 2)
FLOAT_NUMS = frozenset(n for n, d in BY_NUM.items() if d._rank == 2)


class Flag(int):
    """The old bool argument `unbiased`, passed as `correction`."""


# Marks an option that torch's C++ code omits where a call from Python passes False: a profile shows the difference.
LEFT_OUT = "left out"


class Default:
    """The default dtype; one place, read by kernels as `Default.np`."""

    dtype = float32
    np = NP_FLOAT32
    complex_np = complex64._np


def get_default_dtype() -> dtype:
    """The dtype that Python floats become."""
    return Default.dtype


def set_default_dtype(d: dtype, /) -> None:
    """Set the dtype that Python floats become; floating types only."""
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if d in FLOAT8:
        raise TypeError(f"couldn't find storage object {d._abbr}Storage")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    Default.dtype, Default.np, Default.complex_np = d, d._np, d.to_complex()._np


PYTHON_TYPES: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}


def of_python_type(value: Any) -> Any:
    """The dtype of one of Python's number types; anything else as it is."""
    return PYTHON_TYPES.get(value, value) if isinstance(value, type) else value


def named(value: Any, function: str) -> dtype:
    """The dtype meant by a dtype or one of Python's number types; torch's TypeError for anything else."""
    if isinstance(value, dtype):
        return value
    if isinstance(value, type) and value in PYTHON_TYPES:
        return PYTHON_TYPES[value]
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")


def from_numpy_dtype(np_dtype: np.dtype) -> dtype:
    """The torch dtype of a NumPy dtype; torch's TypeError if there is none."""
    torch_dtype = BY_NUM.get(np_dtype.num)
    if torch_dtype is not None and np_dtype.num < 256 and not np_dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if torch_dtype is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np_dtype.type.__name__}. "
            "The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, "
            "int8, uint64, uint32, uint16, uint8, and bool."
        )
    return torch_dtype


_INT_ORDER = {uint8: (8, 0), int8: (8, 1), int16: (16, 1), int32: (32, 1), int64: (64, 1)}
_UNSIGNED = (uint16, uint32, uint64)


def _promote_integers(a: dtype, b: dtype) -> dtype:
    (abits, asigned), (bbits, bsigned) = _INT_ORDER[a], _INT_ORDER[b]
    if asigned == bsigned:
        return a if abits >= bbits else b
    signed_bits = abits if asigned else bbits
    return int16 if signed_bits == 8 else (a if asigned else b)


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    for d in (a, b):
        if d in WITHOUT_TENSORS:
            raise _without_tensors(d)
    if a in FLOAT8 or b in FLOAT8:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a._abbr} and {b._abbr}"
        )
    if (a in _UNSIGNED and b._rank != 2) or (b in _UNSIGNED and a._rank != 2):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a._abbr} and {b._abbr}"
        )
    if a._rank != b._rank:
        low, high = (a, b) if a._rank < b._rank else (b, a)
        if high._rank == 3 and low._rank == 2:
            return _promote(low, high.to_real()).to_complex()
        return high
    if a._rank == 1:
        return _promote_integers(a, b)
    if a._rank == 2 and a.itemsize == b.itemsize:  # float16 with bfloat16
        return float32
    return a if a.itemsize > b.itemsize else b


_PROMOTED: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that holds both, by torch's rules."""
    promoted = _PROMOTED.get((type1, type2))
    if promoted is None:
        promoted = _PROMOTED[type1, type2] = _promote(type1, type2)
    return promoted


def number_dtype(value: Any, default: dtype | None = None) -> dtype:
    """The dtype a Python number stands for. default: that of floating-point numbers; None: the process's."""
    default = Default.dtype if default is None else default
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return default
    return default.to_complex()


def result_dtype(operands: Any) -> dtype:
    """torch.result_type over (dtype, kind) pairs; kind 0: a tensor with dims, 1: a 0-dim tensor, 2: a Python number."""
    best: list[dtype | None] = [None, None, None]
    for d, kind in operands:
        previous = best[kind]
        best[kind] = d if previous is None else promote_types(previous, d)
    result = None
    for candidate in best:
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif candidate._rank > result._rank:
            if candidate.is_complex:
                result = result.to_complex() if result.is_floating_point else candidate
            else:
                result = promote_types(result, candidate)
    assert result is not None
    return result


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether torch allows casting `from_` to `to` in an in-place result (categories only go up)."""
    return not (
        (from_._rank == 3 and to._rank < 3)
        or (from_._rank == 2 and to._rank < 2)
        or (from_._rank > 0 and to._rank == 0)
    )


class finfo:
    """Limits of a floating type."""

    def __init__(self, type: dtype | None = None) -> None:
        d = Default.dtype if type is None else of_python_type(type)
        if not isinstance(d, dtype):
            raise TypeError(
                f"finfo(): argument 'type' (position 1) must be torch.dtype, not {d.__class__.__name__}"
            )
        if d._rank < 2:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d!r}'"
            )
        real = d.to_real()
        info = ml_dtypes.finfo(real._np)
        self.bits = real.itemsize * 8
        # torch gives e5m2fnuz the eps of the types with three bits of mantissa
        self.eps = 0.125 if real is float8_e5m2fnuz else float(info.eps)
        self.max, self.min = float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = 1.0 if real in FLOAT8 else float(info.resolution)
        self.dtype = real._name

    def __repr__(self) -> str:
        fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return "finfo(" + ", ".join(f"{n}={getattr(self, n):g}" for n in fields) + f", dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer type."""

    def __init__(self, type: dtype) -> None:
        type = of_python_type(type)
        if not isinstance(type, dtype):
            raise TypeError(
                f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}"
            )
        if type._rank == 0:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type._rank > 1:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type!r}'"
            )
        info = np.iinfo(type._np)
        self.bits, self.min, self.max, self.dtype = info.bits, int(info.min), int(info.max), type._name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
