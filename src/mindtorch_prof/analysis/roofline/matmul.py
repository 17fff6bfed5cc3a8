"""Matrix products: inputs of mm, addmm, bmm, linear, quantised and grouped forms in; work out.

Of (M, K) x (K, N): 2 M N K operations, and M N more where something is added. Both factors are read and the product is written.
"""

from __future__ import annotations

import re

from ...inputs import ELEMENT_TYPES, ElementType
from .work import (
    MATRIX,
    Call,
    Model,
    NotModelled,
    Tensor,
    Work,
    broadcast,
    contiguous,
    element_of_number,
    moved,
)

CATEGORY = "matmul"
_INT32 = ELEMENT_TYPES["int"]
_BFLOAT16 = ELEMENT_TYPES["c10::BFloat16"]


def _product(
    left: Tensor,
    right: Tensor,
    rows: int,
    columns: int,
    inner: int,
    result: Tensor,
    added: Tensor | None = None,
    others: tuple[Tensor | None, ...] = (),
) -> Work:
    """`rows`: of all matrices of a batch together."""
    flop = 2 * rows * columns * inner + (rows * columns if added is not None else 0)
    return Work(flop, moved(left, right, result, added, *others), CATEGORY, MATRIX, left.element.dtype)


def _matrices(
    left: Tensor, right: Tensor, element: ElementType | None = None
) -> tuple[int, int, int, Tensor]:
    """Rows, columns and inner size of a product of two matrices, and the product."""
    if len(left.shape) != 2 or len(right.shape) != 2 or left.shape[1] != right.shape[0]:
        raise NotModelled("the shapes are not those of two matrices that fit")
    rows, inner = left.shape
    columns = right.shape[1]
    return rows, columns, inner, contiguous((rows, columns), element or left.element)


def mm(call: Call) -> Work:
    left, right = call.tensor(0), call.tensor(1)
    given = call.optional(2)  # out=
    rows, columns, inner, result = _matrices(left, right, given.element if given else None)
    return _product(left, right, rows, columns, inner, result)


def addmm(call: Call) -> Work:
    added, left, right = call.tensor(0), call.tensor(1), call.tensor(2)
    rows, columns, inner, result = _matrices(left, right)
    return _product(left, right, rows, columns, inner, result, added)


def _batch(left: Tensor, right: Tensor, added: Tensor | None = None) -> Work:
    if len(left.shape) != 3 or len(right.shape) != 3 or left.shape[2] != right.shape[1]:
        raise NotModelled("the shapes are not those of two batches of matrices that fit")
    batch, rows, inner = left.shape
    columns = right.shape[2]
    result = contiguous((batch, rows, columns), left.element)
    return _product(left, right, batch * rows, columns, inner, result, added)


def bmm(call: Call) -> Work:
    return _batch(call.tensor(0), call.tensor(1))


def baddbmm(call: Call) -> Work:
    return _batch(call.tensor(1), call.tensor(2), call.tensor(0))


def matmul(call: Call) -> Work:
    """Of tensors of any number of dimensions, as `torch.matmul` takes them."""
    left, right = call.tensor(0), call.tensor(1)
    if not left.shape or not right.shape:
        raise NotModelled("a factor has no dimensions")
    left_shape = left.shape if len(left.shape) > 1 else (1, *left.shape)
    right_shape = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    if left_shape[-1] != right_shape[-2]:
        raise NotModelled("the shapes of the factors do not fit")
    batch = broadcast([left_shape[:-2], right_shape[:-2]])
    result = contiguous((*batch, left_shape[-2], right_shape[-1]), left.element)
    rows = result.numel // max(right_shape[-1], 1)
    return _product(left, right, rows, right_shape[-1], left_shape[-1], result)


def linear(call: Call) -> Work:
    """input (..., K), weight (N, K), and a bias or nothing."""
    return _linear(call.tensor(0), call.tensor(1), call.optional(2))


def _linear(left: Tensor, weight: Tensor, bias: Tensor | None) -> Work:
    if len(weight.shape) != 2 or not left.shape or left.shape[-1] != weight.shape[1]:
        raise NotModelled("the shapes are not those of an input and a weight that fit")
    result = contiguous((*left.shape[:-1], weight.shape[0]), left.element)
    rows = left.numel // max(left.shape[-1], 1)
    return _product(left, weight, rows, weight.shape[0], left.shape[-1], result, bias)


def scaled_mm(call: Call) -> Work:
    """mat1, mat2, scales of both, bias, scale of the result, dtype of the result."""
    left, right = call.tensor(0), call.tensor(1)
    number = call.value(6)
    element = element_of_number(number) if isinstance(number, int) else None
    rows, columns, inner, result = _matrices(left, right, element or left.element)
    scales = (call.optional(2), call.optional(3))
    return _product(left, right, rows, columns, inner, result, call.optional(4), scales)


def int_mm(call: Call) -> Work:
    left, right = call.tensor(0), call.tensor(1)
    rows, columns, inner, result = _matrices(left, right, _INT32)
    return _product(left, right, rows, columns, inner, result)


def weight_only_quantised_mm(call: Call) -> Work:
    """input (M, K), a packed weight, and its scales, the last of which tell N."""
    left, weight = call.tensor(0), call.tensor(1)
    scales = [tensor for tensor in call.tensors()[2:] if tensor.shape]
    if len(left.shape) != 2 or not scales:
        raise NotModelled("the scales of the packed weight were not recorded")
    shape = scales[-1].shape  # (N,), or (groups, N, 2)
    columns = shape[0] if len(shape) == 1 else shape[-2]
    result = contiguous((left.shape[0], columns), left.element)
    return _product(left, weight, left.shape[0], columns, left.shape[1], result, others=tuple(scales))


def _grouped(left: Tensor, right: Tensor, others: tuple[Tensor | None, ...], offsets: Tensor | None) -> Work:
    """Products of groups: either factor is one matrix cut into groups, or a batch with one matrix per group."""
    if len(left.shape) == 3 and len(right.shape) == 3:
        return _batch(left, right)
    if left.shape[-1] != right.shape[-2]:
        raise NotModelled("the shapes of the factors do not fit")
    if len(left.shape) == 2 and len(right.shape) == 2:  # cut along the inner dimension
        if offsets is None or not offsets.shape:
            raise NotModelled("the number of groups was not recorded")
        shape: tuple[int, ...] = (offsets.shape[0], left.shape[0], right.shape[1])
    else:
        shape = (left.shape[-2], right.shape[-1])
    element = left.element if left.element.nbytes > 1 else _BFLOAT16  # products of 8-bit factors are bfloat16
    result = contiguous(shape, element)
    flop = 2 * left.shape[-2] * right.shape[-1] * left.shape[-1]
    return Work(flop, moved(left, right, result, *others), CATEGORY, MATRIX, left.element.dtype)


def grouped_mm(call: Call) -> Work:
    return _grouped(call.tensor(0), call.tensor(1), (call.optional(3),), call.optional(2))


def scaled_grouped_mm(call: Call) -> Work:
    others = call.optional(2), call.optional(3), call.optional(5)
    return _grouped(call.tensor(0), call.tensor(1), others, call.optional(4))


def mv(call: Call) -> Work:
    matrix, vector = call.tensor(0), call.tensor(1)
    return _matrix_vector(matrix, vector, None)


def addmv(call: Call) -> Work:
    return _matrix_vector(call.tensor(1), call.tensor(2), call.tensor(0))


def _matrix_vector(matrix: Tensor, vector: Tensor, added: Tensor | None) -> Work:
    if len(matrix.shape) != 2 or vector.shape != matrix.shape[1:]:
        raise NotModelled("the shapes are not those of a matrix and a vector that fit")
    result = contiguous(matrix.shape[:1], matrix.element)
    return _product(matrix, vector, matrix.shape[0], 1, matrix.shape[1], result, added)


def dot(call: Call) -> Work:
    left, right = call.tensor(0), call.tensor(1)
    return _product(left, right, 1, 1, left.numel, contiguous((), left.element))


def written_to_first(call: Call) -> Work:
    """vLLM's quantised products: result, mat1, mat2, scales of both, bias."""
    result, left, right = call.tensor(0), call.tensor(1), call.tensor(2)
    rows, columns, inner, _ = _matrices(left, right)
    if result.shape != (rows, columns):
        raise NotModelled("the shapes of the product and of the factors do not fit")
    others = call.optional(3), call.optional(4)
    return _product(left, right, rows, columns, inner, result, call.optional(5), others)


def library_gemm(call: Call) -> Work:
    """A product of another library, by its shapes: input (..., K) and weight (N, K) or (K, N), and a bias of N elements or nothing.
    A square weight gives the same either way."""
    left, weight = call.tensor(0), call.tensor(1)
    if len(left.shape) < 2 or len(weight.shape) != 2:
        raise NotModelled("the shapes are not those of an input and a weight")
    bias = call.optional(2)
    if left.shape[-1] == weight.shape[1]:
        columns = weight.shape[0]
    elif left.shape[-1] == weight.shape[0]:
        columns = weight.shape[1]
    else:
        raise NotModelled("the shapes of the input and of the weight do not fit")
    if bias is not None and bias.shape not in ((columns,), (1, columns)):
        bias = None
    result = contiguous((*left.shape[:-1], columns), left.element)
    rows = left.numel // max(left.shape[-1], 1)
    return _product(left, weight, rows, columns, left.shape[-1], result, bias)


MODELS: dict[str, Model] = {
    "aten::mm": mm,
    "aten::addmm": addmm,
    "aten::_addmm_activation": addmm,
    "aten::bmm": bmm,
    "aten::baddbmm": baddbmm,
    "aten::matmul": matmul,
    "aten::linear": linear,
    "aten::_scaled_mm": scaled_mm,
    "aten::_int_mm": int_mm,
    "aten::_weight_int8pack_mm": weight_only_quantised_mm,
    "aten::_weight_int4pack_mm": weight_only_quantised_mm,
    "aten::_grouped_mm": grouped_mm,
    "aten::_scaled_grouped_mm": scaled_grouped_mm,
    "aten::mv": mv,
    "aten::addmv": addmv,
    "aten::dot": dot,
    "aten::vdot": dot,
    "npu::npu_linear": linear,
    "_C::cutlass_scaled_mm": written_to_first,
}

# other libraries' names of one product with a weight; not of ops that do more, such as fused_linear_cross_entropy
LIBRARY_NAMES = re.compile(r"(?!aten::)\w+::(\w+_)?(gemm|linear|mm)(_a\d+w\d+)?")
