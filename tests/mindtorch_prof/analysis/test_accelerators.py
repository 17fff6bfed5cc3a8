"""Accelerators other than NVIDIA's: the same program has the same figures, whatever its calls are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from accelerator_traces import DEVICES, FORMS, accelerator_document, npu_document
from kineto_documents import load_document

from mindtorch_prof import cli
from mindtorch_prof.analysis.critical_path import critical_path
from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.idle_causes import CAUSES, SYNCHRONISATION, idle_causes
from mindtorch_prof.analysis.roofline import roofline
from mindtorch_prof.trace import RUNTIME

COMMANDS = ("show", "summary", "device", "roofline", "critical-path", "advise", "doctor", "tree", "stacks")


@pytest.mark.parametrize("form", FORMS)
def test_device_time_ops_and_waits_are_found_in_every_form(form: str) -> None:
    loaded = load_document(accelerator_document(FORMS[form]))
    trace = loaded.trace
    assert trace.settings.device == DEVICES.get(form, form)
    assert {trace.names[n] for n in trace.name[trace.kind != RUNTIME]} == {
        "aten::mm",
        "aten::copy_",
        *(f"ProfilerStep#{n}" for n in range(3)),
    }
    (device,) = device_breakdown(loaded)
    assert (device.span_us, device.computation_us, device.exposed_copy_us) == (820, 450, 36)
    assert (device.idle_us, device.without_op_ns, len(device.steps)) == (334, 0, 3)
    (idle,) = idle_causes(loaded)
    assert idle.gaps.by_cause()[CAUSES[SYNCHRONISATION]] > 0
    assert critical_path(loaded).by_kind["sync"] > 0
    product = next(row for row in roofline(loaded).rows if row.name == "aten::mm")
    assert (product.count, product.flop, product.kernel_us) == (30, 2 * 256 * 512 * 128, 450)


@pytest.mark.parametrize("form", [*FORMS, "npu"])
def test_every_command_works_on_every_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(npu_document() if form == "npu" else accelerator_document(FORMS[form])))
    for command in COMMANDS:
        assert cli.main([command, str(path)]) in (0, 1), command
    assert cli.main(["report", str(path), "-o", str(tmp_path / "report.html")]) == 0


def test_marks_in_place_of_launches_are_no_calls_and_are_said() -> None:
    loaded = load_document(npu_document())
    trace = loaded.trace
    assert trace.settings.device == "npu"
    assert not (trace.kind == RUNTIME).any()
    assert any("calls that launched kernels were not recorded" in words for words in loaded.health.lacks)
    (device,) = device_breakdown(loaded)
    assert (device.computation_us, device.without_op_share) == (450, 1.0)
    assert [step.events for step in device.steps] == [10, 10, 10]
