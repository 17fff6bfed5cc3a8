"""Matrix products of small number types: int8 summed in int32, and float8 with scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import op
from .._dtype import BY_NUM
from .._op_errors import not_implemented
from .matmul import C_NAMES

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def _element_type(array: np.ndarray) -> str:
    """The name of the elements' type in torch's messages, such as float."""
    name = BY_NUM[array.dtype.num]._abbr
    return C_NAMES.get(name, name)


@op("aten::_int_mm(Tensor self, Tensor mat2) -> Tensor", out=True, nondifferentiable=True)
def _int_mm(self: np.ndarray, mat2: np.ndarray) -> np.ndarray:
    """The product of matrices of bytes, summed in int32."""
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {matrix.ndim}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and {mat2.shape[0]}"
        )
    if self.dtype not in _BYTES:
        raise RuntimeError(
            f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {_element_type(self)}"
        )
    if mat2.dtype != np.int8:
        raise RuntimeError(
            f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {_element_type(mat2)}"
        )
    # exact: products of bytes and their sums stay below 2**53 for any matrix that fits in memory
    return np.matmul(self.astype(np.float64), mat2.astype(np.float64)).astype(np.int64).astype(np.int32)


@op(
    "aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, "
    "ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    nondifferentiable=True,
)
def _scaled_mm(
    self: np.ndarray,
    mat2: np.ndarray,
    scale_a: np.ndarray,
    scale_b: np.ndarray,
    bias: Any,
    scale_result: Any,
    out_dtype: Any,
    use_fast_accum: bool,
) -> np.ndarray:
    """The product of float8 matrices in float32, times the scales of their tensors or of their rows and columns."""
    for matrix in (self, mat2):
        if not str(BY_NUM[matrix.dtype.num]).startswith("torch.float8"):
            raise not_implemented("_scaled_mm", matrix)
    if scale_result is not None:
        raise NotImplementedError("_scaled_mm: scale_result is not part of this library; scale the result")
    product = np.matmul(self.astype(np.float32), mat2.astype(np.float32)) * scale_a * scale_b
    if bias is not None:
        product = product + bias.astype(np.float32)
    return product.astype(self.dtype if out_dtype is None else out_dtype._np)
