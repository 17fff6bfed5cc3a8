"""nn.utils shows what torch was recorded to show."""

from __future__ import annotations

import pytest
import recorded_cases

import mindtorch_v2 as torch

MODULES = ("nn_utils_cases", "nn_parametrize_cases")


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded(*MODULES))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


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
