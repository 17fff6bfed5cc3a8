"""Parts of vmap that packages build theirs on. vmap calls its function once per example here: there are no batched tensors."""

from __future__ import annotations

from .._C._functorch import _add_batch_dim, _remove_batch_dim, is_batchedtensor
from .._tensor import Tensor
from ..func._vmap import _name as _get_name
from ..func._vmap import vmap
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten

__all__ = [
    "Tensor", "_add_batch_dim", "_broadcast_to_and_flatten", "_create_batched_inputs", "_get_name", "_maybe_remove_batch_dim",
    "_process_batched_inputs", "_remove_batch_dim", "_unwrap_batched", "is_batchedtensor", "tree_flatten", "tree_map_", "tree_unflatten",
    "vmap",
]  # fmt: skip


def _refusing(name: str) -> object:
    def function(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            f"torch._functorch.vmap.{name}: vmap calls its function once per example here, and has no tensors that stand for a batch"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises: there are no tensors that stand for a batch."
    return function


_create_batched_inputs = _refusing("_create_batched_inputs")
_maybe_remove_batch_dim = _refusing("_maybe_remove_batch_dim")
_process_batched_inputs = _refusing("_process_batched_inputs")
_unwrap_batched = _refusing("_unwrap_batched")
