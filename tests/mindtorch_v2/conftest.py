"""What every test may rely on, before and after: nothing records, gradients are on, float32 is default."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from types import ModuleType

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No recorder is set before or after a test, and global modes are as they were."""
    assert _dispatch.recorder is None, "a recorder was left in the dispatcher before this test"
    grad_enabled, default_dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    yield
    left = _dispatch.recorder
    _dispatch.recorder = None
    torch.set_grad_enabled(grad_enabled)
    torch.set_default_dtype(default_dtype)
    assert left is None, "this test left a recorder in the dispatcher"


@pytest.fixture(scope="session")
def torch_reference() -> ModuleType:
    """Real torch, for side-by-side tests; they run where it is installed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("runs where real torch is installed")
    return importlib.import_module("torch")
