"""The simple communication hooks: averaging, also in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ... import distributed_c10d as c10d

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def allreduce_hook(process_group: Any, bucket: Any) -> Any:
    """Average a bucket over the processes."""
    return _averaged(process_group, bucket.buffer().div_(_group(process_group).size()))


def _group(process_group: Any) -> Any:
    return process_group if process_group is not None else c10d._get_default_group()


def _averaged(process_group: Any, tensor: Any) -> Any:
    future = _group(process_group).allreduce([tensor], async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


def _compressed(process_group: Any, bucket: Any, dtype: Any) -> Any:
    buffer = bucket.buffer()
    small = buffer.to(dtype).div_(_group(process_group).size())
    return _averaged(process_group, small).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average a bucket in float16."""
    return _compressed(process_group, bucket, torch.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average a bucket in bfloat16."""
    return _compressed(process_group, bucket, torch.bfloat16)


def _wrapper(hook: Callable[[Any, Any], Any], dtype: Any) -> Callable[[Any, Any], Any]:
    def wrapped(hook_state: Any, bucket: Any) -> Any:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(hook_state, bucket).then(lambda done: buffer.copy_(done.value()))

    return wrapped


def fp16_compress_wrapper(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a hook work on float16."""
    return _wrapper(hook, torch.float16)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a hook work on bfloat16."""
    return _wrapper(hook, torch.bfloat16)
