"""Autocast: an op and its arguments in, its result on cast arguments out. The state is per thread."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import mindtorch_v2 as torch

from . import _dispatch

# CPU autocast's rule for each op, by aten name: cast to the lower precision, to float32, or to the widest.
LOWER_PRECISION = frozenset(
    """_addmm_activation _convolution _native_multi_head_attention addbmm addmm baddbmm bmm conv1d
    conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot linear
    matmul mkldnn_rnn_layer mm prelu scaled_dot_product_attention""".split()
)

FLOAT32 = frozenset(
    """_grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d
    binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve
    cosine_embedding_loss cross_entropy_loss ctc_loss fake_quantize_per_tensor_affine fft_fft fft_fft2
    fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft
    fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d
    grid_sampler_3d hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky
    linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr
    linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve
    margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss multi_margin_loss
    multilabel_margin_loss multilabel_margin_loss_forward nanquantile nll_loss nll_loss2d orgqr ormqr
    pinverse poisson_nll_loss polar prod qr quantile reflection_pad1d reflection_pad2d replication_pad1d
    replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss stft svd trace triangular_solve
    triplet_margin_loss view_as_complex""".split()
)

WIDEST = frozenset(("cat", "index_copy", "stack"))

LISTED = LOWER_PRECISION | FLOAT32 | WIDEST

# The dtype autocast starts with on each device type that has it in torch.
DEFAULT_DTYPES = {
    "cpu": "bfloat16",
    "cuda": "float16",
    "xpu": "float16",
    "mps": "float16",
    "hpu": "bfloat16",
    "mtia": "float16",
    "maia": "bfloat16",
    "xla": "bfloat16",
    "ipu": "float16",
    "privateuseone": "float16",
}


class _Switches(threading.local):
    """Autocast's state in one thread."""

    def __init__(self) -> None:
        self.on = False  # CPU autocast casts
        self.dtypes: dict[str, Any] = {}  # device types whose dtype was changed
        self.others: set[str] = set()  # other device types that are switched on, without effect here
        self.nesting = 0
        self.cache_enabled = True
        self.cache: dict[int, tuple[Any, Any]] = {}  # id of a leaf -> (the leaf, its cast)


switches = _Switches()

_count_lock = threading.Lock()
_threads_on = 0


def _device_type(device_type: str) -> str:
    kind = device_type if device_type in DEFAULT_DTYPES else torch.device(device_type).type
    if kind not in DEFAULT_DTYPES:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on in this thread for a device type."""
    kind = _device_type(device_type)
    return switches.on if kind == "cpu" else kind in switches.others


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off in this thread; called with a bool alone, for cuda."""
    global _threads_on
    if enabled is None:
        device_type, enabled = "cuda", device_type  # type: ignore[assignment]
    kind = _device_type(device_type)  # type: ignore[arg-type]
    if kind != "cpu":
        (switches.others.add if enabled else switches.others.discard)(kind)
        return
    enabled = bool(enabled)
    if enabled == switches.on:
        return
    switches.on = enabled
    with _count_lock:
        _threads_on += 1 if enabled else -1
        _dispatch.autocast = run_cast if _threads_on else None


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype autocast casts to on a device type."""
    kind = device_type if device_type in DEFAULT_DTYPES else torch.device(device_type).type
    if kind not in DEFAULT_DTYPES:
        raise RuntimeError("unsupported scalarType")
    return switches.dtypes.get(kind) or getattr(torch, DEFAULT_DTYPES[kind])


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Choose the dtype autocast casts to on a device type."""
    switches.dtypes[_device_type(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until autocast ends."""
    return switches.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Choose whether casts of weights are kept until autocast ends."""
    switches.cache_enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of weights kept in this thread."""
    switches.cache.clear()


def autocast_increment_nesting() -> int:
    """Count one more autocast block."""
    switches.nesting += 1
    return switches.nesting


def autocast_decrement_nesting() -> int:
    """Count one autocast block less."""
    switches.nesting -= 1
    return switches.nesting


def _deprecated(old: str, new: str) -> None:
    text = f"torch.{old} is deprecated. Please use torch.{new} instead."
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def is_autocast_cpu_enabled() -> bool:
    """Old name of `is_autocast_enabled('cpu')`."""
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return switches.on


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Old name of `set_autocast_enabled('cpu', enabled)`."""
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Any:
    """Old name of `get_autocast_dtype('cpu')`."""
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """Old name of `get_autocast_dtype('cuda')`."""
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Old name of `set_autocast_dtype('cuda', dtype)`."""
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Old name of `set_autocast_dtype('cpu', dtype)`."""
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


# ---------------------------------------------------------------------------------------------------- casting


def run_cast(op: Any, arguments: tuple) -> Any:
    """Run an op of `LISTED` on cast arguments, autocast off inside it; None when it is off in this thread."""
    if not switches.on:
        return None
    if op.name in LOWER_PRECISION:
        dtype = get_autocast_dtype("cpu")
    elif op.name in FLOAT32:
        dtype = torch.float32
    else:
        dtype = _widest(arguments)
    cast = _cast_all(arguments, dtype)
    switches.on = False
    try:
        return _dispatch.record(op, *cast)
    finally:
        switches.on = True


def _cast_all(arguments: Any, dtype: Any) -> list[Any]:
    """Cast every float tensor except those of float64; the last argument first, as torch does."""
    done = []
    for value in reversed(arguments):
        if isinstance(value, torch.Tensor):
            value = _cast(value, dtype)
        elif isinstance(value, (tuple, list)) and value and isinstance(value[0], torch.Tensor):
            value = [_cast(item, dtype) for item in value]
        done.append(value)
    done.reverse()
    return done


def _cast(tensor: Any, dtype: Any) -> Any:
    if tensor.dtype is dtype or not tensor.is_floating_point() or tensor.dtype is torch.float64:
        return tensor
    keep = (
        switches.cache_enabled
        and switches.nesting
        and tensor.dtype is torch.float32
        and tensor.is_leaf
        and tensor.requires_grad
        and tensor._base is None
    )
    if not keep:
        return tensor.to(dtype)
    cached = switches.cache.get(id(tensor))
    if cached is not None and cached[0] is tensor and cached[1].dtype is dtype:
        return cached[1]
    cast = tensor.to(dtype)
    switches.cache[id(tensor)] = (tensor, cast)
    return cast


def _widest(arguments: Any) -> Any:
    lower = widest = get_autocast_dtype("cpu")
    for value in arguments:
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
                continue
            if tensor.dtype is torch.float32:
                widest = torch.float32
            elif tensor.dtype is not torch.float64 and tensor.dtype is not lower:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return widest
