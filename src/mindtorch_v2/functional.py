"""torch.functional: the functions of torch that are written in Python there. The same objects as `torch.einsum` and so on."""

from __future__ import annotations

from . import _dispatch, _lowrank

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "block_diag", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "norm", "meshgrid", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
]  # fmt: skip

pca_lowrank, svd_lowrank = _lowrank.pca_lowrank, _lowrank.svd_lowrank
globals().update({name: _dispatch.FUNCTIONS[name] for name in __all__ if name in _dispatch.FUNCTIONS})
