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


def test_functions_of_torch_as_class_attributes_do_not_become_methods() -> None:
    """As in torch, where they are built-in functions. Those that torch writes in Python do."""

    class Layer(torch.nn.Module):
        convolution = torch.conv2d
        activation = torch.tanh
        gelu = torch.nn.functional.gelu
        relu = torch.nn.functional.relu
        einsum = torch.einsum

    layer, x = Layer(), torch.ones(1, 1, 2, 2)
    assert layer.convolution(x, weight=x).item() == 4.0
    assert layer.activation is torch.tanh
    assert layer.gelu is torch.nn.functional.gelu
    assert layer.relu.__func__ is torch.nn.functional.relu
    assert layer.einsum.__func__ is torch.einsum
