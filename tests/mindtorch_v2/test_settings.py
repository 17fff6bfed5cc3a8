"""Settings of the process: deterministic algorithms, denormal numbers, the default type."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def test_the_deterministic_switches_tell_what_was_set() -> None:
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 1
        torch.set_deterministic_debug_mode("error")
        assert torch.get_deterministic_debug_mode() == 2
        with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`, but got x"):
            torch.set_deterministic_debug_mode("x")
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.get_deterministic_debug_mode() == 0


def test_denormals_are_never_flushed_and_the_switch_says_so() -> None:
    assert torch.set_flush_denormal(True) is False
    assert torch.tensor([1e-323], dtype=torch.float64).item() > 0


def test_set_default_tensor_type_warns_and_sets_the_default_dtype() -> None:
    with pytest.warns(UserWarning, match=r"torch.set_default_tensor_type\(\) is deprecated"):
        torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.get_default_dtype() is torch.float64
