"""Diff by tree: where two trees part, and that the differences add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest
from hypothesis import given
from trace_file_builder import read_trace
from trace_strategies import nested_traces

from mindtorch_prof.analysis.diff_tree import NO_OP, ROOT, Place, TreeDiff, as_dict, diff_tree
from mindtorch_prof.load import load
from mindtorch_prof.trace import Trace

event, kernel = documents.event, documents.kernel


def convolution(at: float, name: str, kernel_name: str, number: int, us: float) -> list[dict[str, Any]]:
    """aten::conv2d with an op of a library inside, which launches one kernel."""
    args = {"External id": number}
    return [
        event("aten::conv2d", at, 30, **{"External id": number + 1000}),
        event(name, at + 5, 20, **args),
        event("cudaLaunchKernel", at + 10, 5, "cuda_runtime", correlation=number, **args),
        kernel(kernel_name, at + 40, us, correlation=number, **args),
    ]


def loaded(rows: list[dict[str, Any]]) -> Any:
    return documents.load_document(documents.document(rows))


def of_name(comparison: TreeDiff, name: str, status: str) -> Place:
    (place,) = (place for place in comparison.places if (place.name, place.status) == (name, status))
    return place


def sums_hold(comparison: TreeDiff) -> None:
    for column in ("host", "device"):
        whole = getattr(comparison, column)
        for side in ("a", "b", "delta"):
            parts = sum(getattr(getattr(place, column), side) for place in comparison.places)
            assert parts == pytest.approx(getattr(whole, side), abs=1e-6)


def test_ops_of_two_libraries_are_compared_at_the_op_that_both_traces_have() -> None:
    cudnn = [
        row for i in range(3) for row in convolution(100 * i, "aten::cudnn_convolution", "fprop", i + 1, 40)
    ]
    miopen = [
        row for i in range(3) for row in convolution(100 * i, "aten::miopen_convolution", "igemm", i + 1, 50)
    ]
    comparison = diff_tree(loaded(cudnn), loaded(miopen))
    place = of_name(comparison, "aten::conv2d", "replaced")
    assert (place.device.a, place.device.b, place.host.a, place.host.b) == (120.0, 150.0, 60.0, 60.0)
    assert [(p.name, p.count, p.host_us, p.device_us) for p in place.only_a] == [
        ("aten::cudnn_convolution", 3, 60.0, 120.0)
    ]
    assert [part.name for part in place.only_b] == ["aten::miopen_convolution"]
    assert comparison.places[0] is place  # the largest change of device time
    own = of_name(comparison, "aten::conv2d", "same")
    assert (own.host.a, own.host.b) == (30.0, 30.0)
    sums_hold(comparison)


def test_other_kernels_of_the_same_op_are_shown_at_the_op() -> None:
    a = loaded(convolution(0, "aten::convolution", "fprop", 1, 40))
    b = loaded(convolution(0, "aten::convolution", "igemm", 1, 50))
    comparison = diff_tree(a, b)
    place = of_name(comparison, "aten::convolution", "kernels")
    assert ([p.name for p in place.only_a], [p.name for p in place.only_b]) == (["fprop"], ["igemm"])
    assert place.device.delta == 10.0


def test_fused_ops_stand_beside_those_that_they_replace() -> None:
    a = [event("forward", 0, 100, "user_annotation"), event("aten::mm", 1, 20), event("aten::add", 30, 10)]
    a += [event("aten::relu", 50, 10), event("aten::sum", 70, 10)]
    b = [
        event("forward", 0, 100, "user_annotation"),
        event("aten::mm", 1, 20),
        event("fused::add_relu", 30, 12),
    ]
    b += [event("aten::sum", 70, 10)]
    place = of_name(diff_tree(loaded(a), loaded(b)), "forward", "replaced")
    assert ({p.name for p in place.only_a}, {p.name for p in place.only_b}) == (
        {"aten::add", "aten::relu"},
        {"fused::add_relu"},
    )
    assert (place.host.a, place.host.b) == (20.0, 12.0)


def test_several_replaced_ops_are_apart_by_the_kind_of_their_work() -> None:
    a = [event("CudnnConvolutionBackward", 0, 10), event("CudnnBatchNormBackward", 20, 10)]
    b = [event("ConvolutionBackward0", 0, 10), event("NativeBatchNormBackward0", 20, 30)]
    comparison = diff_tree(loaded(a), loaded(b))
    pairs = {(place.only_a[0].name, place.only_b[0].name) for place in comparison.differences}
    assert pairs == {
        ("CudnnConvolutionBackward", "ConvolutionBackward0"),
        ("CudnnBatchNormBackward", "NativeBatchNormBackward0"),
    }


def test_an_annotation_that_only_one_side_has_is_looked_through() -> None:
    plain = [event("aten::mm", 10, 20)]
    named = [event("## forward ##", 0, 50, "user_annotation"), *plain]
    comparison = diff_tree(loaded(plain), loaded(named))
    assert comparison.differences == ()
    assert of_name(comparison, ROOT, "same").host.b == 30.0  # its own time is that of what is around it
    sums_hold(comparison)


def test_layers_of_one_class_are_one_place() -> None:
    def model(op: str) -> list[dict[str, Any]]:
        rows = []
        for i in range(4):
            module = event(f"nn.Module: Linear_{i}", 100 * i, 50, "python_function")
            module["args"] = {"Python id": i + 1, "Python module id": i}
            rows += [module, event(op, 100 * i + 5, 20)]
        return rows

    comparison = diff_tree(loaded(model("aten::addmm")), loaded(model("aten::linear")))
    (place,) = comparison.differences
    assert (place.name, place.paths, place.only_a[0].count) == ("nn.Module: Linear", 1, 4)
    sums_hold(comparison)


def test_the_same_finding_in_several_places_is_one_row() -> None:
    def model(op: str) -> list[dict[str, Any]]:
        rows = []
        for i, outer in enumerate(("encoder", "decoder")):
            rows += [
                event(outer, 100 * i, 50),
                event("aten::conv2d", 100 * i + 5, 40),
                event(op, 100 * i + 10, 10 + i),
            ]
        return rows

    comparison = diff_tree(loaded(model("aten::cudnn")), loaded(model("aten::miopen")))
    (place,) = comparison.differences
    assert (place.name, place.paths, place.host.a, place.path) == (
        "aten::conv2d",
        2,
        21.0,
        ("decoder", "aten::conv2d"),
    )


def test_per_step_values_are_divided_and_time_outside_of_steps_is_left_out() -> None:
    def trace(steps: int) -> list[dict[str, Any]]:
        rows = [event("aten::setup", 0, 50)]
        for i in range(steps):
            at = 100 + 100 * i
            rows += [event(f"ProfilerStep#{i}", at, 90, "user_annotation"), event("aten::mm", at + 10, 20)]
            rows.append(event("MmBackward0", at + 40, 20, tid=8))  # on another thread, in the same step
        return rows

    comparison = diff_tree(loaded(trace(2)), loaded(trace(3)))
    assert (comparison.per, comparison.steps, comparison.differences) == ("step", (2, 3), ())
    assert all(place.host.delta == pytest.approx(0) for place in comparison.places)
    assert of_name(comparison, "MmBackward0", "same").path == ("ProfilerStep*", "MmBackward0")
    assert any("outside of steps" in note for note in comparison.notes)
    whole = diff_tree(loaded(trace(2)), loaded(trace(3)), per="total")
    assert of_name(whole, "aten::mm", "same").count.delta == 1
    with pytest.raises(ValueError, match="the second trace has no steps"):
        diff_tree(loaded(trace(2)), loaded(trace(0)), per="step")


def test_a_step_inside_an_op_does_not_contain_that_op() -> None:
    rows = [
        event("train", 0, 100),
        event("ProfilerStep#1", 0, 50, "user_annotation"),
        event("aten::mm", 10, 20),
    ]
    comparison = diff_tree(loaded(rows), loaded(rows))
    assert of_name(comparison, "aten::mm", "same").path == ("train", "ProfilerStep*", "aten::mm")
    sums_hold(comparison)


def test_work_that_no_op_launched_has_a_place() -> None:
    a, b = (
        loaded([event("aten::mm", 0, 10), kernel("gemm", 20, 5)]),
        loaded([event("aten::mm", 0, 10), kernel("gemm", 20, 9)]),
    )
    comparison = diff_tree(a, b)
    assert of_name(comparison, NO_OP, "same").device.delta == 4.0
    sums_hold(comparison)


def test_a_device_on_one_side_alone_is_said() -> None:
    comparison = diff_tree(
        loaded([event("aten::mm", 0, 10)]), loaded(convolution(0, "aten::mm", "gemm", 1, 9))
    )
    assert not comparison.by_device
    assert any("only one of the traces" in note for note in comparison.notes)


@given(nested_traces(), nested_traces())
def test_differences_add_up_and_change_sign_with_the_sides(a: Trace, b: Trace) -> None:
    forward, backward = diff_tree(a, b), diff_tree(b, a)
    sums_hold(forward)
    rows = [
        sorted(
            (p.name, round(sign * p.host.delta, 6), round(sign * p.count.delta, 6), p.paths)
            for p in comparison.places
        )
        for comparison, sign in ((forward, 1), (backward, -1))
    ]
    assert rows[0] == rows[1]
    assert diff_tree(a, a).differences == ()
    json.dumps([as_dict(place) for place in forward.places])


# ------------------------------------------------------------------------------------------ recorded traces


def test_an_nvidia_and_an_amd_resnet_part_at_the_convolution_and_the_batch_norm(ecosystem: Path) -> None:
    traces = ecosystem / "traces"
    comparison = diff_tree(
        load(traces / "nvidia_ddp_train_nccl.json.gz"),
        load(traces / "mi300_resnet_ddp_act_checkpoint.json.gz"),
    )
    sums_hold(comparison)
    place = of_name(comparison, "aten::_convolution", "replaced")
    assert [part.name for part in place.only_a] == ["aten::cudnn_convolution"]
    assert [part.name for part in place.only_b] == ["aten::miopen_convolution"]
    assert place.only_a[0].count == 53
    place = of_name(comparison, "aten::_batch_norm_impl_index", "replaced")
    assert place.only_a[0].name == "aten::cudnn_batch_norm"
    assert "aten::native_batch_norm" in {part.name for part in place.only_b}


@pytest.mark.parametrize("name", ["v100_resnet50_train_2021.pt.trace", "h100_qwen_infer_stack_memory"])
def test_renamed_ops_are_found_where_they_are(name: str, ecosystem: Path, tmp_path: Path) -> None:
    source = ecosystem / "traces" / f"{name}.json.gz"
    document = read_trace(source)
    old, new = ("aten::cudnn_convolution", "npu::convolution") if "v100" in name else ("aten::mm", "npu::mm")
    for row in document["traceEvents"]:
        if row.get("name") == old:
            row["name"] = new
    (tmp_path / "renamed.json").write_text(json.dumps(document))
    comparison = diff_tree(load(source), load(tmp_path / "renamed.json"))
    sums_hold(comparison)
    assert comparison.differences
    for place in comparison.differences:
        assert (place.status, {p.name for p in place.only_a}, {p.name for p in place.only_b}) == (
            "replaced",
            {old},
            {new},
        )
        assert place.device.delta == pytest.approx(0, abs=1e-6)
        assert place.only_a[0].count == place.only_b[0].count > 0


def test_two_models_of_one_library_part_at_their_activation() -> None:
    import mindtorch_v2 as torch
    from mindtorch_v2 import nn
    from mindtorch_v2.profiler import profile

    sides = []
    for activation in (nn.ReLU, nn.GELU):
        model = nn.Sequential(nn.Linear(4, 8), activation(), nn.Linear(8, 2))
        with profile(with_modules=True, with_stack=True) as prof:
            model(torch.ones(3, 4)).sum().backward()
        sides.append(prof)
    comparison = diff_tree(*sides)
    names = [
        ({p.name for p in place.only_a}, {p.name for p in place.only_b}) for place in comparison.differences
    ]
    assert any("aten::relu" in a and "aten::gelu" in b for a, b in names)
    sums_hold(comparison)
