"""Kernel repeats: device work grouped by name, per step or per run."""

from __future__ import annotations

from pathlib import Path

import kineto_documents as documents
import numpy as np
import pytest

from mindtorch_prof import load
from mindtorch_prof.analysis.diff import diff
from mindtorch_prof.analysis.kernel_repeats import measure_kernels


def training(folder: Path, name: str, gemm_us: float, steps: int = 6, more: int = 0) -> Path:
    """Steps that launch a gemm and a copy each; `more` of them launch a second gemm."""
    events = []
    for number in range(steps):
        at, first = 1000.0 * number, 10 * number + 1
        events += [
            documents.event(f"ProfilerStep#{number}", at, 900, cat="user_annotation"),
            documents.event("aten::mm", at + 10, 50, **{"External id": first}),
        ]
        for extra in range(2 + (number < more)):
            ids = {"External id": first, "correlation": first + extra}
            events.append(documents.event("cudaLaunchKernel", at + 12 + 6 * extra, 5, "cuda_runtime", **ids))
            kernel = "Memcpy DtoD" if extra == 1 else "gemm"
            length = 7.0 if extra == 1 else gemm_us + number % 3
            events.append(
                documents.kernel(
                    kernel,
                    at + 100 + 300 * extra,
                    length,
                    cat="gpu_memcpy" if extra == 1 else "kernel",
                    **ids,
                )
            )
    return documents.write(folder / name, events)


def test_kernels_are_summed_per_step(tmp_path: Path) -> None:
    measured = measure_kernels(load(training(tmp_path, "a.json", 100.0)))
    assert sorted(measured.keys) == [("Memcpy DtoD",), ("gemm",)]
    gemm = measured.place[("gemm",)]
    assert measured.totals["count"][gemm] == 6
    np.testing.assert_array_equal(measured.samples("self_device")[gemm], [100, 101, 102, 100, 101, 102])
    assert measured.totals["self_device"].sum() == measured.columns["device"].sum()
    assert not measured.columns["self_cpu"].any()


def test_without_steps_each_run_of_a_kernel_is_a_repeat(tmp_path: Path) -> None:
    measured = measure_kernels(load(training(tmp_path, "a.json", 100.0)), use_steps=False)
    assert measured.repeats == "calls"
    assert len(measured.samples("self_device")[measured.place[("gemm",)]]) == 6


def test_a_slower_kernel_is_found(tmp_path: Path) -> None:
    before, after = (load(training(tmp_path, f"{us}.json", us)) for us in (100.0, 150.0))
    comparison = diff(before, after, ("kernel",))
    assert [(row.key, row.status, row.by) for row in comparison.findings] == [
        (("gemm",), "slower", "self_device")
    ]
    assert comparison.total["self_device"].delta == pytest.approx(50)
    assert comparison.floor < 0.1


def test_an_additional_kernel_is_found(tmp_path: Path) -> None:
    before, after = (load(training(tmp_path, f"{n}.json", 100.0, more=n)) for n in (0, 6))
    (row,) = diff(before, after, ("kernel",)).findings
    assert (row.status, row.count.a, row.count.b) == ("calls", 1, 2)


def test_kernels_cannot_be_grouped_by_something_else_too(tmp_path: Path) -> None:
    trace = load(training(tmp_path, "a.json", 100.0))
    with pytest.raises(ValueError, match="kernel alone"):
        diff(trace, trace, ("kernel", "shape"))


def test_the_kernels_of_recorded_traces_add_up(ecosystem: Path) -> None:
    for path in sorted((ecosystem / "traces").glob("*_*_*.json.gz"))[:4]:
        trace = load(path).trace
        measured = measure_kernels(load(path))
        works = trace.device.works
        length = (trace.device.end_ns - trace.device.start_ns)[works].sum()
        assert measured.totals["device"].sum() + measured.outside_ns == length
