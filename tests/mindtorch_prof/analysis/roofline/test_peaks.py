"""Peaks: devices by the names and properties that traces have, and what a user may give instead."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mindtorch_prof.analysis.roofline.peaks import TYPES, known_devices, peaks_from, peaks_of, read_peaks
from mindtorch_prof.analysis.roofline.work import LINK, MATRIX, VECTOR

GB = 10**9


@pytest.mark.parametrize(
    ("name", "memory", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", 85, "NVIDIA H100 SXM"),
        ("NVIDIA H100 PCIe", 85, "NVIDIA H100 PCIe"),
        ("NVIDIA H200", 150, "NVIDIA H200 SXM"),
        ("NVIDIA A100-SXM4-80GB", 85, "NVIDIA A100 SXM 80GB"),
        ("NVIDIA A100 80GB PCIe", 85, "NVIDIA A100 PCIe 80GB"),
        ("NVIDIA A100-SXM4-40GB", 42, "NVIDIA A100 40GB"),
        ("NVIDIA A100-PG509-200", 42, "NVIDIA A100 40GB"),
        ("Tesla V100-SXM2-32GB", 34, "NVIDIA V100 SXM2"),
        ("Tesla V100-PCIE-16GB", 17, "NVIDIA V100 PCIe"),
        ("Tesla T4", 16, "NVIDIA T4"),
        ("NVIDIA L4", 24, "NVIDIA L4"),
        ("NVIDIA L40S", 48, "NVIDIA L40S"),
        ("NVIDIA A10", 24, "NVIDIA A10"),
        ("NVIDIA B200", 190, "NVIDIA B200"),
        ("NVIDIA GeForce RTX 4090", 25, "NVIDIA GeForce RTX 4090"),
        ("AMD Instinct MI300X", 206, "AMD Instinct MI300X"),
        ("AMD Instinct MI250X", 68, "AMD Instinct MI250X, one of two dies"),
        ("AMD Instinct MI355X", 309, "AMD Instinct MI355X"),
        ("Ascend910B3", 64, "Ascend 910B3"),
        ("Ascend310P3", 24, "Ascend 310P"),
    ],
)
def test_devices_are_found_by_the_names_that_traces_have(name: str, memory: int, expected: str) -> None:
    peaks = peaks_of({"name": name, "totalGlobalMem": memory * GB})
    assert peaks is not None
    assert peaks.name == expected


def test_a_device_without_a_name_is_found_by_its_units_and_memory() -> None:
    properties = {
        "name": "",
        "computeMajor": 9,
        "computeMinor": 4,
        "numSms": 304,
        "totalGlobalMem": 206141652992,
    }
    peaks = peaks_of(properties)
    assert peaks is not None
    assert peaks.name == "AMD Instinct MI300X"
    assert peaks_of({**properties, "numSms": 80}) is None


@pytest.mark.parametrize("name", ["NVIDIA A1000", "NVIDIA GeForce RTX 4090 D", "Radeon RX 7900 XTX", ""])
def test_other_devices_are_not_taken_for_a_known_one(name: str) -> None:
    assert peaks_of({"name": name}) is None


def test_every_device_has_a_source_a_bandwidth_and_known_types() -> None:
    for peaks in known_devices():
        assert peaks.source
        assert peaks.memory_tbps > 0
        assert peaks.tflops
        assert set(peaks.tflops) <= set(TYPES)
        assert all(rate > 0 for rate in peaks.tflops.values())


def test_matrix_and_vector_units_have_peaks_of_their_own() -> None:
    h100 = read_peaks("H100 SXM")
    assert h100.compute(MATRIX, "bfloat16") == 989.5
    assert h100.compute(MATRIX, "float32") == 67
    assert h100.compute(MATRIX, "float32", tf32=True) == 494.5
    assert h100.compute(VECTOR, "bfloat16") == 67
    assert h100.compute(LINK, "float32") is None
    assert read_peaks("A100 40GB").compute(MATRIX, "float8_e4m3fn") is None


def test_peaks_may_be_given_as_pairs_and_as_files(tmp_path: Path) -> None:
    given = read_peaks("memory_tbps=2,bf16=100")
    assert (given.memory_tbps, given.tflops) == (2.0, {"bf16": 100.0})
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "memory_tbps": 2, "tflops": {"bf16": 100}}))
    assert (read_peaks(str(path)).name, read_peaks(str(path)).tflops) == ("mine", {"bf16": 100.0})


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no TOML reader")
def test_peaks_may_be_given_as_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nmemory_tbps = 2.0\nbf16 = 100\n')
    assert read_peaks(str(path)).tflops == {"bf16": 100.0}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bf16=100", "memory_tbps"),
        ("memory_tbps=2,bf17=3", "'bf17' is none of"),
        ("memory_tbps=fast", "not of the form"),
        ("memory_tbps=-1", "above 0"),
        ("H999", "neither a file nor a known device"),
        ("absent.json", "No such file"),
    ],
)
def test_what_is_wrong_with_given_peaks_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_peaks(text)


def test_a_bandwidth_of_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="number above 0"):
        peaks_from({"memory_tbps": True})
