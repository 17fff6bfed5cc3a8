"""Calls that torch refuses, with the type of its error; and functions that are rarely called by name."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

X = torch.arange(6.0)
REFUSED = {
    "torch.take(X, torch.tensor([0, 1, 2]), out=torch.zeros(1).expand(3))": RuntimeError,
    "torch.gather(X, 0, torch.tensor([0, 1]), out=X[:2])": RuntimeError,
    "torch.gather(X, 0, torch.tensor([0]), out=torch.zeros(1).double())": RuntimeError,
    "torch.cat([X, X], out=torch.zeros(1).expand(12))": RuntimeError,
    "torch.eye(2, -3)": RuntimeError,
    "torch.linspace(0, 1, 2.5)": TypeError,
    "torch.linspace(X, X, 2)": RuntimeError,
    "torch.xlogy(2, 3)": TypeError,
    "torch.special.zeta(2, 3)": TypeError,
    "torch.special.legendre_polynomial_p(2, 3)": TypeError,
    "torch.rsub(2, X)": TypeError,
    "torch.empty_permuted((2,), (0, 1))": RuntimeError,
    "torch.empty_permuted((2, 3), (1, 1))": RuntimeError,
    "torch.roll(torch.tensor(1.0), 0, 0)": IndexError,
    "torch.narrow(X, 0, torch.tensor(True), 1)": RuntimeError,
    "torch.hsplit(X, 'a')": TypeError,
    "F.max_pool1d(X.reshape(1, 6), 1, dilation=0)": RuntimeError,
    "F.rrelu(X, 0.3, 0.1)": RuntimeError,
    "F.adaptive_max_pool2d(X.reshape(1, 2, 3), (-1, 1))": RuntimeError,
    "torch.ormqr(X, X, X)": RuntimeError,
    "X.as_strided((1,) * 65, (1,) * 65)": RuntimeError,
    # out= where a gradient is needed
    "torch.linalg.inv(torch.eye(2, requires_grad=True), out=torch.zeros(2, 2))": RuntimeError,
    "torch.fft.fft(X.clone().requires_grad_(), out=torch.zeros(6, dtype=torch.complex64))": RuntimeError,
    "torch.round(X.clone().requires_grad_(), decimals=2, out=torch.zeros(6))": RuntimeError,
    "torch.div(X.clone().requires_grad_(), 2, rounding_mode='floor', out=torch.zeros(6))": RuntimeError,
    "torch.norm(X.clone().requires_grad_(), out=torch.zeros(()))": RuntimeError,
    "torch.sort(X.clone().requires_grad_(), out=(torch.zeros(6), torch.arange(6)))": RuntimeError,
    "torch.frexp(X.clone().requires_grad_(), out=(torch.zeros(6), torch.arange(6).int()))": RuntimeError,
    # out= of another dtype, by ops that do not cast
    "torch.mm(X.reshape(2, 3), X.reshape(3, 2), out=torch.zeros(2, 2).double())": RuntimeError,
    "torch.t_copy(X, out=torch.zeros(6).double())": RuntimeError,
    "torch.complex(X.double(), X.double(), out=torch.zeros(6, dtype=torch.complex64))": RuntimeError,
    "torch.neg(X, out=torch.zeros(6).double())": RuntimeError,
    "F.gelu(X, out=torch.zeros(6).double())": RuntimeError,
    "F.softplus(X.clone().requires_grad_(), out=torch.zeros(6))": RuntimeError,
    # matrices that an algorithm cannot handle
    "torch.linalg.svd(torch.full((2, 2), float('nan')))": torch.linalg.LinAlgError,
    "torch.linalg.pinv(torch.full((3, 2, 2), float('nan')))": torch.linalg.LinAlgError,
    "torch.linalg.eig(torch.full((2, 2), float('inf')))": RuntimeError,
    "torch.cholesky_inverse(torch.zeros(2, 2))": torch.linalg.LinAlgError,
    "torch.ops.aten._cholesky_solve_helper(X, torch.eye(6), False)": RuntimeError,
    # arguments of another type
    "torch.reshape(X, (2, 3), out=X)": TypeError,
    "X.permute(0, out=X)": TypeError,
    "X.expand(2, 6, foo=1)": TypeError,
    "torch.outer(X, 2.0)": TypeError,
    "X.view_as(3)": TypeError,
    "torch.argmax(X, dim=[0])": TypeError,
    "torch.flatten(X, 0.5)": TypeError,
    "F.cross_entropy(X, 1)": TypeError,
    # shapes that NumPy refuses with an error of its own
    "F.group_norm(torch.ones(1, 6, 3), -3)": RuntimeError,
    "torch.linalg.householder_product(X[0], X)": RuntimeError,
    "torch.empty_strided((2, 2), (1,))": RuntimeError,
    # memory of a NumPy array
    "torch.from_numpy(np.zeros(3)).resize_(9)": RuntimeError,
    "torch.frombuffer(bytearray(8), dtype=torch.uint8).resize_(9)": RuntimeError,
    "torch.cat([X, X], out=torch.from_numpy(np.zeros(0, np.float32)))": RuntimeError,
    # an operator called as a function, of something that is no tensor
    "torch.Tensor.__radd__(5, X)": TypeError,
    "torch.Tensor.__rmul__(5, X)": TypeError,
    "torch.Tensor.__rand__(5, X.int())": TypeError,
    "torch.Tensor.__and__(5, X.int())": TypeError,
    # dtypes without a kernel
    "F.mse_loss(X.to(torch.complex64), X)": NotImplementedError,
    "F.huber_loss(X.to(torch.complex64), X)": NotImplementedError,
    "F.adaptive_avg_pool2d(torch.zeros(1, 4, 4, dtype=torch.int64), 2)": NotImplementedError,
    "torch.cumsum(X, 0, dtype=torch.bool)": NotImplementedError,
    "torch._foreach_maximum([X.to(torch.complex64)], 1.0)": NotImplementedError,
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_call_that_torch_refuses_raises_an_error_of_the_same_type(code: str) -> None:
    with pytest.raises(REFUSED[code]):
        eval(code, {"torch": torch, "F": F, "X": X, "np": np})


def test_chunks_of_tensors_are_joined_row_by_row() -> None:
    joined = torch._chunk_cat([torch.arange(3.0), torch.tensor([7.0, 8.0])], 0, 2)
    assert joined.tolist() == [[0, 1, 7], [2, 0, 8]]


def test_masked_places_may_lie_outside() -> None:
    mask, places = torch.tensor([True, False]), [torch.tensor([1, 99])]
    assert torch._unsafe_masked_index(X, mask, places, 7).tolist() == [1, 7]
    added = torch._unsafe_masked_index_put_accumulate(torch.zeros(2), mask, places, torch.ones(2))
    assert added.tolist() == [0, 1]


def test_foreach_takes_scalars_by_name_and_multiplies_matrices() -> None:
    tensors = [torch.ones(2), torch.ones(2)]
    first, second = torch._foreach_addcmul(tensors, tensors, tensors, scalars=[1, 2])
    assert (first.tolist(), second.tolist()) == ([2, 2], [3, 3])
    eye = torch.eye(2)
    assert torch._foreach_mm([eye], [eye * 3])[0].tolist() == [[3, 0], [0, 3]]


def test_second_derivatives_of_complex_singular_values_are_right() -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(3, 3, dtype=torch.complex128, generator=generator).requires_grad_()
    assert torch.autograd.gradgradcheck(torch.linalg.svdvals, (a,))


def test_transposed_convolutions_with_much_output_padding_have_second_derivatives() -> None:
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(1, 1, 3, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2))

    def call(x: object, w: object) -> object:
        return F.conv_transpose1d(x, w, stride=2, output_padding=3, dilation=4)

    assert torch.autograd.gradgradcheck(call, (x, w))


def test_complex_logcumsumexp_has_a_gradient_and_stays_on_its_branch() -> None:
    x = torch.tensor([1 + 2j, -1 + 3j, 0.5 - 3j], dtype=torch.complex128).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.logcumsumexp(x, 0), (x,))


def test_a_fill_value_that_does_not_fit_is_refused() -> None:
    mask = torch.tensor([True, False])
    for value in (1e30, float("nan")):
        with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
            torch.ones(2, dtype=torch.int64).masked_fill(mask, torch.tensor(value))


def test_labels_without_classes_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"optional 0-dim batch size, but got: \[0\]"):
        torch.nn.functional.multilabel_margin_loss(torch.ones(0), torch.ones(0))


def test_a_packet_finds_the_overload_that_has_an_argument() -> None:
    image = torch.ones(1, 1, 4, 4)
    resized = torch.ops.aten._upsample_bilinear2d_aa(image, (2, 2), False, scales_h=None, scales_w=None)
    assert resized.shape == (1, 1, 2, 2)


@pytest.mark.parametrize("label", [3, -2])
def test_multilabel_margin_loss_refuses_labels_that_are_no_classes(label):
    for target in (torch.tensor([[0, label, 1], [1, -1, 0]]), torch.tensor([0, label, 1])):
        with pytest.raises(RuntimeError, match="argument #2 'target' is out of range"):
            F.multilabel_margin_loss(torch.zeros(target.shape), target)
