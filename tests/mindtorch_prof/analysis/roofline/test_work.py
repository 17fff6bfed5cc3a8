"""Tests of mindtorch_prof.analysis.roofline.work: what an op's recorded inputs say about its work."""

from __future__ import annotations

import pytest

from mindtorch_prof.analysis.roofline.work import FLOAT32, Call, NotModelled, Tensor
from mindtorch_prof.inputs import Inputs, TensorInput


def test_a_dimension_of_stride_0_holds_one_element() -> None:
    assert Tensor((8, 16), FLOAT32).nbytes == 8 * 16 * 4
    assert Tensor((8, 16), FLOAT32, (0, 1)).nbytes == 16 * 4
    assert Tensor((0, 16), FLOAT32, (0, 1)).nbytes == 0


def test_an_argument_that_is_no_tensor_is_none() -> None:
    call = Call("aten::add", Inputs([TensorInput((2, 3), (3, 1), "float"), 1.5]))
    tensor = call.optional(0)
    assert tensor is not None
    assert (tensor.shape, tensor.element.dtype, tensor.numel) == ((2, 3), "float32", 6)
    assert call.optional(1) is None
    assert call.optional(7) is None


def test_a_tensor_of_an_unknown_type_is_not_modelled() -> None:
    call = Call("aten::add", Inputs([TensorInput((2, 3), None, "c10::Quantum")]))
    with pytest.raises(NotModelled, match="c10::Quantum"):
        call.optional(0)
