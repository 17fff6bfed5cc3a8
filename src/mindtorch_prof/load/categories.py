"""Categories of events: their texts in, what they mean out."""

from __future__ import annotations

from ..trace import (
    ANNOTATION,
    DEVICE_ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_PART,
    DEVICE_SET,
    DEVICE_SYNC,
    OP,
    PYTHON,
    RUNTIME,
)

MOST_KEYS = 4096  # categories, and tuples of keys of arguments, that are remembered: a file may have others in each event
# what a category means: (host or device, kind)
HOST, DEVICE, SPAN = "host", "device", "span"
_CATEGORIES: dict[str, tuple[str, int]] = {
    "cpu_op": (HOST, OP),
    "operator": (HOST, OP),
    "user_annotation": (HOST, ANNOTATION),
    "python_function": (HOST, PYTHON),
    "trace": (SPAN, 0),
    "kernel": (DEVICE, DEVICE_KERNEL),
    "concurrent_kernel": (DEVICE, DEVICE_KERNEL),
    "mtia_ccp_events": (DEVICE, DEVICE_KERNEL),
    "mtia_kernel": (DEVICE, DEVICE_KERNEL),
    "mtia_insight": (DEVICE, DEVICE_ANNOTATION),
    "hpu_op": (DEVICE, DEVICE_KERNEL),
    "gpu_memcpy": (DEVICE, DEVICE_COPY),
    "memcpy": (DEVICE, DEVICE_COPY),
    "gpu_memset": (DEVICE, DEVICE_SET),
    "memset": (DEVICE, DEVICE_SET),
    "gpu_user_annotation": (DEVICE, DEVICE_ANNOTATION),
    "cuda_profiler_range": (DEVICE, DEVICE_ANNOTATION),
    "cuda_sync": (DEVICE, DEVICE_SYNC),
    "cuda_event": (DEVICE, DEVICE_SYNC),
    "collective_task": (DEVICE, DEVICE_PART),
    "overhead": (HOST, RUNTIME),
    "runtime": (HOST, RUNTIME),
    "async_task_queue": (HOST, RUNTIME),
    "enqueue": (HOST, RUNTIME),
    "dequeue": (HOST, RUNTIME),
}


def category(cat: object) -> tuple[str, int] | None:
    """What a category means; None: it is not known."""
    text = cat.lower() if isinstance(cat, str) else ""
    meaning = _CATEGORIES.get(text)
    if meaning is None and text.endswith(("_runtime", "_driver")):
        return HOST, RUNTIME
    return meaning
