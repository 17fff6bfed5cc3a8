"""Flops: torch's numbers, the same for a recording, for its trace file and for FlopCounterMode."""

from __future__ import annotations

from pathlib import Path

import pytest

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof.flops import bmm_flops, conv2d_flops, mm_flops
from mindtorch_v2.utils.flop_counter import FlopCounterMode


def run_ops() -> None:
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    torch.mm(a, b)
    torch.addmm(torch.ones(3, 5), a, b)
    torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    image, weight = torch.ones(2, 4, 9, 8), torch.ones(6, 2, 3, 2)
    torch.conv2d(image, weight, stride=2, padding=(1, 0), dilation=(2, 1), groups=2)
    a + a
    a * 2


EXPECTED = {  # as torch 2.13 counts them
    "aten::mm": 120,
    "aten::addmm": 120,
    "aten::bmm": 240,
    "aten::baddbmm": 240,
    "aten::conv2d": 2 * 2 * 4 * 4 * 3 * 2 * 4 * 6 // 2,
    "aten::add": 12,
    "aten::mul": 12,
}


def test_recordings_and_their_files_have_the_same_flops(tmp_path: Path) -> None:
    with torch.profiler.profile(record_shapes=True, with_flops=True) as prof:
        run_ops()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    for answers in (prof, mindtorch_prof.load(path)):
        flops = {row.key: row.flops for row in answers.key_averages()}
        assert {name: flops[name] for name in EXPECTED} == EXPECTED


def test_flop_counter_mode_counts_products_and_convolutions_alike() -> None:
    with FlopCounterMode(display=False) as counter:
        run_ops()
    counts = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    names = ("mm", "addmm", "bmm", "baddbmm")
    assert {name: counts[f"aten.{name}"] for name in names} == {n: EXPECTED[f"aten::{n}"] for n in names}
    assert counts["aten.convolution"] == EXPECTED["aten::conv2d"]


def test_products_without_inner_size_count_nothing() -> None:
    assert mm_flops((3, 0), (0, 5)) == 0
    assert bmm_flops((2, 3, 0), (2, 0, 5)) == 0


def test_a_product_whose_shapes_do_not_fit_is_counted_by_its_elements() -> None:
    assert mm_flops((2, 3), (4, 5)) == 2 * 6 * 20 // 3


def test_convolutions_of_other_than_four_dimensions_have_no_formula() -> None:
    with pytest.raises(ValueError, match="unpack"):
        conv2d_flops((4, 9, 8), (6, 4, 3, 2), (1, 1), (0, 0), (1, 1), 1)
    with pytest.raises(ValueError, match="unpack"):
        conv2d_flops((1, 4, 9, 8), (6, 4, 3), (1, 1), (0, 0), (1, 1), 1)
