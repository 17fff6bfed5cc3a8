"""What spilling adds to a recording: processor time of the recording thread, with and without, by turns.

python benchmarks/spill.py [turns]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True},
}
SECONDS = 0.3  # of one turn, about


def ops(count: int) -> None:
    x = torch.ones(16, 16)
    for _ in range(count):
        torch.relu(x @ x + 1)


def seconds_of(count: int, **options: Any) -> float:
    with profile(**options):
        before = time.thread_time()
        ops(count)
        return time.thread_time() - before


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    for name, options in SETTINGS.items():
        count = max(int(SECONDS / (seconds_of(2000, **options) / 2000)), 1)
        ratios = []
        for _ in range(turns):
            plain = seconds_of(count, **options)
            with tempfile.TemporaryDirectory() as folder:
                ratios.append(seconds_of(count, **options, spill_dir=folder) / plain)
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{name:8} {statistics.median(ratios):.3f} x ({spread}), {3 * count:,} ops")


if __name__ == "__main__":
    main()
