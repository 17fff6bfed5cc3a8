"""Groups of events by name, shape, stack, module, step, thread and category, with sums that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest

from mindtorch_prof.analysis.groups import GroupError, groups
from mindtorch_prof.load import load


def by(sheet: Any, key: str, value: str) -> dict[Any, Any]:
    return dict(zip(sheet[key].tolist(), sheet[value].tolist()))


def test_rows_by_name_are_those_of_key_averages(three_steps: Any) -> None:
    sheet = groups(three_steps)
    averages = {row.key: row for row in three_steps.key_averages() if row.device_type.name == "CPU"}
    own = by(sheet, "name", "self_cpu_time_total")
    for name, row in averages.items():
        assert own[name] == pytest.approx(row.self_cpu_time_total), name
        assert by(sheet, "name", "cpu_time_total")[name] == pytest.approx(row.cpu_time_total)
        assert by(sheet, "name", "count")[name] == row.count
        assert by(sheet, "name", "self_device_time_total")[name] == pytest.approx(row.self_device_time_total)
    assert own["aten::linear"] == pytest.approx(3 * 10)
    assert by(sheet, "name", "self_device_time_total")["ampere_sgemm"] == pytest.approx(60)


def test_groups_without_names_count_nothing_twice(three_steps: Any) -> None:
    steps = groups(three_steps, "step")
    assert by(steps, "step", "cpu_time_total") == pytest.approx({1: 100, 2: 100, 3: 100, None: 3})
    assert by(steps, "step", "self_cpu_time_total") == pytest.approx({1: 100, 2: 100, 3: 100, None: 3})
    assert by(steps, "step", "self_device_time_total") == pytest.approx({1: 30, 2: 30, 3: 30, None: 0})
    categories = groups(three_steps, "category")
    # addmm is inside linear
    assert by(categories, "category", "cpu_time_total")["matmul"] == pytest.approx(150)
    assert by(categories, "category", "self_device_time_total")["matmul"] == pytest.approx(60)
    assert sum(categories["self_device_share"].tolist()) == pytest.approx(1)
    assert sum(categories["self_cpu_share"].tolist()) == pytest.approx(1)


def test_groups_by_module_thread_shape_and_stack(three_steps: Any) -> None:
    modules = groups(three_steps, "module")
    assert by(modules, "module", "self_cpu_time_total")["Linear_0"] == pytest.approx(150)
    assert by(modules, "module", "self_device_time_total")["Linear_0"] == pytest.approx(60)
    threads = groups(three_steps, ("thread",))
    assert sorted(threads["cpu_time_total"].tolist()) == pytest.approx([0, 3, 300])  # a stream, two threads
    shapes = groups(three_steps, ["name", "shape"])
    assert [[4, 4]] in shapes["input_shapes"].tolist()
    assert groups(three_steps, "name,stack:2").n_rows == groups(three_steps).n_rows


@pytest.mark.parametrize("key", ["", "colour", "step:2", "stack:0", "stack:x"])
def test_keys_that_nothing_can_be_grouped_by_are_refused(three_steps: Any, key: str) -> None:
    with pytest.raises(GroupError, match=r"cannot group|no key to group"):
        groups(three_steps, [key] if key else [])


def test_spreads_are_those_of_the_single_events(tmp_path: Path) -> None:
    lengths = [10, 20, 30, 40, 100]
    events = [documents.event("aten::add", 200.0 * i, length) for i, length in enumerate(lengths)]
    row = groups(load(documents.write(tmp_path / "t.json", events)), stats=True).rows()[0]
    assert [row[key] for key in ("min", "p50", "max", "first")] == pytest.approx([10, 30, 100, 10])
    assert row["p95"] == pytest.approx(88)
    assert row["std"] == pytest.approx(31.622776601)


def test_work_of_the_backward_pass_belongs_to_the_module_of_its_forward_op(tmp_path: Path) -> None:
    events = [
        documents.event(
            "nn.Module: Linear_0", 0, 50, "python_function", **{"Python id": 1, "Python module id": 0}
        ),
        documents.event("aten::addmm", 10, 20, **{"Sequence number": 5, "Fwd thread id": 0}),
        documents.event("AddmmBackward0", 100, 40, **{"Sequence number": 5, "Fwd thread id": 1}),
        documents.event("aten::mm", 110, 20),
    ]
    sheet = groups(load(documents.write(tmp_path / "t.json", events)), "module")
    assert by(sheet, "module", "self_cpu_time_total")["Linear_0"] == pytest.approx(60)
