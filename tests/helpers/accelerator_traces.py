"""Traces of accelerators for tests: the words of a kind of device in; a Kineto document of three steps out.

Each step runs ten products of 15 us, launched every 25 us, then a copy of 12 us to the host, for which a call
waits. All forms have the same device time: span 820, computation 450, copies 36, idle 334 us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HOST = 1000
PRODUCT_US, COPY_US, STEPS, PRODUCTS = 15.0, 12.0, 3, 10


@dataclass(frozen=True)
class Words:
    """What the files of one kind of device call things."""

    runtime: str  # category of runtime calls
    launch: str
    copy: str
    wait: str
    label: str  # of the device's process
    kernel: str = "kernel"  # category of kernels
    driver: str = ""  # category of further calls inside the launches
    other: str = ""  # category of further rows of the device, which are no work
    numbers_as_texts: bool = False


FORMS = {
    "xpu": Words("xpu_runtime", "urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", "urQueueFinish", "XPU 0",
                 driver="xpu_driver"),
    "xpu of older versions": Words("xpu_runtime", "piEnqueueKernelLaunch", "piextUSMEnqueueMemcpy",
                                   "piEventsWait", "XPU 0"),
    "mtia": Words("mtia_runtime", "runKernel", "runCopy", "streamSynchronize", "MTIA 0",
                  kernel="mtia_ccp_events", other="mtia_insight"),
    "hip": Words("cuda_runtime", "hipLaunchKernel", "hipMemcpyWithStream", "hipStreamSynchronize", "GPU 0",
                 numbers_as_texts=True),
    "hip_runtime": Words("hip_runtime", "hipExtModuleLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize",
                         "GPU 0"),
    "privateuse1": Words("privateuse1_runtime", "fooLaunchKernel", "fooMemcpyAsync", "fooSynchronize",
                         "PrivateUse1 0", driver="privateuse1_driver"),
}  # fmt: skip
# `Settings.device` of the forms that are not called so
DEVICES = {"xpu of older versions": "xpu", "hip": "cuda", "hip_runtime": "cuda"}


class _Program:
    def __init__(self, words: Words) -> None:
        self.words, self.events = words, []  # type: tuple[Words, list[dict[str, Any]]]
        self.now = self.free = 1_000_000.0
        self.calls = self.ops = 0

    def row(self, cat: str, name: str, start: float, length: float, tid: int = HOST, **args: Any) -> None:
        pid = HOST if tid == HOST else 0
        times = {"ts": start, "dur": length}
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}
        )

    def ids(self) -> dict[str, int]:
        return {"External id": self.ops, "correlation": self.calls}

    def op(self, name: str, length: float, *shapes: list[int]) -> None:
        self.ops += 1
        inputs = {
            "Input Dims": [*shapes],
            "Input type": ["float"] * len(shapes),
            "Input Strides": [[shape[-1], 1] for shape in shapes],
            "Concrete Inputs": [""] * len(shapes),
        }
        self.row("cpu_op", name, self.now, length, **{"External id": self.ops, **inputs})

    def call(self, name: str, after: float, length: float) -> None:
        self.calls += 1
        self.row(self.words.runtime, name, self.now + after, length, **self.ids())
        if self.words.driver:
            self.row(self.words.driver, "zeCommandListAppend", self.now + after + 1, length - 2, **self.ids())

    def work(self, cat: str, name: str, after: float, length: float, **more: int) -> None:
        start = max(self.free, self.now + after)
        place = {"device": 0, "stream": 7}
        told = {key: str(value) for key, value in place.items()} if self.words.numbers_as_texts else place
        self.row(cat, name, start, length, 7, **self.ids(), **told, **more)
        arrow = {"id": self.calls, "cat": "ac2g", "name": "ac2g"}
        self.events.append({"ph": "s", "pid": HOST, "tid": HOST, "ts": self.now, **arrow})
        self.events.append({"ph": "f", "bp": "e", "pid": 0, "tid": 7, "ts": start, **arrow})
        self.free = start + length

    def step(self, number: int) -> None:
        begin = self.now
        for _ in range(PRODUCTS):
            self.op("aten::mm", 20.0, [256, 512], [512, 128])
            self.call(self.words.launch, 5, 8.0)
            self.work(self.words.kernel, "gemm_kernel", 14, PRODUCT_US)
            self.now += 25
        self.op("aten::copy_", 30.0, [256, 128], [256, 128])
        self.call(self.words.copy, 2, 5.0)
        self.work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 10, COPY_US, bytes=131072)
        self.call(self.words.wait, 8, self.free - self.now - 6)
        self.now = max(self.now + 31, self.free + 5)
        if self.words.other:
            self.row(self.words.other, "what the device was busy with", begin, self.now - begin, 99)
        name, length = f"ProfilerStep#{number}", self.now - begin - 1
        self.row("user_annotation", name, begin, length)
        self.row("gpu_user_annotation", name, begin + 10, length - 10, 7)


def accelerator_document(words: Words) -> dict[str, Any]:
    """A Kineto document of a program on one device."""
    program = _Program(words)
    for number in range(STEPS):
        program.step(number)
    about = [
        {"ph": "M", "name": name, "pid": pid, "tid": 0, "ts": 1_000_000.0, "args": args}
        for pid, name, args in (
            (HOST, "process_name", {"name": "python"}),
            (HOST, "process_labels", {"labels": "CPU"}),
            (0, "process_name", {"name": "python"}),
            (0, "process_labels", {"labels": words.label}),
        )
    ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "record_shapes": 1,
        "traceEvents": about + program.events,
    }


def npu_document() -> dict[str, Any]:
    """The same program as torch_npu's Kineto files have it: kernels know only their stream and type, and in
    place of their launches stand rows without length that have the kernels' names and starts."""
    document = accelerator_document(Words("runtime", "launch", "copy", "wait", "Ascend NPU"))
    events = []
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event |= {"name": "MatMulV2_ND_ND_FP32_FP32_false_false_all_65537", "tid": 47}
            event["args"] = {"streamId": 47, "type": "KERNEL_AICORE"}
            mark = {"ph": "X", "cat": "privateuse1_runtime", "name": event["name"], "pid": HOST, "tid": HOST}
            events.append({**mark, "ts": event["ts"], "dur": 0.0})
        if event.get("cat") not in ("runtime", "gpu_memcpy", "gpu_user_annotation", "ac2g"):
            events.append(event)
    return {**document, "traceEvents": events}
