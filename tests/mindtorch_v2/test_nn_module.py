"""nn.Module, its hooks, state dicts, parameters and containers show what torch was recorded to show."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import fact_files
import pytest
import recorded_cases

import mindtorch_v2 as torch

MODULES = ("module_cases", "module_hook_cases", "module_state_cases", "parameter_cases", "container_cases")


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded(*MODULES))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_a_call_without_hooks_goes_straight_to_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a call without hooks took the long way")

    module = torch.nn.Identity()
    monkeypatch.setattr(torch.nn.Module, "_call_impl", refuse)
    assert module(3) == 3
    handle = module.register_forward_hook(lambda *args: None)
    with pytest.raises(AssertionError, match="long way"):
        module(3)
    handle.remove()
    assert module(3) == 3


def test_a_hook_put_into_the_dictionary_by_hand_is_called() -> None:
    module = torch.nn.Identity()
    module._forward_hooks[0] = lambda mod, args, out: out * 2
    assert module(3) == 6


def test_modules_and_their_hooks_are_freed_without_the_garbage_collector() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    module.register_load_state_dict_pre_hook(lambda *args: None)
    module.register_full_backward_hook(lambda *args: None)
    module(torch.ones(1, 2, requires_grad=True)).sum().backward()
    gone = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert gone() is None
    finally:
        gc.enable()


def test_names_a_subclass_may_use_are_not_taken_by_helpers() -> None:
    ours = {name for name in vars(torch.nn.Module) if name.startswith("_") and not name.startswith("__")}
    assert ours <= set(fact_files.read("module_private_names.json"))
