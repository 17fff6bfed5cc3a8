"""The report's tree of modules: forward and backward times."""

from __future__ import annotations

from pathlib import Path

from html_report import blocks


def test_modules_have_their_forward_and_backward_time(report_page: Path) -> None:
    values, columns = blocks(report_page)["modules-0"]
    assert values["names"] == ["Sequential_0", "Linear_0", "ReLU_0", "Linear_1"]
    assert columns["parent"].tolist() == [0, 1, 1, 1]
    assert columns["calls"].tolist() == [3, 3, 3, 3]
    total = columns["total_ns"].astype(float)
    assert total[0] == columns["self_ns"][0] + total[1:].sum()
    assert (columns["backward_ns"] > 0).all()
    assert columns["backward_ns"][0] == columns["backward_ns"][1:].sum()
