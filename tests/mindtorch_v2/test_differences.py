"""What docs/differences.md says: one test an entry that no other test file holds."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerAction, ProfilerActivity, profile, record_function

F = torch.nn.functional


# ------------------------------------------------------------------------------------------------ left out


def test_there_is_no_gpu_and_work_on_one_raises() -> None:
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1).cuda()


def test_compiled_code_runs_eagerly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(lambda x: x + 1)(torch.ones(2)).tolist() == [2.0, 2.0]
        assert torch.jit.script(lambda x: x * 2)(torch.ones(1)).item() == 2.0


def test_torchscript_programs_are_neither_saved_nor_loaded(tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.jit.save(torch.nn.Linear(1, 1), str(tmp_path / "m.pt"))
    with pytest.raises((RuntimeError, NotImplementedError, ValueError)):
        torch.jit.load(str(tmp_path / "m.pt"))


def test_onnx_export_raises_and_graph_capture_is_absent() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1, 1),), "x.onnx")
    for name in ("fx", "export", "ao", "quantization", "package", "monitor"):
        assert not hasattr(torch, name), name


def test_there_is_one_process() -> None:
    assert not torch.distributed.is_available()


def test_small_dtypes_are_absent() -> None:
    for name in ("float8_e4m3fn", "float4_e2m1fn_x2", "complex32", "bits8", "int1", "uint7", "qint8"):
        assert not hasattr(torch, name), name


def test_sparse_layouts_other_than_coo_are_refused() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.ones(2, 2).to_sparse_csr()


def test_batched_gradients_are_refused() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.autograd.grad(x * 2, x, torch.ones(3, 2), is_grads_batched=True)


# ------------------------------------------------------------------------------------------------ different


def test_the_version_names_torchs_and_its_own() -> None:
    assert torch.__version__.startswith("2.13.0+mindtorch.")
    assert torch.__version__.endswith(torch.version.__version__)


def test_gamma_gradients_have_ten_digits() -> None:
    a = torch.tensor([2.5], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    sample = torch.distributions.Gamma(a, torch.ones(1, dtype=torch.float64)).rsample()
    (found,) = torch.autograd.grad(sample.sum(), a)
    from scipy import special  # a dependency of the package

    x, step = sample.item(), 1e-6
    p = special.gammainc(2.5, x)
    wanted = (special.gammaincinv(2.5 + step, p) - special.gammaincinv(2.5 - step, p)) / (2 * step)
    assert found.item() == pytest.approx(wanted, rel=1e-7)


def test_load_refuses_functions_that_a_file_names() -> None:
    import os
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return os.getenv, ("HOME",)

    file = io.BytesIO(pickle.dumps(Evil()))
    with pytest.raises(Exception):  # noqa: B017
        torch.load(file, weights_only=False)


def test_tracing_does_not_run_the_function() -> None:
    called: list[int] = []

    def function(x: Any) -> Any:
        called.append(1)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(function, (torch.ones(1),))
    assert not called


def test_a_sparse_tensor_is_of_a_subclass() -> None:
    s = torch.ones(2, 2).to_sparse()
    assert isinstance(s, torch.Tensor)
    assert type(s) is not torch.Tensor


def test_denormal_numbers_are_kept_and_back_ends_are_absent() -> None:
    assert torch.set_flush_denormal(True) is False
    for name in ("mkl", "mkldnn", "openmp"):
        assert not getattr(torch.backends, name).is_available(), name


def test_bessel_functions_have_fifteen_digits() -> None:
    from scipy import special  # a dependency of the package

    x = torch.linspace(0.1, 20, 50, dtype=torch.float64)
    np.testing.assert_allclose(
        torch.special.bessel_j0(x).numpy(), special.j0(x.numpy()), rtol=1e-11, atol=1e-14
    )


def test_lobpcg_refuses_a_tracker() -> None:
    matrix = torch.eye(9, dtype=torch.float64)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.lobpcg(matrix, k=1, tracker=lambda worker: None)


def test_optimizers_take_foreach_and_step_one_by_one() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=0.1, foreach=True)
    p.grad = torch.ones(2)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        optimizer.step()
    assert "aten::add_" in {e.key for e in prof.key_averages()}
    assert p.tolist() == pytest.approx([0.9, 0.9])


# ------------------------------------------------------------------------------------------- torch is wrong


def test_wishart_samples_have_gradients_and_no_warning() -> None:
    df = torch.tensor(5.0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(0)
        torch.distributions.Wishart(df, torch.eye(2)).rsample().sum().backward()
    assert df.grad is not None
    assert torch.isfinite(df.grad)


def test_leaving_an_autocast_that_was_entered_twice_restores_what_was() -> None:
    mode = torch.autocast("cpu", dtype=torch.bfloat16)
    with mode, mode:
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


def test_any_name_comes_back_from_a_trace_file(tmp_path: Path) -> None:
    name = 'a "quoted"\n\\ \x01 name'
    with profile(activities=[ProfilerActivity.CPU]) as prof, record_function(name):
        torch.ones(1)
    for file in ("a.json", "b.json"):  # more than once
        prof.export_chrome_trace(str(tmp_path / file))
        events = json.loads((tmp_path / file).read_text())["traceEvents"]
        assert name in {e.get("name") for e in events}


def test_a_profiler_inside_another_leaves_it_going_on() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as outer:
        torch.ones(1)
        with profile(activities=[ProfilerActivity.CPU]) as inner:
            torch.zeros(1)
        torch.ones(1)
    assert "aten::zeros" in {e.name for e in inner.events()}
    assert [e.name for e in outer.events()].count("aten::ones") == 2


def test_a_schedule_may_warm_up_after_it_recorded() -> None:
    plan = [ProfilerAction.RECORD, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE]
    seen: list[int] = []
    with (
        profile(
            activities=[ProfilerActivity.CPU],
            schedule=lambda step: plan[step] if step < 3 else ProfilerAction.NONE,
            on_trace_ready=lambda prof: seen.append(prof.step_num),
        ) as prof,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for _ in range(3):
            torch.ones(1)
            prof.step()
    assert seen


def test_metadata_that_is_no_json_is_refused() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as prof, pytest.raises(ValueError, match="key"):
        prof.add_metadata_json("key", "{not json")


def test_averages_keep_the_deprecated_names() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(1)
    row = prof.key_averages()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (row.cuda_time_total, row.self_cuda_time_total, row.self_cuda_memory_usage) == (0, 0, 0)


def test_emit_nvtx_lets_its_block_run_and_itt_ranges_are_annotations() -> None:
    with torch.autograd.profiler.emit_nvtx():
        assert torch.ones(1).item() == 1.0
    assert not torch.profiler.itt.is_available()
    with pytest.raises(NotImplementedError):
        torch.autograd.profiler.load_nvprof("file")


def test_memory_is_recorded_with_all_threads() -> None:
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, experimental_config=config) as prof:
        torch.ones(10)
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages() if row.key == "aten::empty") == 40


def test_batched_gradcheck_is_refused_and_more_can_be_differentiated_twice() -> None:
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises((RuntimeError, NotImplementedError, ValueError)):
        torch.autograd.gradcheck(lambda v: v * 2, (x,), check_batched_grad=True)
    (g,) = torch.autograd.grad(torch.cdist(x, x.detach() + 1).sum(), x, create_graph=True)
    assert g.sum().requires_grad
