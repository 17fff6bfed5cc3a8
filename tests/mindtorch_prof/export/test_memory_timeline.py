"""Memory timelines: bytes alive over time, by what they are for."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from html_report import blocks

import mindtorch_v2 as torch
from mindtorch_prof.export import memory_timeline
from mindtorch_prof.torch_api.memory_categories import CATEGORY_INDEX, Action
from mindtorch_v2.profiler import (
    profile,
)


def trained() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        batch = torch.randn(3, 4)
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return prof, model


def test_a_raw_memory_timeline_says_what_memory_is_for(tmp_path: Path) -> None:
    prof, _model = trained()
    prof.export_memory_timeline(str(tmp_path / "m.raw.json.gz"))
    entries = json.loads(gzip.decompress((tmp_path / "m.raw.json.gz").read_bytes()))
    names = ["UNKNOWN" if kind is None else kind.name for kind in CATEGORY_INDEX]
    sizes: dict[str, list[int]] = {}
    for _, action, nbytes, category in entries:
        if action in (Action.PREEXISTING.value, Action.CREATE.value):
            sizes.setdefault(names[category], []).append(nbytes)
    assert sorted(sizes["PARAMETER"]) == [8, 32, 64, 128]
    assert sorted(sizes["GRADIENT"]) == [8, 32, 64, 128]
    assert sorted(sizes["OPTIMIZER_STATE"]) == [8, 32, 64, 128]
    assert sizes["INPUT"] == [48]
    assert sizes["ACTIVATION"] == [96, 96, 24, 4, 4]
    assert sizes["AUTOGRAD_DETAIL"] == [96, 96]
    assert "UNKNOWN" not in sizes
    assert [entry[0] for entry in entries if entry[1] == Action.PREEXISTING.value] == [-1] * 4


def test_a_memory_timeline_is_the_running_sum_of_the_raw_one(tmp_path: Path) -> None:
    prof, _model = trained()
    prof.export_memory_timeline(str(tmp_path / "m.json"), device="cpu")
    times, sizes = json.loads((tmp_path / "m.json").read_bytes())
    assert times == sorted(times)
    assert len(times) == len(sizes)
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in sizes)
    assert sizes[0] == [0, 232, 0, 0, 0, 0, 0, 0, 0]
    assert sizes[-1][1:3] == [232, 232]


def test_a_memory_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    prof, _model = trained()
    prof.export_memory_timeline(str(tmp_path / "m.html"))
    prof.export_memory_timeline(str(tmp_path / "m.json"))
    times, sizes = json.loads((tmp_path / "m.json").read_bytes())
    values, columns = blocks(tmp_path / "m.html")["memory-0"]
    assert values["categories"][0] == "Parameter"
    assert columns["0.time_ns"].tolist() == [(at - times[0]) * 1000 for at in times]
    assert columns["0.category.0"].tolist() == [row[1] for row in sizes]
    assert "default-src 'none'" in (tmp_path / "m.html").read_text()


def test_a_memory_timeline_needs_shapes_memory_and_stacks(tmp_path: Path) -> None:
    with profile(record_shapes=True, profile_memory=True) as prof:
        torch.ones(2)
    with pytest.raises(
        ValueError,
        match=memory_timeline.REQUIRED.replace(".", r"\."),
    ):
        prof.export_memory_timeline(str(tmp_path / "m.json"))
    assert os.listdir(tmp_path) == []
