"""torch.nn.attention: the backends that scaled_dot_product_attention may use, and a context manager that
restricts them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

import mindtorch_v2 as torch

__all__ = [
    "SDPBackend",
    "sdpa_kernel",
    "WARN_FOR_UNFUSED_KERNELS",
    "register_flash_attention_impl",
    "activate_flash_attention_impl",
    "list_flash_attention_impls",
    "current_flash_attention_impl",
    "restore_flash_attention_impl",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(Enum):
    """torch's backends for attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value


# The name of each backend's flag in torch.backends.cuda, in torch's order.
_SWITCHES = {
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
}


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The backends that are enabled."""
    cuda = torch.backends.cuda
    backends = [b for b, name in _SWITCHES.items() if getattr(cuda, f"{name}_sdp_enabled")()]
    backends.append(SDPBackend.OVERRIDEABLE)
    if with_priority:
        order = (1, 2, 0, 3, 4)
        backends.sort(key=lambda backend: order.index(backend.value))
    return backends


def _sdpa_kernel(backends: Iterable[SDPBackend], set_priority: bool = False) -> None:
    allowed = set(backends)
    for backend, name in _SWITCHES.items():
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(backend in allowed)


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[Any, Any]]:
    """Context manager: attention may use only the given backends."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    enabled = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    before = _cur_sdpa_kernel_backends(with_priority=set_priority)
    try:
        _sdpa_kernel(enabled, set_priority)
        yield {}
    finally:
        _sdpa_kernel(before, set_priority)


def list_flash_attention_impls() -> list[str]:
    """The GPU implementations that could be activated: none."""
    return []


def current_flash_attention_impl() -> str | None:
    """The GPU implementation in use: none."""
    return None


def activate_flash_attention_impl(impl: str) -> None:
    """Raises: implementations of flash attention are for GPUs."""
    raise ValueError(
        f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
    )


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Raises: implementations of flash attention are for GPUs."""
    raise RuntimeError(f"cannot register flash attention impl '{impl}': this library runs on the CPU only")


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """No effect: no other implementation can have been activated."""
