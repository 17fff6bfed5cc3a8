"""Device models: which devices a trace worked on, and the versions the file tells."""

from __future__ import annotations

from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import load
from mindtorch_prof.analysis.device_models import device_models, models_text
from mindtorch_prof.analysis.summary import summary, summary_text

GPUS = [{"id": i, "name": "AMD Instinct MI300X"} for i in range(8)]


def kernel(device: int) -> dict[str, object]:
    args = {"device": device, "stream": 7, "correlation": device + 1}
    return {**documents.event("k", 10, 5, cat="kernel", tid=7), "pid": device, "args": args}


def test_only_the_devices_that_did_something_are_named(tmp_path: Path) -> None:
    path = documents.write(
        tmp_path / "t.json", [kernel(2), kernel(5)], deviceProperties=GPUS, hip_driver_version=60443483
    )
    devices = device_models(load(path).trace)
    assert devices == {"models": ["AMD Instinct MI300X"] * 2, "driver": "HIP 6.4.43483", "runtime": None}
    assert models_text(devices) == "2 x AMD Instinct MI300X, driver HIP 6.4.43483"
    data = summary(load(path))
    assert data["recorded"]["device_models"] == ["AMD Instinct MI300X"] * 2
    assert "device: 2 x AMD Instinct MI300X, driver HIP 6.4.43483\n" in summary_text(data)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h100_qwen_infer_stack_memory", "NVIDIA H100 80GB HBM3, driver 575.51.03, runtime CUDA 12.4"),
        ("mi300_resnet_ddp_act_checkpoint", "AMD Instinct MI300X, driver HIP 6.4.43483"),
        ("v100_resnet50_train_2021.pt.trace", "Tesla V100-DGXS-32GB"),
    ],
)
def test_recorded_files_name_their_gpu(name: str, text: str, ecosystem: Path) -> None:
    assert models_text(device_models(load(ecosystem / "traces" / f"{name}.json.gz").trace)) == text
