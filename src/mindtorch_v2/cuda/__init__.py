"""torch.cuda without CUDA: queries return what torch's CPU build returns, work raises its errors."""

from __future__ import annotations

from typing import Any, NoReturn

import mindtorch_v2 as torch

from .._failures import AcceleratorError as AcceleratorError
from .._failures import OutOfMemoryError as OutOfMemoryError
from . import amp, graphs, memory, nvtx, profiler, random, sparse, streams
from ._absent import no_cuda
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, ExternalStream, Stream

has_half: bool = True
has_magma: bool = False
default_generators: tuple[Any, ...] = ()


def is_available() -> bool:
    """Whether a CUDA device can be used: never."""
    return False


def device_count() -> int:
    """The number of CUDA devices: 0."""
    return 0


_initialized = False  # CUDA was started


def is_initialized() -> bool:
    """Whether CUDA has been initialised: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current CUDA device computes in bfloat16: there is none."""
    return False


def is_tf32_supported() -> bool:
    """Whether the current CUDA device computes in TF32: there is none."""
    return False


def get_arch_list() -> list[str]:
    """CUDA architectures this build was compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """Compiler flags for those architectures: none."""
    return ""


def init() -> NoReturn:
    """Raises: there is no CUDA to initialise."""
    raise no_cuda()


def current_device() -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def synchronize(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA device to wait for."""
    raise no_cuda()


def get_device_name(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def get_device_capability(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def get_device_properties(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def can_device_access_peer(device: Any, peer_device: Any) -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def current_stream(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA stream."""
    raise no_cuda()


def default_stream(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA stream."""
    raise no_cuda()


def get_stream_from_external(data_ptr: int, device: Any = None) -> NoReturn:
    """Raises: there is no CUDA stream."""
    raise no_cuda()


def current_blas_handle() -> NoReturn:
    """Raises: there is no cuBLAS."""
    raise no_cuda()


def cudart() -> NoReturn:
    """Raises: there is no CUDA run time."""
    raise no_cuda()


def ipc_collect() -> NoReturn:
    """Raises: there is no CUDA memory to share."""
    raise no_cuda()


def get_sync_debug_mode() -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def set_sync_debug_mode(debug_mode: int | str) -> NoReturn:
    """Raises: there is no CUDA device."""
    raise no_cuda()


def set_device(device: Any) -> None:
    """Select the CUDA device; raises unless the index is negative, which means no change."""
    index = device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        index = device.index
    if not isinstance(index, int):
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    if index >= 0:
        raise no_cuda()


class device:
    """Context manager: use a CUDA device. Entering raises unless the index is negative, which means no
    change.
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _index_of(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exception: object) -> None:
        return None


class device_of(device):
    """Context manager: use the device of `obj`. A CPU tensor has no effect."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


class StreamContext:
    """Context manager: use a CUDA stream. Only `None` is possible, which has no effect."""

    cur_stream: Stream | None

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """Context manager: use `stream`."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Select the stream; only `None` is possible, which has no effect."""
    if stream is not None:
        raise no_cuda()


class DeferredCudaCallError(Exception):
    """A call that was deferred until CUDA starts has failed."""


def __getattr__(name: str) -> Any:
    if name in ("OutOfMemoryError", "AcceleratorError"):
        return getattr(torch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_compiled() -> bool:
    return False


def _is_in_bad_fork() -> bool:
    return False


_queued_calls: list[tuple[Any, dict[str, Any]]] = []


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Queue a call for the moment when CUDA starts, which does not come here."""
    _queued_calls.append((callable, kwargs))


def _index_of(device: Any) -> int:
    if isinstance(device, int):
        return device
    found = torch.device(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return 0 if found.index is None else found.index


def _tensor_type(name: str) -> type:
    def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")

    members = {"__new__": __new__, "__module__": __name__, "__doc__": "A tensor type without a device."}
    return type(name, (), members)


BFloat16Tensor = _tensor_type("BFloat16Tensor")
BoolTensor = _tensor_type("BoolTensor")
ByteTensor = _tensor_type("ByteTensor")
CharTensor = _tensor_type("CharTensor")
DoubleTensor = _tensor_type("DoubleTensor")
FloatTensor = _tensor_type("FloatTensor")
HalfTensor = _tensor_type("HalfTensor")
IntTensor = _tensor_type("IntTensor")
LongTensor = _tensor_type("LongTensor")
ShortTensor = _tensor_type("ShortTensor")

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "CUDAGraph", "DeferredCudaCallError", "Event",
    "ExternalStream", "Stream", "StreamContext", "MemPool", "amp", "graph", "graph_pool_handle", "graphs", "make_graphed_callables", "sparse", "caching_allocator_alloc",
    "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "can_device_access_peer", "cudart", "current_blas_handle", "current_device", "current_stream",
    "default_generators", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_allocator_backend", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_per_process_memory_fraction", "get_rng_state",
    "get_rng_state_all", "get_stream_from_external", "get_sync_debug_mode", "has_half", "has_magma",
    "host_memory_stats", "host_memory_stats_as_nested_dict", "init", "initial_seed", "ipc_collect",
    "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized",
    "is_tf32_supported", "list_gpu_processes", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict",
    "memory_summary", "nvtx", "profiler", "random", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_host_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "stream", "streams", "synchronize",
]  # fmt: skip
