"""DistributedDataParallel: a module whose gradients are averaged over the processes of a group during backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from ...autograd.variable import Variable
from ...profiler.record_function import _RecordFunctionFast, record_function
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET_BYTES = 1024 * 1024
_NOT_FINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has "
    "parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs "
    "participate in calculating loss. "
)


class GradBucket:
    """The gradients of some parameters as one flat tensor: what a communication hook gets."""

    def __init__(self, index: int, parameters: list[Any], is_last: bool) -> None:
        self._index, self._parameters, self._is_last = index, parameters, is_last
        self._buffer: Any = None

    def index(self) -> int:
        """The number of the bucket, in the order of reduction."""
        return self._index

    def buffer(self) -> Any:
        """The flat tensor."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Use another flat tensor."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        """The parts of the flat tensor, one per parameter."""
        sizes = [p.numel() for p in self._parameters]
        parts = self._buffer.split(sizes)
        return [part.view(p.shape) for part, p in zip(parts, self._parameters)]

    def parameters(self) -> list[Any]:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket follows."""
        return self._is_last


class _Reducer:
    """Averages gradients, bucket by bucket, as soon as the gradients of a bucket are complete."""

    def __init__(self, owner: DistributedDataParallel, parameters: list[Any], bucket_bytes: int) -> None:
        self._owner = owner
        self.parameters = parameters
        groups = _bucketed(parameters, bucket_bytes)
        self.buckets = [GradBucket(i, g, i == len(groups) - 1) for i, g in enumerate(groups)]
        self._bucket_of = {id(p): bucket for bucket in self.buckets for p in bucket.parameters()}
        self.hook: tuple[Any, Callable] | None = None
        self._ready: set[int] = set()
        self._missing: list[int] = []
        self._next = 0
        self.is_running = False
        self.is_unfinished = False
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._gradient_is_ready)

    def prepare(self) -> None:
        """Begin an iteration whose gradients are to be averaged."""
        if self.is_unfinished:
            raise RuntimeError(_NOT_FINISHED + self._names_of_missing())
        self._ready.clear()
        self._missing = [len(bucket.parameters()) for bucket in self.buckets]
        self._next, self.is_running, self.is_unfinished = 0, True, False

    def _names_of_missing(self) -> str:
        missing = [i for i, p in enumerate(self.parameters) if id(p) not in self._ready]
        return (
            f"\nParameter indices which did not receive grad for rank {self._owner.process_group.rank()}: "
            f"{' '.join(map(str, missing))}"
        )

    def _gradient_is_ready(self, parameter: Any) -> None:
        if not self._owner.require_backward_grad_sync or not self.is_running:
            return
        if not self._ready:
            Variable._execution_engine.queue_callback(self._finish)
        if id(parameter) in self._ready:
            return  # used by a second backward pass of this iteration: its first gradient was averaged
        self._ready.add(id(parameter))
        self._missing[self._bucket_of[id(parameter)].index()] -= 1
        while self._next < len(self.buckets) and self._missing[self._next] == 0:
            self._reduce(self.buckets[self._next])
            self._next += 1

    @torch.no_grad()
    def _reduce(self, bucket: GradBucket) -> None:
        parameters = bucket.parameters()
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        flat = (
            torch.cat([grad.reshape(-1) for grad in grads])
            if len(grads) > 1
            else grads[0].reshape(-1).clone()
        )
        bucket.set_buffer(flat)
        group = self._owner.process_group
        if self.hook is not None:
            state, hook = self.hook
            result = hook(state, bucket).wait()
            flat = result[0] if isinstance(result, (list, tuple)) else result
        else:
            flat.div_(group.size())
            group.allreduce([flat], async_op=False).wait()
        bucket.set_buffer(flat)
        for parameter, part in zip(parameters, bucket.gradients()):
            self._write_back(parameter, part)

    def _write_back(self, parameter: Any, part: Any) -> None:
        with _RecordFunctionFast("torch.distributed.ddp.reducer::copy_bucket_to_grad", (parameter,)):
            if parameter.grad is not None:
                parameter.grad.copy_(part)
            elif self._owner.find_unused_parameters and self._is_used_anywhere(parameter):
                parameter.grad = part.clone()

    def _is_used_anywhere(self, parameter: Any) -> bool:
        return self._used_anywhere is None or bool(
            self._used_anywhere[self.parameters.index_of[id(parameter)]]
        )  # type: ignore[attr-defined]

    _used_anywhere: Any = None

    def _finish(self) -> None:
        """After backward: reduce buckets that some parameters of did not get a gradient."""
        if self._next < len(self.buckets) and not self._owner.find_unused_parameters:
            self.is_unfinished = True
            return
        if self._owner.find_unused_parameters:
            used = torch.tensor([int(id(p) in self._ready) for p in self.parameters], dtype=torch.int32)
            self._owner.process_group.allreduce([used], async_op=False).wait()
            self._used_anywhere = used.tolist()
            while self._next < len(self.buckets):
                self._reduce(self.buckets[self._next])
                self._next += 1
        self.is_running = False


class _IndexedList(list):
    """Parameters with the position of each."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters)
        self.index_of = {id(p): i for i, p in enumerate(self)}


def _bucketed(parameters: list[Any], bucket_bytes: int) -> list[list[Any]]:
    """Parameters in reverse order, in buckets of one dtype: the first one small, since it is complete first."""
    buckets: list[list[Any]] = []
    limit, size = min(_FIRST_BUCKET_BYTES, bucket_bytes), 0
    for parameter in reversed(parameters):
        n_bytes = parameter.numel() * parameter.element_size()
        if not buckets or buckets[-1][0].dtype != parameter.dtype or size >= limit:
            limit = min(_FIRST_BUCKET_BYTES, bucket_bytes) if not buckets else bucket_bytes
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += n_bytes
    return buckets


class DistributedDataParallel(Module):
    """Runs `module`; during backward its gradients are averaged over the processes of the group."""

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: Any = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: Any = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        distributed = torch.distributed
        if device_mesh is not None:
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group = distributed._get_default_group() if process_group is None else process_group
        if mixed_precision is not None or delay_all_reduce_named_params is not None:
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision and delay_all_reduce_named_params are not supported by this library"
            )
        if device_ids not in (None, []) and any(
            torch.device(d).type != "cpu" for d in device_ids if d is not None
        ):
            raise ValueError(
                f"DistributedDataParallel device_ids {device_ids} need an accelerator: the parameters are on the CPU, so pass None"
            )
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        if not any(p.requires_grad for _, p in named):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        for name, parameter in named:
            if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
                raise RuntimeError(
                    f"Modules with uninitialized parameters can't be used with `DistributedDataParallel`: {name}"
                )
        self.module = module
        self.device_ids, self.output_device, self.dim = None, None, dim
        self.broadcast_buffers = True if broadcast_buffers is None else bool(broadcast_buffers)
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.parameters_to_ignore = ignored
        self.logger = None
        if init_sync:
            self._broadcast([p for _, p in named] + self._buffers_to_sync())
        parameters = _IndexedList(p for _, p in named if p.requires_grad)
        self.reducer = _Reducer(self, parameters, self.bucket_bytes_cap)

    def _buffers_to_sync(self) -> list[Any]:
        return [b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]

    def _broadcast(self, tensors: list[Any]) -> None:
        """Give all processes the values of rank 0, after checking that they have the same shapes."""
        group = self.process_group
        if group.size() == 1 or not tensors:
            return
        shapes = [tuple(t.shape) for t in tensors]
        everywhere: list[Any] = [None] * group.size()
        torch.distributed.all_gather_object(everywhere, shapes, group)
        for rank, others in enumerate(everywhere):
            if others != everywhere[0]:
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(everywhere[0])} params, while rank {rank} has "
                    f"{'inconsistent ' if len(others) == len(everywhere[0]) else ''}{len(others)} params."
                )
        for tensor in tensors:
            group.broadcast([tensor.detach()], 0, async_op=False).wait()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; with gradients enabled, prepare the reduction."""
        with record_function("DistributedDataParallel.forward"):
            if torch.is_grad_enabled() and self.require_backward_grad_sync:
                self.reducer.prepare()
            if self.require_forward_param_sync and self.broadcast_buffers and self.process_group.size() > 1:
                for buffer in self._buffers_to_sync():
                    self.process_group.broadcast([buffer], 0, async_op=False).wait()
            result = self.module(*inputs, **kwargs)
            self.require_forward_param_sync = torch.is_grad_enabled() and self.require_backward_grad_sync
            return result

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager: gradients are accumulated in this process only; the next backward outside it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Context manager for uneven inputs: only for one process, where inputs cannot differ."""
        if enable and self.process_group.size() > 1:
            raise NotImplementedError(
                "DistributedDataParallel.join: uneven inputs of several processes are not supported by this library; give each the same "
                "number of batches (DistributedSampler does)"
            )
        yield

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Let a function reduce the buckets: it gets `state` and a `GradBucket`, and returns a future of the flat tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (state, hook)

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Set the mode of the module too."""
        super().train(mode)
        return self

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "backend_name": "gloo",
        }
