"""What programs ask of devices, back ends and other namespaces that a CPU build answers for."""

from __future__ import annotations

import types
from typing import Any


def cuda_answers_no(torch: Any, show: Any) -> None:
    cuda = torch.cuda
    show(cuda.is_available(), cuda.device_count(), cuda.is_initialized(), cuda.is_bf16_supported())
    show(cuda.get_arch_list(), repr(cuda.get_gencode_flags()), cuda.default_generators, cuda.has_half)
    show(
        cuda.memory_allocated(),
        cuda.max_memory_allocated(0),
        cuda.memory_reserved("cuda"),
        cuda.memory_stats(),
    )
    show(cuda.manual_seed(3), cuda.manual_seed_all(3), cuda.seed(), cuda.get_rng_state_all())
    show(cuda.empty_cache(), cuda.set_rng_state_all([]), cuda.set_device(-1))
    show.raises(cuda.manual_seed, "a")
    show.warns(cuda.memory_cached)


def cuda_refuses_to_work(torch: Any, show: Any) -> None:
    cuda = torch.cuda
    for call in (
        cuda.init, cuda.current_device, cuda.synchronize, cuda.get_device_name, cuda.get_device_properties,
        cuda.get_device_capability, cuda.current_stream, cuda.default_stream, cuda.get_rng_state, cuda.initial_seed,
        cuda.mem_get_info, cuda.Stream, cuda.Event, cuda.CUDAGraph, cuda.ipc_collect, cuda.profiler.start,
        cuda.get_sync_debug_mode, cuda.cudart,
    ):  # fmt: skip
        show.raises(call)
    show.raises(cuda.set_device, torch.device("cpu"))
    show.raises(cuda.set_device, None)
    show.raises(cuda.device(0).__enter__)
    show.raises(cuda.FloatTensor, 2)
    show.raises(cuda.nvtx.range_push, "a")
    show.raises(torch.ones(2).cuda)
    show.raises(torch.ones, 2, device="cuda")
    show.raises(torch.ones(2).to, "cuda:1")
    with cuda.stream(None), cuda.device_of(torch.ones(1)):
        show("a CPU tensor's device changes nothing")


def other_devices(torch: Any, show: Any) -> None:
    show(
        torch.xpu.is_available(),
        torch.xpu.device_count(),
        torch.xpu.memory_allocated(),
        torch.xpu.get_rng_state_all(),
    )
    show(torch.mps.is_available(), torch.mps.device_count(), torch.mps.manual_seed(1))
    show(torch.mtia.is_available(), torch.mtia.device_count(), torch.mtia.memory_allocated())
    for call in (
        torch.xpu.synchronize, torch.xpu.current_device, torch.xpu.Stream, torch.mps.synchronize, torch.mps.empty_cache,
        torch.mps.current_allocated_memory, torch.mps.Event, torch.mtia.current_device, torch.mtia.empty_cache,
    ):  # fmt: skip
        show.raises(call)


def accelerator(torch: Any, show: Any) -> None:
    accelerator = torch.accelerator
    show(accelerator.is_available(), accelerator.device_count(), accelerator.current_accelerator())
    for call in (accelerator.synchronize, accelerator.current_device_index, accelerator.memory_allocated):
        show.raises(call)
    with accelerator.device_index(None):
        show("no index changes nothing")
    show.raises(accelerator.device_index(0).__enter__)


def cpu_device(torch: Any, show: Any) -> None:
    cpu = torch.cpu
    show(cpu.is_available(), cpu.device_count(), cpu.current_device(), cpu.synchronize(), cpu.Event().query())
    stream = cpu.Stream()
    with cpu.stream(stream):
        show(cpu.current_stream() is stream)
    show(cpu.current_stream() is stream)


def backend_switches(torch: Any, show: Any) -> None:
    cudnn = torch.backends.cudnn
    show(cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, cudnn.benchmark_limit)
    show(cudnn.version(), cudnn.is_available(), cudnn.is_acceptable(torch.ones(1)))
    cudnn.benchmark, before = True, cudnn.benchmark
    with cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        show(cudnn.benchmark, cudnn.deterministic)
    show(cudnn.benchmark, cudnn.deterministic)
    cudnn.benchmark = before
    matmul = torch.backends.cuda.matmul
    show(
        matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction, torch.get_float32_matmul_precision()
    )
    matmul.allow_tf32 = True
    show(matmul.allow_tf32, torch.get_float32_matmul_precision())
    torch.set_float32_matmul_precision("highest")
    show(matmul.allow_tf32)
    show.raises(setattr, matmul, "unknown", 1)
    show.raises(lambda: matmul.unknown)
    show.raises(setattr, matmul, "fp32_precision", "wrong")
    show(torch.backends.cuda.is_built(), torch.backends.mps.is_built(), torch.backends.mps.is_available())
    show(torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled())
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        show(torch.backends.cuda.flash_sdp_enabled())
    show(torch.backends.cuda.flash_sdp_enabled())
    with torch.backends.mkldnn.flags(enabled=False):
        show(torch.backends.mkldnn.enabled)
    show(torch.backends.mkldnn.enabled, torch.backends.mha.get_fastpath_enabled())
    show.raises(torch.backends.mps.is_macos_or_newer, 13, 0)


def distributed_without_a_group(torch: Any, show: Any) -> None:
    distributed = torch.distributed
    show(distributed.is_initialized(), distributed.is_nccl_available(), distributed.is_mpi_available())
    show.raises(distributed.get_rank)
    show.raises(distributed.get_world_size)
    show.raises(distributed.barrier)
    show.raises(distributed.all_reduce, torch.ones(1))
    show.raises(distributed.destroy_process_group)


def compiler_questions(torch: Any, show: Any) -> None:
    show(torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling(), torch.compiler.is_exporting())
    show(
        torch.compiler.disable(lambda x: x + 1)(1),
        torch.compiler.disable(recursive=False)(lambda x: x + 2)(1),
    )
    show(torch.compiler.reset(), torch.compiler.cudagraph_mark_step_begin())
    show(torch.compiler.allow_in_graph(len) is len)
    show.raises(torch.compile, lambda x: x, mode="wrong")
    show.raises(torch.compile, lambda x: x, mode="default", options={"a": 1})
    model = torch.nn.Linear(2, 2)
    show(torch.compile(model, disable=True) is model)


def script_marks(torch: Any, show: Any) -> None:
    jit = torch.jit
    show(jit.is_scripting(), jit.is_tracing(), jit.annotate(int, 3), jit.Attribute(3, int))
    for mark in (jit.ignore, jit.unused, jit.export, jit.ignore()):
        show(mark(lambda x: x + 1)(1))
    show.warns(jit.ignore, drop=True)
    show(
        jit.isinstance([1, 2], list[int]),
        jit.isinstance([1, "a"], list[int]),
        jit.isinstance((1, "a"), tuple[int, str]),
    )
    show(jit.isinstance({"a": torch.ones(1)}, dict[str, torch.Tensor]), jit.isinstance(3, int))
    show.raises(jit.load, "no such file")
    show(jit.wait(jit.fork(lambda x: x + 1, torch.ones(1))))
    show(jit.onednn_fusion_enabled(), jit.script_if_tracing(len)([1]))


def futures(torch: Any, show: Any) -> None:
    future = torch.futures.Future()
    later = future.then(lambda f: f.value() + 1)
    show(future.done(), later.done())
    future.set_result(3)
    show(future.wait(), future.value(), future.done(), later.wait(), torch.futures.wait_all([future, later]))
    show.raises(future.set_result, 4)
    failed = torch.futures.Future()
    failed.set_exception(ValueError("no"))
    show.raises(failed.wait)
    show.raises(torch.futures.Future().set_exception, 3)


def hub_folder(torch: Any, show: Any) -> None:
    import os
    from unittest import mock

    with mock.patch.dict(os.environ, {"TORCH_HOME": "/somewhere"}):
        show(torch.hub.get_dir())
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/cache"}):
        os.environ.pop("TORCH_HOME", None)
        show(torch.hub.get_dir())


def overrides(torch: Any, show: Any) -> None:
    overrides = torch.overrides
    x = torch.ones(1)
    show(
        overrides.has_torch_function((x,)), overrides.has_torch_function_unary(x), overrides.is_tensor_like(x)
    )
    show(overrides.is_tensor_like(3), overrides.resolve_name(torch.add), overrides.resolve_name(len))


def sharing_strategies(torch: Any, show: Any) -> None:
    multiprocessing = torch.multiprocessing
    show(multiprocessing.get_sharing_strategy(), sorted(multiprocessing.get_all_sharing_strategies()))
    show(sorted(n for n in multiprocessing.__all__ if n != "reducer"))
    show(
        isinstance(multiprocessing.get_context("spawn").Process, type),
        isinstance(multiprocessing, types.ModuleType),
    )


def versions(torch: Any, show: Any) -> None:
    show(torch.version.cuda, torch.version.hip, torch.version.xpu, torch.version.debug)
    show(torch.onnx.is_in_onnx_export())
