"""What every test may rely on, before and after: nothing records, gradients are on, float32 is default."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _hooks
from mindtorch_v2.profiler import process_flags


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No hook and no flag of a recording is set before or after a test, and global modes are as they were."""
    assert _process_state() == [], "set before this test"
    profile_function = sys.getprofile()
    grad_enabled, default_dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    yield
    left = _process_state()
    profile_function_changed = sys.getprofile() is not profile_function
    if left:
        _hooks.remove_all()
        _hooks.set_muted(False)
        importlib.reload(process_flags)
    if profile_function_changed:
        sys.setprofile(profile_function)
    torch.set_grad_enabled(grad_enabled)
    torch.set_default_dtype(default_dtype)
    assert left == [], "set by this test and not reset"
    assert not profile_function_changed, "this test changed sys.setprofile and did not reset it"


_FLAGS = {name: value for name, value in vars(process_flags).items() if isinstance(value, bool)}


def _process_state() -> list[str]:
    """The names of all hooks that are on and of all flags that do not have their default."""
    flags = {
        name: value
        for name, value in vars(process_flags).items()
        if isinstance(value, bool) and value is not _FLAGS[name]
    }
    return [*_hooks.active_hooks(), *flags]


@pytest.fixture(scope="session")
def torch_reference() -> ModuleType:
    """Real torch, for side-by-side tests; they run where it is installed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("runs where real torch is installed")
    return importlib.import_module("torch")
