"""What docs/differences.md says and no other test file tests."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerAction, profile, record_function

# ------------------------------------------------------------------------------------------------ left out


def test_work_on_a_gpu_raises() -> None:
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.ones(1).cuda()


@pytest.mark.parametrize("name", ["package", "monitor"])
def test_a_namespace_that_is_left_out_is_absent(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(torch, name)


@pytest.mark.parametrize("name", ["convert", "fuse_modules", "get_default_qconfig", "prepare", "prepare_qat"])
def test_quantizing_a_model_raises(name: str) -> None:
    assert getattr(torch.quantization, name) is getattr(torch.ao.quantization, name)
    with pytest.raises(NotImplementedError, match=f"{name}: this library has no quantized tensors"):
        getattr(torch.ao.quantization, name)(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["float4_e2m1fn_x2", "bits8", "int1", "uint7", "qint8"])
@pytest.mark.parametrize(
    "use",
    [
        lambda dtype: torch.empty(2, dtype=dtype),
        lambda dtype: torch.tensor([1.0], dtype=dtype),
        lambda dtype: torch.ones(2).to(dtype),
        lambda dtype: torch.ones(2, dtype=torch.uint8).view(dtype),
        lambda dtype: torch.empty(2, dtype=dtype, device="meta"),
        lambda dtype: torch.promote_types(dtype, torch.float32),
    ],
    ids=["empty", "tensor", "to", "view", "meta", "promote"],
)
def test_a_dtype_without_tensors_refuses_their_creation(use: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"torch.{name}: .* no tensors of it"):
        use(getattr(torch, name))


# ------------------------------------------------------------------------------------------------ different


def test_gamma_gradients_have_ten_digits() -> None:
    a = torch.tensor([2.5], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    sample = torch.distributions.Gamma(a, torch.ones(1, dtype=torch.float64)).rsample()
    (gradient,) = torch.autograd.grad(sample.sum(), a)
    step, p = 1e-6, special.gammainc(2.5, sample.item())
    wanted = (special.gammaincinv(2.5 + step, p) - special.gammaincinv(2.5 - step, p)) / (2 * step)
    assert gradient.item() == pytest.approx(wanted, rel=1e-7)


def test_a_sparse_tensor_is_of_a_subclass() -> None:
    kind = type(torch.ones(2, 2).to_sparse())
    assert issubclass(kind, torch.Tensor)
    assert kind is not torch.Tensor


def test_back_ends_say_that_they_are_not_available() -> None:
    backends = torch.backends
    available = [backend.is_available() for backend in (backends.mkl, backends.mkldnn, backends.openmp)]
    assert available == [False, False, False]


def test_bessel_functions_have_fifteen_digits() -> None:
    x = torch.linspace(0.1, 20, 50, dtype=torch.float64)
    np.testing.assert_allclose(
        torch.special.bessel_j0(x).numpy(), special.j0(x.numpy()), rtol=1e-11, atol=1e-14
    )


def test_lobpcg_refuses_a_tracker() -> None:
    matrix = torch.eye(9, dtype=torch.float64)
    with pytest.raises(NotImplementedError, match="no iteration to track"):
        torch.lobpcg(matrix, k=1, tracker=lambda worker: None)


# ------------------------------------------------------------------------------------------- torch is wrong


def test_wishart_samples_have_gradients_and_no_warning() -> None:
    df = torch.tensor(5.0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(0)
        torch.distributions.Wishart(df, torch.eye(2)).rsample().sum().backward()
    assert torch.isfinite(df.grad)
    assert df.grad != 0


def test_any_name_comes_back_from_a_trace_file(tmp_path: Path) -> None:
    name = 'a "quoted"\n\\ \x01 name'
    with profile() as prof, record_function(name):
        torch.ones(1)
    for file in ("a.json", "b.json"):  # more than once
        prof.export_chrome_trace(str(tmp_path / file))
        events = json.loads((tmp_path / file).read_text())["traceEvents"]
        assert [e["name"] for e in events if e.get("cat") == "user_annotation"] == [name]


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events", "ignore:Incorrect schedule")
def test_a_schedule_may_warm_up_after_it_recorded() -> None:
    plan = [ProfilerAction.RECORD, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE]
    ready: list[tuple[int, list[str]]] = []
    with profile(
        schedule=lambda step: plan[step] if step < 3 else ProfilerAction.NONE,
        on_trace_ready=lambda prof: ready.append((prof.step_num, [e.name for e in prof.events()])),
    ) as prof:
        for op in (torch.sin, torch.cos, torch.neg):
            op(torch.ones(1))
            prof.step()
    ((step, names),) = ready
    assert step == 3
    assert [name for name in names if name in ("aten::sin", "aten::cos", "aten::neg")] == ["aten::neg"]


def test_averages_keep_the_deprecated_names() -> None:
    with profile() as prof:
        torch.ones(1)
    row = prof.key_averages()[0]
    with pytest.warns(FutureWarning):
        assert (row.cuda_time_total, row.self_cuda_time_total, row.self_cuda_memory_usage) == (0, 0, 0)


def test_memory_is_recorded_with_all_threads() -> None:
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(profile_memory=True, experimental_config=config) as prof:
        torch.ones(10)
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages() if row.key == "aten::empty") == 40


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, part: torch.as_strided_scatter(x, part, (2,), (1,), 0), ([1.0, 2.0, 3.0], [4.0, 5.0])),
        (torch.polar, ([-1.5, 2.0], [0.3, 0.4])),
        (lambda x: torch.ldexp(x, torch.tensor([-2, 3])), ([1.5, 2.5],)),
    ],
)
def test_gradients_that_torchs_own_gradcheck_refuses_pass_it_here(function: Any, inputs: Any) -> None:
    leaves = tuple(torch.tensor(values, dtype=torch.float64, requires_grad=True) for values in inputs)
    assert torch.autograd.gradcheck(function, leaves)
