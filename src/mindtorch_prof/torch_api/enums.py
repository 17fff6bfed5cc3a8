"""Kinds of devices and activities, with torch's names and numbers."""

from __future__ import annotations

from enum import Enum


class DeviceType(Enum):
    """Where an event happened."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class ProfilerActivity(Enum):
    """What a profiler can record."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5


class RecordScope(Enum):
    """The kind of an event: an op, a backward function, a range of the user ..."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


class ProfilerState(Enum):
    """Which profiler a session asks for; here all of them record in the same way."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class ActiveProfilerType(Enum):
    """Which profiler is recording."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
