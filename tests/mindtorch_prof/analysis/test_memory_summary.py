"""Peak memory as text: what was allocated then, and by which ops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import make_memory, make_trace

from mindtorch_prof.analysis.memory_summary import memory_summary
from mindtorch_prof.settings import Settings

MEMORY = Settings(profile_memory=True)


def test_the_peak_names_its_op_and_what_was_alive_then() -> None:
    trace = make_trace(
        ("aten::ones", 1_000_000, 2_000_000),
        ("aten::mm", 3_000_000, 4_000_000),
        ("aten::add", 5_000_000, 6_000_000),
        memory=make_memory(
            (1_500_000, 2048, 1),
            (3_100_000, 1024, 2),
            (3_200_000, 512, 3),
            (3_300_000, -512, 3),
            (5_500_000, -2048, 1),
            (5_600_000, 256, 4),
        ),
        settings=MEMORY,
    )
    assert memory_summary(trace).splitlines() == [
        "peak memory: 3.50 KB, 3.200 ms after the start, in aten::mm",
        "still allocated at the end: 1.25 KB; total allocated: 3.75 KB",
        "allocated at the peak, by op:",
        "       2.00 KB       1 x  aten::ones",
        "       1.50 KB       2 x  aten::mm",
    ]


def test_memory_from_before_the_recording_does_not_count_when_it_is_freed() -> None:
    memory = make_memory((10, -4096, 9), (20, 100, 1))
    lines = memory_summary(make_trace(("op", 0, 50), memory=memory, settings=MEMORY)).splitlines()
    assert lines[0].startswith("peak memory: 100 B, ")
    assert lines[1] == "still allocated at the end: 100 B; total allocated: 100 B"


def test_memory_outside_of_ops_is_said_to_be_there() -> None:
    trace = make_trace(("op", 0, 50), memory=make_memory((80, 100, 1)), settings=MEMORY)
    assert memory_summary(trace).splitlines()[-1].endswith("1 x  (outside of ops)")


def test_a_recording_without_memory_is_refused_and_one_without_allocations_says_so() -> None:
    with pytest.raises(ValueError, match="profile_memory=True"):
        memory_summary(make_trace(("op", 0, 50)))
    assert memory_summary(make_trace(("op", 0, 50), settings=MEMORY)) == "no memory was allocated"


def test_memory_of_a_device_is_told_before_the_smaller_one_of_the_cpu() -> None:
    on_cpu = make_memory((1_500_000, 8, 1), (3_100_000, 4096, 2), (3_200_000, -4096, 2))
    memory = replace(on_cpu, device=np.array([-1, 0, 0]), total=np.array([8, 1 << 20, (1 << 20) - 4096]))
    settings = replace(MEMORY, device="cuda")
    ops = (("aten::ones", 1_000_000, 2_000_000), ("aten::mm", 3_000_000, 4_000_000))
    assert memory_summary(make_trace(*ops, memory=memory, settings=settings)).splitlines() == [
        "GPU 0: peak memory: 1.00 MB, 3.100 ms after the start, in aten::mm",
        "still allocated at the end: 1020.00 KB; total allocated: 4.00 KB",
        "allocated at the peak, by op:",
        "       4.00 KB       1 x  aten::mm",
        "    1020.00 KB  allocated before the recording",
        "CPU: peak memory: 8 B, 1.500 ms after the start, in aten::ones",
        "still allocated at the end: 8 B; total allocated: 8 B",
        "allocated at the peak, by op:",
        "           8 B       1 x  aten::ones",
    ]
