"""torch.compile and its kin run functions eagerly, wrap modules as torch does, and warn once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mindtorch_v2 as torch

EAGER: dict[str, Any] = {
    "torch.compile": torch.compile,
    "torch.compile, with arguments": lambda f: torch.compile(fullgraph=True)(f),  # noqa: PLW0108 - warns now
    "torch.compile, with a mode": lambda f: torch.compile(f, mode="reduce-overhead", backend="inductor"),
    "torch.compiler.compile": torch.compiler.compile,
    "torch.jit.script": torch.jit.script,
    "torch.jit.trace": lambda f: torch.jit.trace(f, (torch.ones(1),)),
    "torch._dynamo.optimize": lambda f: torch._dynamo.optimize("eager")(f),  # noqa: PLW0108 - warns now
}


@pytest.mark.usefixtures("eager_warnings_forgotten")
@pytest.mark.parametrize("form", EAGER)
def test_compiling_runs_the_function_eagerly_and_warns_once(form: str) -> None:
    with pytest.warns(UserWarning, match="runs eagerly") as caught:
        compiled = EAGER[form](lambda x: x + 1)
    assert len(caught) == 1
    assert compiled(torch.ones(1)).item() == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EAGER[form](lambda x: x)


@pytest.mark.usefixtures("eager_warnings_forgotten")
def test_a_compiled_module_is_wrapped_as_torch_wraps_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout())
    with pytest.warns(UserWarning, match="runs eagerly"):
        compiled = torch.compile(model)
    x = torch.ones(1, 2)
    assert type(compiled).__name__ == "OptimizedModule"
    assert compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert len(list(compiled.parameters())) == 2
    compiled.eval()
    assert not model.training
    assert torch.equal(compiled(x), model(x))
    compiled.note = "set on the module itself"
    assert model.note == "set on the module itself"
    assert len(compiled) == 2
    model.train()
    assert compiled.training
