"""Products of matrices and vectors, by BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_prof.flops import bmm_flops, mm_flops
from mindtorch_prof.inputs import ELEMENT_TYPES

from .. import _dispatch, _op_errors
from .._dispatch import composite, function, op
from .._dtype import BY_NUM, LOW_FLOATS
from . import _core
from ._children import UNKNOWN, Child, child, tensor
from ._half_precision import in_float32
from ._namespace import functions as F
from .pointwise import conj, mul_scalar


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b; half and bfloat16 are multiplied in float32, with one rounding at the end."""
    if a.dtype in LOW_FLOATS:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return np.matmul(a, b)


_FEW_ROWS = 64
_LARGE_WEIGHT = 1 << 15  # elements


def matrix_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b for matrices of one dtype other than half and bfloat16.

    A few rows times a large transposed weight is computed as (weight @ rows^T)^T: OpenBLAS packs the weight more slowly as the second
    operand. 64 x 784 times a weight of 256 x 784 takes 0.87 of the time, 16 rows 0.56.
    """
    rows, inner = a.shape
    size = b.itemsize
    if (
        1 < rows <= _FEW_ROWS
        and b.size >= _LARGE_WEIGHT
        and b.strides == (size, inner * size)
        and b.shape[1] >= 2 * rows
        and b.dtype.char in "fd"
    ):
        return np.ascontiguousarray(np.matmul(b.T, a.T).T)
    return np.matmul(a, b)


C_NAMES = {
    "Float": "float",
    "Double": "double",
    "Long": "long int",
    "Int": "int",
    "Half": "c10::Half",
    "BFloat16": "c10::BFloat16",
}
# Each op's message for different dtypes; {a} and {b} are torch's type names, {ca} and {cb} C's.
_MISMATCH = {
    "mm": "expected m1 and m2 to have the same dtype, but got: {ca} != {cb}",
    "addmm": "mat1 and mat2 must have the same dtype, but got {a} and {b}",
    "bmm": "expected scalar type {a} but found {b}",
    "dot": "dot : expected both vectors to have same dtype, but found {a} and {b}",
}


def _same_dtype(name: str, first: np.ndarray, second: np.ndarray) -> None:
    if first.dtype is not second.dtype and first.dtype != second.dtype:
        a, b = (BY_NUM[x.dtype.num]._abbr for x in (first, second))
        text = _MISMATCH[name]
        raise RuntimeError(text.format(a=a, b=b, ca=C_NAMES.get(a, a), cb=C_NAMES.get(b, b)))


def _no_bools(kernel: str, array: np.ndarray) -> None:
    if array.dtype.kind in "bW":
        raise _op_errors.not_implemented(kernel, array)


def _mm_flops(self: Any, mat2: Any) -> int:
    return mm_flops(self.shape, mat2.shape)


@op("aten::mm(Tensor self, Tensor mat2) -> Tensor", out=True, flops=_mm_flops)
def mm(self: np.ndarray, mat2: np.ndarray) -> np.ndarray:
    if self.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(self)} and {_by(mat2)})")
    if self.dtype is not mat2.dtype:
        _same_dtype("mm", self, mat2)
    _no_bools("addmm_impl_cpu_", self)
    return product(self, mat2) if self.dtype in LOW_FLOATS else matrix_product(self, mat2)


def _by(matrix: np.ndarray) -> str:
    return "x".join(map(str, matrix.shape))


def _is_column_major(matrix: Any) -> bool:
    """Whether a matrix is stored column by column, as a transposed weight is."""
    array = matrix._array
    return array.strides[0] == array.itemsize and array.strides[1] == array.itemsize * array.shape[0]


def mm_self_grad(g: Any, self: Any, mat2: Any) -> Any:
    """g @ mat2^H, laid out like self."""
    if _is_column_major(self) and 1 not in self._array.shape and not mat2.dtype.is_complex:
        return mm(conj(mat2), g.t()).t()
    return mm(g, conj(mat2.t()))


def mm_mat2_grad(g: Any, self: Any, mat2: Any) -> Any:
    """self^H @ g, laid out like mat2."""
    if _is_column_major(mat2) and not self.dtype.is_complex:
        return mm(g.t(), self).t()
    return mm(conj(self.t()), g)


@mm.backward("self", "mat2", values_for={"mat2": "self", "self": "mat2"})
def _(g: Any, self: Any, mat2: Any, needs: Any) -> Any:
    second = mm_mat2_grad(g, self, mat2) if needs[1] else None
    first = mm_self_grad(g, self, mat2) if needs[0] else None
    return first, second


def _scaled_sum(self: np.ndarray, beta: Any, products: np.ndarray, alpha: Any) -> np.ndarray:
    """beta * self + alpha * products, in the memory of `products`. Integers have integral factors, as in torch."""
    if products.dtype.kind in "iu":
        alpha, beta = int(alpha), int(beta)
    if alpha != 1:
        np.multiply(products, alpha, products, casting="unsafe")
    if beta == 0:
        return products
    if beta == 1:
        fused = _core.add_row(products, self)
        return np.add(products, self, products) if fused is None else fused
    return np.add(products, np.multiply(self, beta).astype(products.dtype, copy=False), products)


def _addmm_flops(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> int:
    return _mm_flops(mat1, mat2)


@op(
    "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace="aten::addmm_",
    out=True,
    flops=_addmm_flops,
)
def addmm(self: np.ndarray, mat1: np.ndarray, mat2: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    if mat1.ndim != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(mat1)} and {_by(mat2)})")
    if mat1.dtype is not mat2.dtype:
        _same_dtype("addmm", mat1, mat2)
    if self.dtype is not mat1.dtype and self.dtype != mat1.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {BY_NUM[self.dtype.num]._abbr} and {BY_NUM[mat2.dtype.num]._abbr}"
        )
    _no_bools("addmm_impl_cpu_", self)
    _check_expands(self, (mat1.shape[0], mat2.shape[1]))
    if not mat1.shape[1]:  # nothing to multiply: whatever alpha is, NaN included
        alpha = 1
    if mat1.dtype in LOW_FLOATS:  # the whole sum in float32, with one rounding at the end
        products = np.matmul(mat1.astype(np.float32), mat2.astype(np.float32))
        return _scaled_sum(self.astype(np.float32), beta, products, alpha).astype(mat1.dtype)
    return _scaled_sum(self, beta, matrix_product(mat1, mat2), alpha)


def _check_expands(self: np.ndarray, shape: tuple) -> None:
    have = self.shape
    if len(have) > len(shape):
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(have)}}}, size={list(shape)}): the number of sizes provided ({len(shape)}) must be greater or "
            f"equal to the number of dimensions in the tensor ({len(have)})"
        )
    lead = len(shape) - len(have)
    for d, n in enumerate(have):
        if n != 1 and n != shape[lead + d]:
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[lead + d]}) must match the existing size ({n}) at non-singleton dimension "
                f"{lead + d}.  Target sizes: {list(shape)}.  Tensor sizes: {list(have)}"
            )


def _times(g: Any, factor: Any) -> Any:
    return g if factor == 1 else mul_scalar(g, conj(factor))


@addmm.backward("self", "mat1", "mat2", values_for={"mat2": "mat1", "mat1": "mat2"})
def _(g: Any, mat1: Any, mat2: Any, alpha: Any, beta: Any, needs: Any) -> Any:
    first = _times(mm_self_grad(g, mat1, mat2), alpha) if needs[1] else None
    second = _times(mm_mat2_grad(g, mat1, mat2), alpha) if needs[2] else None
    return (_times(g, beta) if needs[0] else None), first, second


def _bmm_flops(self: Any, mat2: Any) -> int:
    return bmm_flops(self.shape, mat2.shape)


@op("aten::bmm(Tensor self, Tensor mat2) -> Tensor", out=True, flops=_bmm_flops)
def bmm(self: np.ndarray, mat2: np.ndarray) -> np.ndarray:
    _check_batches(self, mat2, "batch1", "batch2")
    if self.dtype is not mat2.dtype:
        _same_dtype("bmm", self, mat2)
    _no_bools("bmm", self)
    if self.shape[2] == 1:  # nothing to add up
        return np.multiply(self, mat2, order="C")
    return product(self, mat2)


def _check_batches(a: np.ndarray, b: np.ndarray, first: str, second: str) -> None:
    if a.ndim != 3:
        raise RuntimeError(f"{first} must be a 3D tensor")
    if b.ndim != 3:
        raise RuntimeError(f"{second} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of {second} tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )


@bmm.backward("self", "mat2", values_for={"mat2": "self", "self": "mat2"})
def _(g: Any, self: Any, mat2: Any, needs: Any) -> Any:
    second = bmm(conj(self.transpose(1, 2)), g) if needs[1] else None
    first = bmm(g, conj(mat2.transpose(1, 2))) if needs[0] else None
    return first, second


@op(
    "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace="aten::baddbmm_",
    out=True,
    flops=lambda self, batch1, batch2, beta=1, alpha=1: _bmm_flops(batch1, batch2),
)
@in_float32
def baddbmm(self: np.ndarray, batch1: np.ndarray, batch2: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    if not self.dtype == batch1.dtype == batch2.dtype:
        a, b, c = (C_NAMES.get(n, n) for n in (BY_NUM[x.dtype.num]._abbr for x in (self, batch1, batch2)))
        raise RuntimeError(f"Input dtypes must be the same, got: input {a}, batch1: {b}, batch2: {c}")
    _check_batches(batch1, batch2, "batch1", "batch2")
    _no_bools("baddbmm", self)
    products = product(batch1, batch2)
    _check_expands(self, products.shape)
    return _scaled_sum(self, beta, products, alpha)


@baddbmm.backward("self", "batch1", "batch2", values_for={"batch2": "batch1", "batch1": "batch2"})
def _(g: Any, batch1: Any, batch2: Any, alpha: Any, beta: Any, needs: Any) -> Any:
    first = _times(bmm(g, conj(batch2.transpose(1, 2))), alpha) if needs[1] else None
    second = _times(bmm(conj(batch1.transpose(1, 2)), g), alpha) if needs[2] else None
    return (_times(g, beta) if needs[0] else None), first, second


@op(
    "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace="aten::addbmm_",
    out=True,
)
@in_float32
def addbmm(self: np.ndarray, batch1: np.ndarray, batch2: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    _check_batches(batch1, batch2, "batch1", "batch2")
    _same_dtype("addmm", batch1, batch2)
    if self.dtype != batch1.dtype:
        a, b = (BY_NUM[x.dtype.num]._abbr for x in (self, batch1))
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {a} and {b}")
    _no_bools("addmm_impl_cpu_", self)
    total = np.add.reduce(product(batch1, batch2), axis=0, dtype=batch1.dtype)
    _check_expands(self, total.shape)
    return _scaled_sum(self, beta, total, alpha)


@addbmm.backward("self", "batch1", "batch2", values_for={"batch2": "batch1", "batch1": "batch2"})
def _(g: Any, batch1: Any, batch2: Any, alpha: Any, beta: Any, needs: Any) -> Any:
    spread = g.unsqueeze(0).expand(batch1.shape[0], *g.shape)
    first = _times(bmm(spread, conj(batch2.transpose(1, 2))), alpha) if needs[1] else None
    second = _times(bmm(conj(batch1.transpose(1, 2)), spread), alpha) if needs[2] else None
    return (_times(g, beta) if needs[0] else None), first, second


@op("aten::mv(Tensor self, Tensor vec) -> Tensor", out=True)
def mv(self: np.ndarray, vec: np.ndarray) -> np.ndarray:
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0]}), mat ({_by(self)}), vec ({vec.shape[0]})"
        )
    _check_addmv(vec, self, vec)
    return product(self, vec)


def _check_addmv(self: np.ndarray, mat: np.ndarray, vec: np.ndarray) -> None:
    if not self.dtype == mat.dtype == vec.dtype:
        a, b, c = (BY_NUM[x.dtype.num]._abbr for x in (self, mat, vec))
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {a}, {b}, and {c}")
    _no_bools("addmv_impl_cpu", mat)


mv.derivative(self=lambda g, vec: F.ger(g, conj(vec)), vec=lambda g, self: mv(conj(self.t()), g))


@mv.children
def _(self: Any, vec: Any) -> list[Child]:
    if self is not UNKNOWN and self.is_sparse:
        return []
    result = tensor(self.shape[:1], self)
    dtype = UNKNOWN if self is UNKNOWN else ELEMENT_TYPES[self.type].number
    return [
        child("aten::empty.memory_format", result.shape, dtype, 0, allocates=True),
        child("aten::addmv_", result, self, vec, 0, 1),
    ]


@op(
    "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace="aten::addmv_",
    out=True,
)
def addmv(self: np.ndarray, mat: np.ndarray, vec: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    if mat.ndim != 2 or vec.ndim != 1 or self.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or (self.ndim and self.shape[0] not in (1, mat.shape[0])):
        raise RuntimeError(
            f"size mismatch, got input ({self.shape[0] if self.ndim else 1}), mat ({_by(mat)}), vec ({vec.shape[0]})"
        )
    _check_addmv(self, mat, vec)
    return _scaled_sum(self, beta, product(mat, vec), alpha)


addmv.derivative(
    self=lambda g, beta: _times(g, beta),
    mat=lambda g, vec, alpha: _times(F.ger(g, conj(vec)), alpha),
    vec=lambda g, mat, alpha: _times(mv(conj(mat.t()), g), alpha),
)


@op("aten::dot(Tensor self, Tensor tensor) -> Tensor", out=True)
def dot(self: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    _check_vectors("dot", self, tensor)
    return product(self, tensor)


def _check_vectors(name: str, a: np.ndarray, b: np.ndarray) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    _same_dtype("dot", a, b)
    _no_bools("dot", a)
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have the same number of elements, but got "
            f"{a.shape[0]} and {b.shape[0]} elements respectively"
        )


dot.derivative(self=lambda g, tensor: g * conj(tensor), tensor=lambda g, self: g * conj(self))


@op("aten::vdot(Tensor self, Tensor other) -> Tensor", out=True)
def vdot(self: np.ndarray, other: np.ndarray) -> np.ndarray:
    _check_vectors("vdot", self, other)
    return np.vdot(self, other)


vdot.derivative(self=lambda g, other: conj(g) * other, other=lambda g, self: g * self)


@composite("aten::outer(Tensor self, Tensor vec2) -> Tensor", out=True)
def outer(self: Any, vec2: Any) -> Any:
    if self.ndim != 1 or vec2.ndim != 1:
        which, bad = ("self", self) if self.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"outer: Expected 1-D argument {which}, but got {bad.ndim}-D")
    return F.mul(F.reshape(self, (self.shape[0], 1)), vec2)


@composite("aten::ger(Tensor self, Tensor vec2) -> Tensor", out=True)
def ger(self: Any, vec2: Any) -> Any:
    return outer(self, vec2)


@op(
    "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace="aten::addr_",
    out=True,
)
@in_float32
def addr(self: np.ndarray, vec1: np.ndarray, vec2: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    self, vec1, vec2 = _dispatch.promote_all(self, vec1, vec2)
    products = np.multiply.outer(vec1, vec2)
    _check_expands(self, products.shape)
    return _scaled_sum(self, beta, products, alpha)


addr.derivative(
    self=lambda g, beta: _times(g, beta),
    vec1=lambda g, vec2, alpha: _times(mv(g, conj(vec2)), alpha),
    vec2=lambda g, vec1, alpha: _times(mv(g.t(), conj(vec1)), alpha),
)


# ---------------------------------------------------------------------------------------------------- matmul and linear


def _folded(tensor: Any, other: Any) -> bool:
    """Whether matmul folds the batches of `tensor` into rows, as torch decides: fewer copies than batched products."""
    if tensor.ndim < 3 or other.ndim > 2:
        return False
    if other._rg:  # a broadcast matrix would need a large gradient in the backward pass
        return True
    if tensor.numel() == 0:
        return True
    shape, strides = tensor._array.shape, tensor._array.strides
    return all(strides[d] == strides[d + 1] * shape[d + 1] for d in range(tensor.ndim - 2))


@composite("aten::matmul(Tensor self, Tensor other) -> Tensor")
def matmul(self: Any, other: Any) -> Any:
    a, b = self.ndim, other.ndim
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 2 and b == 2:
        return mm(self, other)
    if a == 1 and b == 1:
        return dot(self, other)
    if a == 2 and b == 1:
        return mv(self, other)
    if a == 1 and b == 2:
        return mm(F.unsqueeze(self, 0), other).squeeze_(0)
    if b <= 2 and a >= 3 and _folded(self, other):
        return _matmul_folded(self, other)
    if a <= 2 and b >= 3 and _folded(F.mT(other), self) and (a == 1 or self._rg):
        products = _matmul_folded(F.mT(other), self.t() if a == 2 else self)
        return F.mT(products).contiguous() if a == 2 else products
    return _matmul_batched(self, other)


def _matmul_folded(batched: Any, plain: Any) -> Any:
    sizes = batched._array.shape if not batched._array_missing else tuple(batched.shape)
    last = plain.shape[-1] if plain.ndim == 2 else None
    if sizes[-1] != plain.shape[0]:
        flat = 1
        for n in sizes[:-1]:
            flat *= n
        if plain.ndim == 1:
            raise RuntimeError(
                f"size mismatch, got input ({flat}), mat ({flat}x{sizes[-1]}), vec ({plain.shape[0]})"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({flat}x{sizes[-1]} and {plain.shape[0]}x{last})"
        )
    rows = 1
    for n in sizes[:-1]:
        rows *= n
    flat = F.reshape(batched, (rows, sizes[-1]))
    if plain.ndim == 1:
        return F._unsafe_view(mv(flat, plain), sizes[:-1])
    return F._unsafe_view(mm(flat, plain), (*sizes[:-1], last))


def _matmul_batched(self: Any, other: Any) -> Any:
    sa, sb = tuple(self.shape), tuple(other.shape)
    sa, sb = sa if len(sa) > 1 else (1, *sa), sb if len(sb) > 1 else (*sb, 1)
    try:
        batch = np.broadcast_shapes(sa[:-2], sb[:-2])
    except ValueError:
        raise RuntimeError(_op_errors.broadcast_text([sa[:-2], sb[:-2]])) from None
    n, k, m = sa[-2], sa[-1], sb[-1]
    count = 1
    for size in batch:
        count *= size
    if k != sb[-2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {k}] but got: [{count}, {sb[-2]}]."
        )
    left = F.reshape(F.expand(self, (*batch, n, k)), (count, n, k))
    if other.ndim == 1:
        right = F.unsqueeze(F.reshape(F.expand(other, (*batch, k)), (count, k)), 2)
        return F._unsafe_view(F.squeeze(bmm(left, right), -1), (*batch, n))
    right = F.reshape(F.expand(other, (*batch, k, m)), (count, k, m))
    products = bmm(left, right)
    return F._unsafe_view(products, (*batch, *((n,) if self.ndim > 1 else ()), m))


_matmul_function = matmul


@function("matmul")
def matmul_front(input: Any, other: Any, *, out: Any = None) -> Any:
    """The matrix product, by the shapes of both: vectors, matrices or batches of them."""
    if not isinstance(other, _dispatch.Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if out is not None:
        return _dispatch.call_out(_dispatch.OPS["matmul"], out, (input, other))
    return _matmul_function(input, other)


@function("__matmul__", expose="method")
def _matmul_operator(self: Any, other: Any) -> Any:
    return _matmul_function(self, other) if isinstance(other, _dispatch.Tensor) else NotImplemented


@function("__rmatmul__", expose="method")
def _rmatmul(self: Any, other: Any) -> Any:
    return _matmul_function(other, self) if isinstance(other, _dispatch.Tensor) else NotImplemented


@function("__imatmul__", expose="method")
def _imatmul(self: Any, other: Any) -> Any:
    return self.copy_(_matmul_function(self, other))


@composite("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", expose="no", out=True)
def linear(input: Any, weight: Any, bias: Any) -> Any:
    dims = input.ndim
    if bias is not None and weight.ndim == 2:
        if dims == 2:
            return addmm(bias, input, F.t(weight))
        if dims and bias.ndim == 1 and input.is_contiguous():
            shape = input._array.shape if not input._array_missing else tuple(input.shape)
            rows = 1
            for n in shape[:-1]:
                rows *= n
            flat = F.view(input, (rows, shape[-1]))
            output = addmm(bias, flat, F.t(weight))
            return F.view(
                output,
                (*shape[:-1], output._array.shape[1] if not output._array_missing else output.shape[1]),
            )
    output = _matmul_function(input, F.t(weight))
    return output if bias is None else F.add_(output, bias)


@composite(
    "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    expose="function",
)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    if input1.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            f"bilinear(): input1 size does not match weight size: got {input1.shape[-1]} but expected {weight.shape[1]}"
        )
    if input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): input2 size does not match weight size: got {input2.shape[-1]} but expected {weight.shape[2]}"
        )
    lead = tuple(input1.shape[:-1])
    a = F.reshape(input1, (-1, input1.shape[-1]))
    b = F.reshape(input2, (-1, input2.shape[-1]))
    output = F._trilinear(a, weight, b, (1, 3), (0,), (1, 2), (2, 3))
    output = F.reshape(output, (*lead, weight.shape[0]))
    return output if bias is None else output + bias
