"""torch.backends.cuda: flags of kernels that do not exist here. They can be set and read."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..._ops.attention import ALLOWED
from .._precision import FP32Precision, get_float32_matmul_precision, set_float32_matmul_precision

__all__ = [
    "is_built",
    "matmul",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "math_sdp_enabled",
    "mem_efficient_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "allow_fp16_bf16_reduction_math_sdp",
    "is_flash_attention_available",
    "sdp_kernel",
]


def is_built() -> bool:
    """Whether this build has CUDA: no."""
    return False


class cuBLASModule(FP32Precision):
    """The flags of CUDA's matrix products."""

    __slots__ = (
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
    )

    def __init__(self) -> None:
        super().__init__()
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether products may use TF32; the same setting as `torch.set_float32_matmul_precision`."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        set_float32_matmul_precision("high" if value else "highest")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"Unknown attribute {name}")
        super().__setattr__(name, value)


matmul = cuBLASModule()


def flash_sdp_enabled() -> bool:
    """Whether flash attention may be chosen."""
    return ALLOWED["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow flash attention, or not."""
    ALLOWED["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention may be chosen."""
    return ALLOWED["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow memory-efficient attention, or not."""
    ALLOWED["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """Whether plain attention may be chosen."""
    return ALLOWED["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allow plain attention, or not."""
    ALLOWED["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention may be chosen."""
    return ALLOWED["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow cuDNN's attention, or not."""
    ALLOWED["cudnn"] = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether plain attention may sum in half precision."""
    return ALLOWED["reduced_math"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow plain attention to sum in half precision, or not."""
    ALLOWED["reduced_math"] = enabled


def is_flash_attention_available() -> bool:
    """Whether there is a flash attention kernel for CUDA: no."""
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Context manager: restrict the choice of attention kernels."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. "
        "In the future, this context manager will be removed. "
        "Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    before = dict(ALLOWED)
    ALLOWED.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        ALLOWED.update(before)
