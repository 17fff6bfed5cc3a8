"""The report's memory curve: the recorded one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_report import blocks
from trace_builder import make_memory, make_trace

from mindtorch_prof import load
from mindtorch_prof.export.html.memory import memory_block
from mindtorch_prof.torch_api.results import Results


def test_the_memory_curve_is_the_recorded_one(recorded_training: Results, report_page: Path) -> None:
    values, columns = blocks(report_page)["memory-0"]
    (about,) = values["devices"]
    curve = np.sum([columns[name] for name in columns if ".category." in name], axis=0)
    module_bytes = sum(nbytes for _, nbytes, _ in recorded_training.trace.memory.of_modules)
    assert about["peak"] == recorded_training.trace.memory.total.max()
    assert about["before"] == module_bytes
    assert sum(about["at_peak"]) == curve.max() == about["peak"] + module_bytes
    assert about["allocations"] == int((recorded_training.trace.memory.nbytes > 0).sum())
    assert sum(row[2] for row in about["biggest"]) == about["taken"]


@pytest.fixture(scope="module")
def without_addresses(ecosystem: Path) -> tuple[Results, dict[str, dict[str, Any]], dict[str, Any]]:
    results = load(ecosystem / "traces" / "v100_resnet50_train_2021.pt.trace.json.gz").results
    block, _ = memory_block(results)
    assert block is not None
    values: Any = block.values
    columns = {name: column for name, (column, _) in block.columns.items()}
    return results, {device["label"]: device for device in values["devices"]}, columns


def test_memory_of_a_file_without_addresses_is_its_running_totals(without_addresses: Any) -> None:
    _, devices, _ = without_addresses
    assert devices["GPU 0"]["peak"] == 2_791_636_480  # 2.60 GiB
    assert devices["GPU 0"]["still_allocated"] == 0
    assert devices["CPU"]["peak"] == 57_803_264  # 55 MB
    assert [device["by_category"] for device in devices.values()] == [False, False]
    assert all(device["alive"] == [] for device in devices.values())


def test_no_more_is_alive_than_the_file_says_and_no_category_is_negative(without_addresses: Any) -> None:
    results, devices, columns = without_addresses
    memory = results.trace.memory
    for number, label in enumerate(devices):
        layers = [values for name, values in columns.items() if name.startswith(f"{number}.category.")]
        assert min(layer.min() for layer in layers) >= 0
        of_device = memory.total[memory.device == (-1 if label == "CPU" else 0)]
        assert np.sum(layers, axis=0).max() == of_device.max() == devices[label]["peak"]


def test_a_free_of_another_size_than_its_allocation_leaves_no_negative_category() -> None:
    memory = make_memory((10, 100, 7), (20, -160, 7), (30, 50, 8))
    memory = replace(memory, total=np.array([160, 0, 50]))
    block, _ = memory_block(Results(make_trace(("aten::add", 0, 50), memory=memory)))
    assert block is not None
    layers = [values for name, (values, _) in block.columns.items() if ".category." in name]
    assert min(layer.min() for layer in layers) >= 0


def test_a_trace_of_allocations_alone_has_a_memory_view() -> None:
    block, _ = memory_block(Results(make_trace(memory=make_memory((0, 64, 1), (5, -64, 1)))))
    assert block is not None
