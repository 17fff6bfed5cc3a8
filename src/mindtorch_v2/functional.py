"""torch.functional: functions that torch implements in Python. The same objects as `torch.einsum` and so on."""

from __future__ import annotations

from . import _dispatch, _lowrank

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "block_diag", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "norm", "meshgrid", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
]  # fmt: skip

pca_lowrank, svd_lowrank = _lowrank.pca_lowrank, _lowrank.svd_lowrank
atleast_1d = _dispatch.FUNCTIONS["atleast_1d"]
atleast_2d = _dispatch.FUNCTIONS["atleast_2d"]
atleast_3d = _dispatch.FUNCTIONS["atleast_3d"]
broadcast_shapes = _dispatch.FUNCTIONS["broadcast_shapes"]
broadcast_tensors = _dispatch.FUNCTIONS["broadcast_tensors"]
cartesian_prod = _dispatch.FUNCTIONS["cartesian_prod"]
block_diag = _dispatch.FUNCTIONS["block_diag"]
cdist = _dispatch.FUNCTIONS["cdist"]
chain_matmul = _dispatch.FUNCTIONS["chain_matmul"]
einsum = _dispatch.FUNCTIONS["einsum"]
istft = _dispatch.FUNCTIONS["istft"]
lu = _dispatch.FUNCTIONS["lu"]
norm = _dispatch.FUNCTIONS["norm"]
meshgrid = _dispatch.FUNCTIONS["meshgrid"]
split = _dispatch.FUNCTIONS["split"]
stft = _dispatch.FUNCTIONS["stft"]
tensordot = _dispatch.FUNCTIONS["tensordot"]
unique = _dispatch.FUNCTIONS["unique"]
unique_consecutive = _dispatch.FUNCTIONS["unique_consecutive"]
unravel_index = _dispatch.FUNCTIONS["unravel_index"]
