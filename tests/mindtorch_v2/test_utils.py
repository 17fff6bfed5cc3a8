"""torch.utils: hooks, trees, DLPack, measurements, reports, and what is there without being imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2._utils import _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("utils_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_the_warning_of_a_backward_hook_points_at_the_call_of_backward() -> None:
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    out = layer(torch.ones(1, 2)).sum()
    with pytest.warns(UserWarning, match="Full backward hook is firing") as caught:
        out.backward()
    assert caught[0].filename == __file__


def test_the_environment_is_reported() -> None:
    from mindtorch_v2.utils import collect_env

    report = collect_env.get_pretty_env_info()
    assert f"MindTorch version: {torch.version.__version__}" in report
    assert "Is CUDA available: False" in report
    assert f"[pip3] numpy=={np.__version__}" in report


def test_parts_of_utils_are_there_without_being_imported(run_python: Any) -> None:
    run_python(
        "import mindtorch_v2 as torch, sys; assert 'mindtorch_v2.utils.data' not in sys.modules; "
        "torch.utils.data.DataLoader, torch.utils.checkpoint.checkpoint, torch.utils.hooks.BackwardHook; "
        "torch.utils._pytree.tree_map, torch.utils.dlpack.from_dlpack"
    )
    assert {"data", "hooks"} <= set(dir(torch.utils))
    with pytest.raises(AttributeError):
        torch.utils.nothing  # noqa: B018


def test_tensors_are_packed_into_one_and_taken_in_bunches() -> None:
    tensors = [torch.ones(2, 2), torch.zeros(3)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert [t.shape for t in _unflatten_dense_tensors(flat, tensors)] == [(2, 2), (3,)]
    mixed = [torch.ones(4), torch.ones(3), torch.ones(2).long(), torch.ones(9)]
    assert [[t.numel() for t in bunch] for bunch in _take_tensors(mixed, 24)] == [[4], [3], [9], [2]]
