"""Tables as data: lists of events with fixed numbers and the options of `table()`. The same code builds them in torch and here."""

from __future__ import annotations

import random
from typing import Any

SORT_KEYS = [
    "self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "key", "name",
    "device_time_total", "self_device_time_total", "device_time", "cpu_memory_usage", "self_cpu_memory_usage",
    "device_memory_usage", "self_device_memory_usage", "flops",
    "cuda_time_total", "self_cuda_time_total", "cuda_time", "cuda_memory_usage", "self_cuda_memory_usage",
    "xpu_time_total", "self_xpu_time_total", "self_privateuse1_time_total", "privateuse1_memory_usage",
]  # fmt: skip
BAD_KEYS = ["nope", "", "hpu_time_total", "self_cpu_time"]
NAMES = ["aten::add", "aten::addmm", "aten::_convolution", "ProfilerStep*", "x", "autograd::engine::evaluate_function: AddmmBackward0",
         "a_rather_long_annotation_that_goes_on_for_more_than_fifty_five_characters", "n" * 51, "n" * 52, "n" * 53, "ümläut → 漢字"]  # fmt: skip
FRAMES = [
    "train.py(12): step",
    "model/layers/attention.py(203): forward",
    "/a/very/long/path/" + "deep/" * 14 + "file.py(7): f",
    "a",
    "abcd",
]
DEVICES = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "privateuseone": "PrivateUse1"}


def make_cases() -> list[dict[str, Any]]:
    """All cases, always the same."""
    return [case(random.Random(seed), seed) for seed in range(700)]


def case(choose: random.Random, seed: int) -> dict[str, Any]:
    """One list of events and one set of options."""
    shapes, stacks, flops, memory, overloads, nodes = (choose.random() < 0.35 for _ in range(6))
    device = choose.choice(list(DEVICES)) if choose.random() < 0.35 else None
    zero = choose.random() < 0.06
    events: list[dict[str, Any]] = []
    for number in range(choose.choice([0, 1, 2, 3, 5, 8, 12])):
        start = choose.choice([0, 10, 1000.5, 12345.678])
        length = (
            0
            if zero
            else choose.choice([0.25, 1, 3.125, 17.3, 999.9996, 1000, 4321.5, 999999.9999, 1e6, 7.7e7])
        )
        event: dict[str, Any] = {"id": number, "name": choose.choice(NAMES), "thread": choose.choice([1, 2]), "start_us": start, "end_us": start + length,
                                 "input_shapes": [], "stack": [], "flops": 0, "use_device": device, "overload_name": ""}  # fmt: skip
        if shapes and choose.random() < 0.8:
            event["input_shapes"] = [
                [choose.choice([1, 64, 1024]) for _ in range(choose.randrange(4))]
                for _ in range(choose.choice([1, 2, 3, 9]))
            ]
        if stacks and choose.random() < 0.8:
            event["stack"] = [choose.choice(FRAMES) for _ in range(choose.choice([1, 2, 7]))]
        if flops and not stacks and choose.random() < 0.8:
            event["flops"] = choose.choice(
                [0, 1, 999, 1000, 123456, 10**6, 10**9, 5 * 10**11, 10**15, 10**19]
            )
        if memory:
            event["cpu_memory_usage"] = choose.choice([0, 4, -4, 1023, 1024, -4096, 1 << 20, 3 << 30])
            event["device_memory_usage"] = choose.choice([0, 0, 512, -512, 1 << 31]) if device else 0
        if overloads and choose.random() < 0.7:
            event["overload_name"] = choose.choice(["Tensor", "out", "dim_IntList", "o" * 60])
        if nodes:
            event["node_id"] = choose.choice([-1, 0, 3])
        if choose.random() < 0.05:
            event["is_async"] = True
        if device and choose.random() < 0.3:
            event["device_type"] = DEVICES[device]
        elif device:
            event["kernels"] = [
                ["kernel", 0, choose.choice([0.5, 12.25, 3000.0])] for _ in range(choose.choice([0, 1, 2]))
            ]
        if "device_type" not in event and events and choose.random() < 0.2:
            parents = [e["id"] for e in events if "device_type" not in e and e["thread"] == event["thread"]]
            if parents:
                event["parent"] = choose.choice(parents)
        events.append(event)
    if device:  # torch refuses a list with time on a device and no kernel
        events.append({"id": 99, "name": "a kernel", "thread": 7, "start_us": 1, "end_us": 9.5, "use_device": device, "device_type": DEVICES[device],
                       "input_shapes": [], "stack": [], "flops": 0, "overload_name": ""})  # fmt: skip
    # and one without time of its own whose events have some
    events.append({"id": 100, "name": "last", "thread": 3, "start_us": 5, "end_us": 5 if zero else 6, "input_shapes": [], "stack": [], "flops": 0, "use_device": device, "overload_name": ""})  # fmt: skip
    if seed % 50 == 0:
        events = []
    options: dict[str, Any] = {}
    if choose.random() < 0.6:
        options["sort_by"] = choose.choice(SORT_KEYS if choose.random() < 0.9 else BAD_KEYS)
    if choose.random() < 0.3:
        options["row_limit"] = choose.choice([0, 1, 2, 5, -1, -3, 100])
    for name in ("max_src_column_width", "max_name_column_width", "max_shapes_column_width"):
        if choose.random() < 0.3:
            options[name] = choose.choice([None, 2, 3, 4, 10, 20, 200])
    if choose.random() < 0.2:
        options["header"] = choose.choice(["HEAD", "", "two\nlines"])
    if choose.random() < 0.15:
        options["top_level_events_only"] = True
    if choose.random() < 0.25:
        options["time_unit"] = choose.choice(["s", "ms", "us", "ns"])
    averages = choose.random() < 0.5
    grouping = {
        k: True
        for k in ("group_by_input_shapes", "group_by_overload_name")
        if averages and choose.random() < 0.3
    }
    if averages and choose.random() < 0.3:
        grouping["group_by_stack_n"] = choose.choice([1, 3])
    return {
        "events": events,
        "list": {"use_device": device, "profile_memory": memory, "with_flops": flops},
        "averages": averages,
        "grouping": grouping,
        "options": options,
    }


def text(util: Any, device_type: Any, spec: dict[str, Any]) -> str:
    """The table of a case, made with torch's `profiler_util` or ours; an error as its type."""
    made: dict[int, Any] = {}
    for given in spec["events"]:
        fields = dict(given)
        kernels, parent, kind = (
            fields.pop("kernels", ()),
            fields.pop("parent", None),
            fields.pop("device_type", "CPU"),
        )
        event = util.FunctionEvent(**fields, device_type=getattr(device_type, kind))
        for kernel in kernels:
            event.append_kernel(*kernel)
        if parent is not None:
            made[parent].append_cpu_child(event)
            event.set_cpu_parent(made[parent])
        made[event.id] = event
    events = util.EventList(made.values(), **spec["list"])
    events._tree_built = True
    try:
        shown = events.key_averages(**spec["grouping"]) if spec["averages"] else events
        return shown.table(**spec["options"])
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
