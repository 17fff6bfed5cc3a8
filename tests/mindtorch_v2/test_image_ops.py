"""Padding, resizing, sampling, folding and shuffling of images give torch's numbers, gradients and errors.

The facts are recorded with `python facts/record_expressions.py image`.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2.profiler import ProfilerActivity, profile

FACTS = Path(__file__).parent / "facts"
sys.path.insert(0, str(FACTS))
expressions = importlib.import_module("expression_rows")
numeric = importlib.import_module("numeric_gradients")
RECORDED = json.loads(gzip.decompress((FACTS / "image_facts.json.gz").read_bytes()))

# How far a value may be off, relative to the largest: sums go in another order, low floats are rounded once.
TOLERANCE = {"torch.float64": 1e-12, "torch.float32": 2e-6, "torch.float16": 2e-3, "torch.bfloat16": 1.6e-2}


def numbers(text: str) -> np.ndarray:
    return np.asarray(eval(text, {"nan": np.nan, "inf": np.inf}))


def agree(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list), found
        assert len(found) == len(wanted)
        for mine, theirs in zip(found, wanted):
            agree(mine, theirs)
        return
    if not isinstance(wanted, dict) or "values" not in wanted or "values" not in found:
        assert found == wanted
        return
    for what in ("shape", "stride", "dtype", "grad_fn"):
        assert found[what] == wanted[what], what
    mine, theirs = numbers(found["values"]), numbers(wanted["values"])
    finite = theirs[np.isfinite(theirs)]
    scale = max(1.0, float(np.abs(finite).max(initial=0)))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=TOLERANCE.get(wanted["dtype"], 0) * scale)


@pytest.mark.parametrize(
    ("setup", "line", "fact"),
    [
        pytest.param(setup, line, fact, id=f"{number}-{line[:60]}")
        for number, ((setup, line), fact) in enumerate(zip(expressions.rows("image"), RECORDED, strict=True))
    ],
)
def test_image_ops_give_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    agree(expressions.run(torch, setup, line), fact)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: F.pad(x, (1, -1, 2, 0)), [(2, 3, 3)]),
        (lambda x: F.pad(x, (2, 1), mode="reflect"), [(2, 3)]),
        (lambda x: F.pad(x, (1, 1, 0, 2), mode="replicate"), [(1, 2, 2)]),
        (lambda x: F.pad(x, (2, 1), mode="circular"), [(2, 3)]),
        (lambda x: F.interpolate(x, size=5), [(1, 2, 3)]),
        (lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest-exact"), [(1, 1, 2, 3)]),
        (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear"), [(1, 1, 2, 3)]),
        (lambda x: F.interpolate(x, scale_factor=1.6, mode="bicubic"), [(1, 1, 2, 3)]),
        (lambda x: F.interpolate(x, size=(2, 3), mode="bilinear", antialias=True), [(1, 1, 4, 5)]),
        (lambda x: F.interpolate(x, size=(2, 3, 3), mode="trilinear", align_corners=True), [(1, 1, 2, 2, 2)]),
        (lambda x: F.unfold(x, 2, padding=1, stride=2), [(1, 1, 3, 4)]),
        (lambda x: F.fold(x, (3, 3), 2), [(1, 4, 4)]),
        (lambda x: F.pixel_shuffle(x, 2), [(4, 1, 2)]),
        (lambda x: F.pixel_unshuffle(x, 2), [(1, 2, 4)]),
        (lambda x: F.channel_shuffle(x, 2), [(1, 4, 2)]),
        (lambda x, y: F.grid_sample(x, y, align_corners=False), [(1, 2, 3, 3), (1, 2, 2, 2)]),
        (
            lambda x, y: F.grid_sample(x, y, mode="bicubic", padding_mode="border", align_corners=True),
            [(1, 1, 3, 3), (1, 1, 2, 2)],
        ),
        (
            lambda x, y: F.grid_sample(x, y, padding_mode="reflection", align_corners=False),
            [(1, 1, 2, 3, 2), (1, 1, 1, 2, 3)],
        ),
        (lambda x: F.affine_grid(x, (1, 1, 2, 3), align_corners=False), [(1, 2, 3)]),
    ],
)
def test_first_and_second_derivatives_are_what_differences_give(function: Any, shapes: list) -> None:
    numeric.check(function, *shapes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sampled_from(["reflect", "edge", "wrap"]))
def test_padding_agrees_with_numpy(pads: list[int], mode: str) -> None:
    x = np.arange(2 * 4 * 5.0).reshape(1, 2, 4, 5)
    name = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode]
    left, right, top, bottom = pads
    wanted = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), mode=mode)
    np.testing.assert_array_equal(F.pad(torch.from_numpy(x), pads, mode=name).numpy(), wanted)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-2, 3), min_size=4, max_size=4), st.sampled_from(["reflect", "replicate"]))
def test_padding_that_cuts_off_is_a_cut_of_the_padding_that_does_not(pads: list[int], mode: str) -> None:
    x = torch.arange(40.0).reshape(1, 2, 4, 5)
    whole = F.pad(x, [max(p, 0) for p in pads], mode=mode)
    left, right, top, bottom = [max(-p, 0) for p in pads]
    wanted = whole[..., top : whole.shape[2] - bottom, left : whole.shape[3] - right]
    assert torch.equal(F.pad(x, pads, mode=mode), wanted)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.sampled_from(["nearest", "linear"]))
def test_a_resize_and_its_gradient_are_transposed_maps(n: int, out: int, mode: str) -> None:
    random = np.random.RandomState(n * 100 + out)
    x = torch.tensor(random.randn(1, 1, n), requires_grad=True)
    y = F.interpolate(x, size=out, mode=mode)
    g = torch.tensor(random.randn(1, 1, out))
    (back,) = torch.autograd.grad(y, x, g)
    np.testing.assert_allclose((y * g).sum().item(), (back * x).sum().item(), rtol=1e-9, atol=1e-9)


def test_an_infinite_pixel_reaches_only_its_neighbours() -> None:
    x = torch.zeros(1, 1, 8, 8)
    x[0, 0, 4, 4] = float("inf")
    for mode in ("bilinear", "bicubic"):
        found = F.interpolate(x, scale_factor=2, mode=mode)
        assert (found[..., :4, :] == 0).all()
        assert (found[..., :4] == 0).all()
        assert not found.isfinite().all()


def test_fold_sums_what_unfold_took_as_often_as_it_took_it() -> None:
    x = torch.arange(60.0).reshape(1, 3, 4, 5)
    taken = F.fold(F.unfold(torch.ones_like(x), 2), (4, 5), 2)
    assert torch.equal(F.fold(F.unfold(x, 2), (4, 5), 2), x * taken)


def test_shuffles_are_undone_by_their_counterparts() -> None:
    x = torch.arange(2 * 8 * 4 * 6.0).reshape(2, 8, 4, 6)
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert torch.equal(F.channel_shuffle(F.channel_shuffle(x, 2), 4), x)


def test_sampling_at_the_pixels_gives_the_image() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    grid = F.affine_grid(torch.eye(2, 3).unsqueeze(0), (1, 2, 3, 4), align_corners=True)
    for mode in ("bilinear", "nearest", "bicubic"):
        found = F.grid_sample(x, grid, mode=mode, align_corners=True)
        torch.testing.assert_close(found, x, rtol=0, atol=1e-4)


def names_of(code: Any) -> list[str]:
    """What a profile shows of the forward call, outermost first."""
    with profile(activities=[ProfilerActivity.CPU]) as p:
        code()
    return [e.name.removeprefix("aten::") for e in p.events()]


def test_a_profile_shows_the_ops_that_torch_shows() -> None:
    x = torch.ones(2, 3, 4, 5)
    narrow = ["narrow", "slice", "as_strided"]
    assert names_of(lambda: F.pad(x, (1, 2, 0, -1))) == [
        "pad", "constant_pad_nd", *narrow, "empty", "fill_", *narrow, *narrow, "copy_",
    ]  # fmt: skip
    assert names_of(lambda: F.pad(x, (1, 1, 1, 1), mode="reflect"))[:2] == ["pad", "reflection_pad2d"]
    assert names_of(lambda: F.interpolate(x, scale_factor=2))[0] == "upsample_nearest2d"
    assert names_of(lambda: F.channel_shuffle(x, 3)) == [
        "channel_shuffle", "native_channel_shuffle", "empty", "resize_",
    ]  # fmt: skip
    assert names_of(lambda: F.grid_sample(x, torch.zeros(2, 1, 1, 2), align_corners=False))[-3:] == [
        "grid_sampler",
        "grid_sampler_2d",
        "empty",
    ]


def test_backward_runs_the_backward_op_of_each_family() -> None:
    x = torch.ones(1, 4, 4, 4, requires_grad=True)
    for function, name in (
        (lambda: F.pad(x, (1, 1), value=1.0), "constant_pad_nd"),
        (lambda: F.pad(x, (1, 1, 1, 1), mode="reflect"), "reflection_pad2d_backward"),
        (lambda: F.pad(x, (1, 1, 1, 1), mode="replicate"), "replication_pad2d_backward"),
        (lambda: F.interpolate(x, scale_factor=2), "upsample_nearest2d_backward"),
        (lambda: F.interpolate(x, scale_factor=2, mode="bilinear"), "upsample_bilinear2d_backward"),
        (lambda: F.unfold(x, 2), "col2im"),
        (lambda: F.pixel_shuffle(x, 2), "pixel_unshuffle"),
    ):
        y = function()
        assert name in names_of(lambda y=y: y.sum().backward())


def test_bytes_are_resized_as_whole_numbers() -> None:
    x = torch.tensor([[[[0, 255], [255, 0]]]], dtype=torch.uint8)
    found = F.interpolate(x, size=(3, 3), mode="bilinear")
    assert found.dtype is torch.uint8
    assert found.tolist() == [[[[0, 128, 255], [128, 128, 128], [255, 128, 0]]]]


def test_a_third_derivative_of_grid_sample_is_refused() -> None:
    x, grid = torch.rand(1, 1, 2, 2, requires_grad=True), torch.rand(1, 1, 1, 2, requires_grad=True)
    y = F.grid_sample(x, grid, align_corners=False)
    (first,) = torch.autograd.grad(y.sum(), grid, create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        torch.autograd.grad(first.sum(), grid, create_graph=True)
