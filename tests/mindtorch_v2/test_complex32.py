"""complex32: complex numbers of half precision. Results and messages are torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype

pytestmark = pytest.mark.skipif(not _dtype.HALF_COMPLEX, reason="this ml_dtypes has no complex32")


def numbers() -> torch.Tensor:
    return torch.tensor([1 + 2j, 3 - 1j]).to(torch.complex32)


def test_tensors_are_made_converted_and_printed() -> None:
    assert repr(numbers()) == "tensor([1.+2.j, 3.-1.j], dtype=torch.complex32)"
    assert numbers().to(torch.complex64).tolist() == [1 + 2j, 3 - 1j]
    assert torch.full((2,), 1 + 1j, dtype=torch.chalf).tolist() == [1 + 1j, 1 + 1j]
    assert torch.ones(2).chalf().tolist() == [1, 1]
    assert numbers()[0].item() == 1 + 2j
    assert numbers().bool().tolist() == [True, True]
    assert torch.tensor(1j).chalf().bool().item() is True


def test_parts_are_views_of_half_precision() -> None:
    a = numbers()
    assert (a.real.dtype, a.real.tolist(), a.imag.tolist()) == (torch.float16, [1, 3], [2, -1])
    a.imag.zero_()
    assert a.tolist() == [1, 3]
    pairs = torch.view_as_real(torch.stack((numbers(), numbers())).T)
    assert pairs.tolist() == [[[1, 2], [1, 2]], [[3, -1], [3, -1]]]
    assert torch.view_as_complex(torch.ones(2, 2, dtype=torch.half)).dtype is torch.complex32
    half = torch.ones(2, dtype=torch.half)
    assert torch.complex(half, half).tolist() == [1 + 1j, 1 + 1j]


def test_arithmetic() -> None:
    a = numbers()
    assert (a * a).tolist() == [-3 + 4j, 8 - 6j]
    assert (a - 1).tolist() == [2j, 2 - 1j]
    assert a.conj().tolist() == [1 - 2j, 3 + 1j]
    assert a.abs().dtype is torch.float16
    assert (torch.ones(2, dtype=torch.half) * 1j).dtype is torch.complex32


@pytest.mark.parametrize(
    ("other", "result"),
    [
        (torch.float16, torch.complex32),
        (torch.int64, torch.complex32),
        (torch.bfloat16, torch.complex64),
        (torch.float32, torch.complex64),
        (torch.float64, torch.complex128),
        (torch.complex64, torch.complex64),
    ],
)
def test_promotion(other: torch.dtype, result: torch.dtype) -> None:
    assert torch.promote_types(torch.complex32, other) is result
    assert (numbers() + torch.ones(2, dtype=other)).dtype is result


def test_gradients_pass_through() -> None:
    x = torch.ones(2, requires_grad=True)
    (x.chalf() * (2 + 1j)).abs().float().sum().backward()
    torch.testing.assert_close(x.grad, torch.full((2,), 2.2361), atol=2e-3, rtol=0)


def test_products_are_refused_as_in_torch() -> None:
    ones = torch.ones(2, 2, dtype=torch.chalf)
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'ComplexHalf'"):
        ones @ ones
