"""nn.utils and torch.func show what torch was recorded to show."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
MODULES = ("nn_utils_cases", "nn_parametrize_cases", "func_cases")


def _load(name: str) -> Any:
    if str(FACTS) not in sys.path:
        sys.path.insert(0, str(FACTS))
    return importlib.import_module(name)


RECORDED = {name: json.loads((FACTS / f"{name}.json").read_text()) for name in MODULES}


@pytest.mark.parametrize(("module", "case"), [(m, c) for m, found in RECORDED.items() for c in found])
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    runner = _load("case_runner")
    function = runner.cases(_load(module))[case]
    assert runner.run(function, "mindtorch_v2") == RECORDED[module][case]


def test_weight_norm_is_differentiable_twice_along_every_dimension() -> None:
    v = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
    for dim in (0, 1, 2, -1):
        g = torch.norm_except_dim(v.detach(), 2, dim).clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda a, b, dim=dim: torch._weight_norm(a, b, dim), (v, g))
        assert torch.autograd.gradgradcheck(lambda a, b, dim=dim: torch._weight_norm(a, b, dim), (v, g))


def test_packing_and_padding_are_differentiable_twice() -> None:
    rnn = torch.nn.utils.rnn
    x = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)

    def there_and_back(t: torch.Tensor, batch_first: bool) -> torch.Tensor:
        packed = rnn.pack_padded_sequence(t, [1, 3, 2], batch_first, enforce_sorted=False)
        return rnn.pad_packed_sequence(packed._replace(data=packed.data**2), batch_first)[0]

    for batch_first, t in ((False, x), (True, x.detach().transpose(0, 1).contiguous().requires_grad_())):
        assert torch.autograd.gradcheck(there_and_back, (t, batch_first))
        assert torch.autograd.gradgradcheck(there_and_back, (t, batch_first))


def test_lists_of_tensors_give_what_their_tensors_give_one_by_one() -> None:
    a = [torch.randn(3), torch.randn(2, 2)]
    b = [torch.randn(3), torch.randn(2, 2)]
    for name in ("add", "sub", "mul", "div", "maximum", "clamp_min"):
        together = getattr(torch, f"_foreach_{name}")(a, b)
        single = getattr(torch, {"clamp_min": "maximum"}.get(name, name))
        assert all(torch.equal(t, single(x, y)) for t, x, y in zip(together, a, b))
    copies = [t.clone() for t in a]
    assert torch._foreach_addcdiv_(copies, b, b, [1.0, 2.0])[0] is copies[0]
    assert all(torch.allclose(c, t + k) for c, t, k in zip(copies, a, (1.0, 2.0)))
