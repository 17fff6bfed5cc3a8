"""torch._C._functorch: what torch.func marks tensors with. Transforms work on plain tensors here, so none is marked."""

from __future__ import annotations

from typing import Any


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor stands for a batch in vmap: never, vmap calls its function once per example."""
    return False


is_legacy_batchedtensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether a tensor is wrapped by grad or jvp: never, they use plain tensors."""
    return False


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether a tensor is wrapped by any transform: never."""
    return False


is_functionaltensor = is_functorch_wrapped_tensor


def maybe_get_level(tensor: Any) -> int:
    """The transform that a tensor belongs to; -1: none."""
    return -1


def maybe_get_bdim(tensor: Any) -> int:
    """The dimension of a batch; -1: none."""
    return -1


def get_unwrapped(tensor: Any) -> Any:
    """The tensor itself."""
    return tensor


def _refuse(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"torch._C._functorch.{name}: vmap calls its function once per example here, and has no tensors that stand for a batch"
    )


def _add_batch_dim(tensor: Any, dim: int, level: int) -> Any:
    """Raises: there are no tensors that stand for a batch."""
    raise _refuse("_add_batch_dim")


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """Raises: there are no tensors that stand for a batch."""
    raise _refuse("_remove_batch_dim")
