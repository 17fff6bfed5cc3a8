"""Collectives that gradients flow through: the backward of each is the collective that is its transpose."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function

from .. import distributed_c10d as c10d
from .._reduce_op import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """The tensor of one process."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> Any:
    """The tensors of all processes on one; empty tensors on the others."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """One of the tensors of one process."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The reduction on one process."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The reduction of the tensors for this rank."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Any, group: Any = None) -> Any:
    """The tensors of all processes."""
    return _AllGather.apply(group, tensor)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> Any:
    """One tensor of each process."""
    return _AllToAll.apply(group, list(output_tensor_list), *input_tensor_list)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Any:
    """Parts of one tensor of each process."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The reduction."""
    return _AllReduce.apply(op, group, tensor)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        result = tensor.clone()
        c10d.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        total = grad.contiguous().clone()
        c10d.reduce(total, ctx.src, group=ctx.group)
        return None, None, total if c10d.get_rank() == ctx.src else torch.zeros_like(total)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        parts = [torch.zeros_like(tensor) for _ in range(c10d.get_world_size(group))]
        c10d.gather(tensor.contiguous(), parts if c10d.get_rank() == dst else None, dst, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        result = torch.zeros_like(grads[0])
        parts = [g.contiguous() for g in grads] if c10d.get_rank() == ctx.dst else None
        c10d.scatter(result, parts, ctx.dst, ctx.group)
        return None, None, result


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group, ctx.n = src, group, len(tensors)
        result = torch.zeros_like(tensors[0])
        parts = [t.contiguous() for t in tensors] if c10d.get_rank() == src else None
        c10d.scatter(result, parts, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        parts = [torch.zeros_like(grad) for _ in range(ctx.n)]
        c10d.gather(grad.contiguous(), parts if c10d.get_rank() == ctx.src else None, ctx.src, ctx.group)
        return (None, None, *parts)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        c10d.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        result = grad.contiguous().clone()
        c10d.broadcast(result, ctx.dst, ctx.group)
        return None, None, None, result


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Any, *tensors: Any) -> Any:
        ctx.group = group
        result = torch.zeros_like(output)
        c10d.reduce_scatter(result, [t.contiguous() for t in tensors], op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        parts = [torch.zeros_like(grad) for _ in range(c10d.get_world_size(ctx.group))]
        c10d.all_gather(parts, grad.contiguous(), ctx.group)
        return (None, None, None, *parts)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        parts = [torch.empty_like(tensor) for _ in range(c10d.get_world_size(group))]
        c10d.all_gather(parts, tensor.contiguous(), group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        result = torch.zeros_like(grads[0])
        c10d.reduce_scatter(result, [g.contiguous() for g in grads], group=ctx.group)
        return None, result


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Any, *tensors: Any) -> Any:
        ctx.group = group
        ctx.shapes = [tuple(t.shape) for t in tensors]
        results = [torch.zeros_like(o) for o in outputs]
        c10d.all_to_all(results, [t.contiguous() for t in tensors], group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        results = [torch.zeros(shape, dtype=grads[0].dtype) for shape in ctx.shapes]
        c10d.all_to_all(results, [g.contiguous() for g in grads], ctx.group)
        return (None, None, *results)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, output_splits: Any, input_splits: Any, tensor: Any) -> Any:
        ctx.group, ctx.shape, ctx.splits = group, tuple(tensor.shape), (output_splits, input_splits)
        result = torch.zeros_like(output)
        c10d.all_to_all_single(result, tensor.contiguous(), output_splits, input_splits, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        result = torch.zeros(ctx.shape, dtype=grad.dtype)
        output_splits, input_splits = ctx.splits
        c10d.all_to_all_single(result, grad.contiguous(), input_splits, output_splits, ctx.group)
        return None, None, None, None, result


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        result = tensor.clone()
        c10d.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        result = grad.contiguous().clone()
        c10d.all_reduce(result, ctx.op, ctx.group)
        return None, None, result
