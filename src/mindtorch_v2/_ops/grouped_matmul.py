"""Products of groups of rows or columns with a matrix each, as in mixtures of experts."""

from __future__ import annotations

from typing import Any

from .._dispatch import op
from ._namespace import functions as F


def _check(self: Any, mat2: Any, offs: Any, bias: Any, out_dtype: Any) -> None:
    if self.dim() not in (2, 3):
        raise RuntimeError("mat_a has to be 2 or 3d")
    if mat2.dim() not in (2, 3):
        raise RuntimeError("mat_b has to be 2 or 3d")
    if str(self.dtype) not in ("torch.float32", "torch.bfloat16", "torch.float16"):
        raise RuntimeError(
            f"Expected mat_a to be Float32, BFloat16 or Float16 matrix, got {self.dtype._abbr}"
        )
    if self.shape[-1] != mat2.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) != (self.dim() == mat2.dim() == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    batches = [x.shape[0] for x in (self, mat2) if x.dim() == 3]
    if offs is not None:
        if offs.dim() != 1:
            raise RuntimeError("offs has to be 1D")
        if str(offs.dtype) != "torch.int32":
            raise RuntimeError("Offsets have to be int32")
        batches.append(offs.shape[0])
    if len(set(batches)) > 1:
        raise RuntimeError("matrix batch sizes have to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not self.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


@op(
    "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
    expose="function",
    on="tensors",
)
def _grouped_mm(self: Any, mat2: Any, offs: Any, bias: Any, out_dtype: Any) -> Any:
    """`offs` holds where each group ends: of rows of `self`, of columns of `mat2`, or of the dimension that both share."""
    _check(self, mat2, offs, bias, out_dtype)
    if offs is None:
        return F.bmm(self, mat2)
    rows, columns = self.shape[-2], mat2.shape[-1]
    flat = self.dim() == 2, mat2.dim() == 2
    shape = (rows, columns) if flat[0] != flat[1] else (offs.shape[0], rows, columns)
    result = F.empty(shape, dtype=self.dtype)
    start = 0
    for group in range(offs.shape[0]):
        end = offs[group].item()
        if flat == (True, False):
            F.mm(self[start:end], mat2[group], out=result[start:end])
        elif flat == (False, True):
            F.mm(self[group], mat2[:, start:end], out=result[:, start:end])
        else:
            F.mm(self[:, start:end], mat2[start:end], out=result[group])
        start = end
    return result


@_grouped_mm.backward("self", "mat2", values_for={"mat2": "self", "self": "mat2"})
def _(g: Any, self: Any, mat2: Any, offs: Any, needs: Any) -> Any:
    first = F._grouped_mm(g, mat2.transpose(-2, -1), offs) if needs[0] else None
    second = F._grouped_mm(self.transpose(-2, -1), g, offs) if needs[1] else None
    return first, second
