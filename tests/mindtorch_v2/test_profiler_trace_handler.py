"""tensorboard_trace_handler: a new file for each cycle."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import (
    profile,
    schedule,
    tensorboard_trace_handler,
)


def slices(document: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event.get("cat") == category]


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
@pytest.mark.parametrize(("use_gzip", "suffix"), [(False, ""), (True, r"\.gz")])
def test_the_tensorboard_handler_names_a_new_file_each_cycle(
    tmp_path: Path, use_gzip: bool, suffix: str
) -> None:
    folder = tmp_path / "new" / "folder"
    with profile(
        schedule=schedule(wait=0, warmup=1, active=1, repeat=3),
        on_trace_ready=tensorboard_trace_handler(str(folder), "worker", use_gzip),
    ) as prof:
        for _ in range(6):
            torch.ones(2) + 1
            prof.step()
    names = sorted(os.listdir(folder))
    assert len(names) == 3
    assert all(re.fullmatch(rf"worker\.\d+\.pt\.trace\.json{suffix}", name) for name in names)
    read = gzip.decompress if use_gzip else bytes
    steps = [
        [e["name"] for e in slices(json.loads(read((folder / name).read_bytes())), "user_annotation")]
        for name in names
    ]
    assert steps == [["ProfilerStep#1"], ["ProfilerStep#3"], ["ProfilerStep#5"]]
