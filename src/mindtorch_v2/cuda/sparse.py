"""torch.cuda.sparse: legacy types of sparse CUDA tensors; no tensor is one, and none can be built."""

from __future__ import annotations

from typing import Any, NoReturn

from ._absent import no_cuda

__all__ = [
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
]  # fmt: skip


class _SparseCudaTensor:
    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise no_cuda()


(
    BFloat16Tensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor, ShortTensor,
) = (type(name, (_SparseCudaTensor,), {"__module__": __name__}) for name in __all__)  # fmt: skip
