"""The 8-bit floating types: conversion, limits and files. Bits are torch 2.13's."""

from __future__ import annotations

import io
import math
import pickle

import pytest

import mindtorch_v2 as torch

VALUES = [
    0.0, -0.0, 1.0, -1.5, 0.0019, 0.00097, 1.0625, 1.1875, 17.0, 19.0, 240.0, 247.9, 248.1, 448.0, 464.0,
    1e6, -1e6, 57344.0, 61439.0, 61441.0, math.inf, -math.inf, math.nan, 1e-40, 3.0, 6.0,
]  # fmt: skip
BITS = {
    "float8_e4m3fn": bytes.fromhex("008038bc0100383a585a7777787e7e7efe7e7e7e7efe7f00444c"),
    "float8_e5m2": bytes.fromhex("00803cbe18143c3d4c4d5c5c5c5f5f7cfc7b7b7c7cfc7f004246"),
    "float8_e4m3fnuz": bytes.fromhex("000040c40201404260627f7f8080808080808080808080004c54"),
    "float8_e5m2fnuz": bytes.fromhex("000040c21c1840415051606060636380807f7f8080808000464a"),
    "float8_e8m0fnu": bytes.fromhex("00007f8076757f7f8383878787888893938f8f8fffffff008182"),
}
# min, max, eps, smallest normal
LIMITS = {
    "float8_e4m3fn": (-448.0, 448.0, 0.125, 0.015625),
    "float8_e5m2": (-57344.0, 57344.0, 0.25, 2.0**-14),
    "float8_e4m3fnuz": (-240.0, 240.0, 0.125, 0.0078125),
    "float8_e5m2fnuz": (-57344.0, 57344.0, 0.125, 2.0**-15),
    "float8_e8m0fnu": (2.0**-127, 2.0**127, 1.0, 2.0**-127),
}
NAMES = list(BITS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", [torch.float32, torch.float64])
def test_numbers_are_rounded_and_saturated_as_in_torch(name: str, source: torch.dtype) -> None:
    converted = torch.tensor(VALUES, dtype=source).to(getattr(torch, name))
    assert bytes(converted.view(torch.uint8).tolist()) == BITS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_of_numbers_has_the_same_bits(name: str) -> None:
    created = torch.tensor(VALUES, dtype=getattr(torch, name))
    assert bytes(created.view(torch.uint8).tolist()) == BITS[name]


def test_strided_and_in_place_copies_are_rounded_alike() -> None:
    values = torch.tensor([[1.0, 1e6], [-17.0, 0.3]])
    expected = [[1.0, -16.0], [448.0, 0.3125]]
    assert values.T.to(torch.float8_e4m3fn).float().tolist() == expected
    target = torch.empty(2, 2, dtype=torch.float8_e4m3fn)
    assert target.copy_(values.T).float().tolist() == expected
    assert torch.full((1,), 1e6, dtype=torch.float8_e4m3fn).tolist() == [448.0]


@pytest.mark.parametrize("name", NAMES)
def test_finfo_has_the_limits_of_torch(name: str) -> None:
    dtype = getattr(torch, name)
    info = torch.finfo(dtype)
    assert (info.min, info.max, info.eps, info.tiny) == LIMITS[name]
    assert (info.bits, info.resolution, info.dtype) == (8, 1.0, name)
    assert (dtype.itemsize, dtype.is_floating_point, dtype.is_signed) == (1, True, name != "float8_e8m0fnu")
    assert repr(dtype) == f"torch.{name}"
    assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize("name", NAMES)
def test_tensors_are_saved_and_loaded(name: str) -> None:
    tensor = torch.tensor([1.0, 4.0, 0.5]).to(getattr(torch, name))
    file = io.BytesIO()
    torch.save({"weight": tensor}, file)
    file.seek(0)
    loaded = torch.load(file)["weight"]
    assert loaded.dtype is tensor.dtype
    assert loaded.tolist() == [1.0, 4.0, 0.5]


def test_mixing_with_other_types_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        torch.promote_types(torch.float8_e5m2, torch.float32)
    with pytest.raises(RuntimeError, match="attempted to promote Float8_e5m2 and Float"):
        torch.zeros(2, dtype=torch.float8_e5m2) + torch.zeros(2)
    with pytest.raises(TypeError, match="Got unsupported ScalarType Float8_e5m2"):
        torch.zeros(2, dtype=torch.float8_e5m2).numpy()


def test_the_gradient_of_a_conversion_is_converted_back() -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    (x.to(torch.float8_e4m3fn).float() * torch.tensor([2.0, 5.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 5.0]


@pytest.mark.parametrize("name", ["qint8", "uint4", "bits8", "float4_e2m1fn_x2"])
def test_dtypes_without_tensors_say_so_when_they_are_used(name: str) -> None:
    dtype = getattr(torch, name)
    assert repr(dtype) == f"torch.{name}"
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    with pytest.raises(NotImplementedError, match=f"torch.{name}: this library has the name of this dtype"):
        torch.zeros(2, dtype=dtype)


def test_clearing_a_tensor_of_exponents_clears_its_bits() -> None:
    exponents = torch.ones(2, dtype=torch.float8_e8m0fnu)
    assert exponents.zero_().view(torch.uint8).tolist() == [0, 0]
