"""`ReduceOp`: how the values of several processes become one."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np


class _RedOpType(Enum):
    """The kinds of reduction, with torch's numbers."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """The reductions as attributes: `ReduceOp.SUM`."""

    RedOpType = _RedOpType
    SUM = _RedOpType.SUM
    AVG = _RedOpType.AVG
    PRODUCT = _RedOpType.PRODUCT
    MIN = _RedOpType.MIN
    MAX = _RedOpType.MAX
    BAND = _RedOpType.BAND
    BOR = _RedOpType.BOR
    BXOR = _RedOpType.BXOR
    PREMUL_SUM = _RedOpType.PREMUL_SUM

    def __new__(cls, op: Any) -> Any:
        return _RedOpType(op) if not isinstance(op, _RedOpType) else op


_FUNCTIONS: dict[_RedOpType, Any] = {
    _RedOpType.SUM: np.add,
    _RedOpType.AVG: np.add,
    _RedOpType.PRODUCT: np.multiply,
    _RedOpType.MIN: np.minimum,
    _RedOpType.MAX: np.maximum,
    _RedOpType.BAND: np.bitwise_and,
    _RedOpType.BOR: np.bitwise_or,
    _RedOpType.BXOR: np.bitwise_xor,
}


def reduction(op: Any, dtype: np.dtype) -> Any:
    """The NumPy function of a reduction; raises for values it is not defined for."""
    kind = _RedOpType(op) if not isinstance(op, _RedOpType) else op
    if kind is _RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    bitwise = kind in (_RedOpType.BAND, _RedOpType.BOR, _RedOpType.BXOR)
    if bitwise and dtype.kind not in "iub":
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
    if dtype.kind in "cW" and kind not in (_RedOpType.SUM, _RedOpType.AVG):
        raise ValueError(f"all_reduce does not support {kind} on complex tensors")
    return _FUNCTIONS[kind]


ReduceOp.__module__ = _RedOpType.__module__ = "torch.distributed"
