"""A torch-compatible library on NumPy: `import mindtorch_v2 as torch`. This file only assembles the
namespace.
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
import sys as _sys
import warnings as _warnings
from typing import Any as _Any

# NumPy warns where torch does not (1/0, overflow). Only warnings from our own kernels are silenced, not those
# of the user's NumPy code.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mindtorch_v2(\.|$)")

from . import _allocator

_allocator.tune()

from . import _dispatch, _dtype, _jit_types
from . import _ops as _ops
from ._device import device, get_default_device, set_default_device
from ._dtype import (
    can_cast as _can_cast_dtypes,
)
from ._dtype import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    jagged,
    layout,
    memory_format,
    preserve_format,
    promote_types,
    set_default_dtype,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ._qscheme import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from ._size import Size
from ._storage import UntypedStorage
from ._tensor import Tensor
from ._tensor import install as _install

globals().update(_dtype.NAMES)
globals().update(_dispatch.FUNCTIONS)
_install(_dispatch.METHODS)

pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
can_cast = _can_cast_dtypes
legacy_contiguous_format = contiguous_format

from . import autograd as autograd
from ._threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .torch_version import __version__

# Imported on first access: a bare `import mindtorch_v2` stays fast, and `torch.nn`, `torch.cuda` ... need no
# import of their own.
_LAZY = {
    name: name
    for name in (
        "accelerator", "amp", "ao", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx",
        "hub", "jit", "library", "linalg", "masked", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx", "optim", "overrides", "profiler", "quantization", "quasirandom",
        "random",
        "return_types", "serialization", "signal", "sparse", "special", "storage", "testing", "types", "utils", "version", "xpu", "__config__",
        "ops", "torch_version", "_C", "_decomp", "_dynamo", "_higher_order_ops", "_custom_ops", "_functorch", "_guards", "_inductor", "_jit_internal", "_subclasses", "_utils", "_tensor_str", "_as_torch", "_compile",
    )
}  # fmt: skip
_LAZY_NAMES = {
    **dict.fromkeys(
        (*_jit_types.NAMES, "TensorType", "Graph", "Node", "Value", "DispatchKey", "DispatchKeySet", "DisableTorchFunction", "DisableTorchFunctionSubclass"),
        "_C",
    ),
    "save": "serialization", "load": "serialization", "set_printoptions": "_tensor_str", "get_printoptions": "_tensor_str",
    "manual_seed": "random", "seed": "random", "initial_seed": "random", "get_rng_state": "random", "set_rng_state": "random",
    "default_generator": "_random", "Generator": "_random", "as_torch": "_as_torch", "compile": "_compile",
    "TypedStorage": "storage", "typename": "_typename", "vmap": "func", "Storage": "storage", "is_storage": "storage", "FloatStorage": "storage",
    "DoubleStorage": "storage", "HalfStorage": "storage", "BFloat16Storage": "storage", "LongStorage": "storage",
    "IntStorage": "storage", "ShortStorage": "storage", "CharStorage": "storage", "ByteStorage": "storage",
    "BoolStorage": "storage", "ComplexFloatStorage": "storage", "ComplexDoubleStorage": "storage",
    "autocast": "amp", "GradScaler": "amp", "is_autocast_enabled": "_autocast", "set_autocast_enabled": "_autocast", "get_autocast_dtype": "_autocast",
    "set_autocast_dtype": "_autocast", "is_autocast_cache_enabled": "_autocast", "set_autocast_cache_enabled": "_autocast",
    "clear_autocast_cache": "_autocast", "autocast_increment_nesting": "_autocast", "autocast_decrement_nesting": "_autocast",
    "is_autocast_cpu_enabled": "_autocast", "set_autocast_cpu_enabled": "_autocast", "get_autocast_cpu_dtype": "_autocast",
    "set_autocast_cpu_dtype": "_autocast", "get_float32_matmul_precision": "backends._precision",
    "set_float32_matmul_precision": "backends._precision", "to_dlpack": "utils.dlpack", "from_dlpack": "utils.dlpack",
    **dict.fromkeys((
        "use_deterministic_algorithms", "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
        "set_deterministic_debug_mode", "get_deterministic_debug_mode", "set_warn_always", "is_warn_always_enabled", "set_flush_denormal",
        "is_anomaly_enabled", "is_anomaly_check_nan_enabled", "set_anomaly_enabled", "get_device_module", "set_default_tensor_type", "set_vital",
    ), "_settings"),
    **dict.fromkeys((
        "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor", "ShortTensor", "CharTensor",
        "ByteTensor", "BoolTensor",
    ), "_legacy"),
    **dict.fromkeys(("OutOfMemoryError", "AcceleratorError"), "_failures"),
    **dict.fromkeys((
        "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
    ), "_symbolic"),
    **dict.fromkeys((
        "_assert", "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
        "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
    ), "_checks"),
    "Future": "futures", "ScriptModule": "jit", "ScriptFunction": "jit", "PyTorchFileReader": "_C._file_reader", "Stream": "accelerator",
    "Event": "accelerator", "get_autocast_gpu_dtype": "_autocast", "set_autocast_gpu_dtype": "_autocast", "StorageBase": "storage",
    "classes": "_classes", "TensorType": "_C",
    "cond": "_control_flow", "while_loop": "_control_flow", "lobpcg": "_lobpcg", "svd_lowrank": "_lowrank", "pca_lowrank": "_lowrank",
}  # fmt: skip


_PACKAGE = __name__  # as_torch() gives the module the name torch


def __getattr__(name: str) -> _Any:
    if name == "torch":  # torch.torch is torch
        return _sys.modules[_PACKAGE]
    if name in _LAZY:
        return _importlib.import_module("." + _LAZY[name], _PACKAGE)
    home = _LAZY_NAMES.get(name)
    if home is not None:
        value = getattr(_importlib.import_module("." + home, _PACKAGE), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})
