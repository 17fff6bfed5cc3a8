"""The page of a job: its data is that of the report, and a browser draws it for few ranks and for many."""

from __future__ import annotations

from pathlib import Path

import chromium
import numpy as np
import pytest
from fleet_jobs import GLOO, NCCL, make_job

from mindtorch_prof import fleet
from mindtorch_prof.fleet.page import export_fleet, summary_block
from mindtorch_prof.fleet.report import FleetReport


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> FleetReport:
    folder = tmp_path_factory.mktemp("job")
    make_job(folder, NCCL, 4, 4, "host:1:2500:data", "missing:3", clock_us=1000)
    return fleet(folder / "*.gz", workers=1)


def test_the_page_shows_the_figures_of_the_report(report: FleetReport) -> None:
    block = summary_block(report)
    rows = report.rank_rows()
    assert block.columns["rank_wait_us"][0].tolist() == pytest.approx(
        [1e3 * float(row["wait_us"] or 0) for row in rows]
    )
    heat = block.columns["heat_step"][0].reshape(3, 4)
    assert np.median(heat, axis=1) / 1e3 == pytest.approx([row["step_us"] for row in rows])
    assert set(block.columns) >= {"heat_step", "heat_wait", "heat_exposed", "heat_idle"}
    assert len(block.columns["collective_skew_us"][0]) == len(report.collective_rows())
    assert block.values["straggler"] == 1
    assert block.values["missing"] == [{"file": None, "rank": 3, "reason": "no file of this rank"}]


def test_the_page_shows_kernels_by_their_short_names(ecosystem: Path) -> None:
    values = summary_block(fleet(ecosystem / "ranks/dlrm_8", workers=1)).values
    names = [row["op"] for row in values["what_if"]["by_op"]] + [name for _, name in values["ops"]]
    assert any(name.startswith("split_embedding_backward_codegen_adagrad_unweighted") for name in names)
    assert not [name for name in names if name.startswith("void ")]


def test_a_job_of_one_rank_has_a_page(tmp_path: Path) -> None:
    export_fleet(fleet(GLOO), tmp_path / "one.html")
    assert (tmp_path / "one.html").stat().st_size > 50_000


@pytest.mark.skipif(chromium.executable() is None, reason="NOT CHECKED: there is no Chromium here")
@pytest.mark.parametrize("ranks", [3, 120])
def test_a_browser_draws_the_page_and_opens_the_straggler(
    report: FleetReport, ranks: int, tmp_path: Path
) -> None:
    if ranks > 3:
        make_job(tmp_path / "job", GLOO, ranks, 4, "host:77:3000:forward")
        report = fleet(tmp_path / "job" / "*.gz", workers=1)
    page = tmp_path / "fleet.html"
    export_fleet(report, page)
    with chromium.browser(tmp_path / "profile") as browser:
        browser.open(page)
        straggler = report.verdict.straggler
        verdict = browser.wait("document.querySelector('[data-testid=verdict]').textContent")
        assert verdict.startswith(f"rank {straggler} holds the others up")
        browser.expect("document.querySelector('[data-testid=opened] h3').textContent", f"rank {straggler}")
        browser.wait("document.querySelectorAll('.table-box').length >= 4")
        assert browser.complaints == []


# the labels of the last drawing of each canvas; every drawing begins with its transformation
_NOTE_LABELS = """
const begin = CanvasRenderingContext2D.prototype.setTransform;
CanvasRenderingContext2D.prototype.setTransform = function (...values) {
  this.canvas.labels = {};
  return begin.apply(this, values);
};
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (this.textAlign === "right") this.canvas.labels[text] = y;
  return write.call(this, text, x, y);
};
document.querySelector('[data-testid=heat]').focus()
"""


@pytest.mark.skipif(chromium.executable() is None, reason="NOT CHECKED: there is no Chromium here")
def test_arrow_keys_move_through_the_heat_map_and_names_of_ranks_do_not_overlap(tmp_path: Path) -> None:
    make_job(tmp_path / "job", GLOO, 150, 4, "host:2:3000:forward")
    export_fleet(fleet(tmp_path / "job" / "*.gz", workers=1), tmp_path / "fleet.html")
    with chromium.browser(tmp_path / "profile") as browser:
        browser.open(tmp_path / "fleet.html")
        browser.wait("document.querySelector('[data-testid=heat]')")
        browser.js(_NOTE_LABELS)
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            browser.key(key)
        browser.wait("document.querySelector('.hovered').textContent.startsWith('rank 3, step 101: ')")
        browser.expect("document.querySelector('[data-testid=opened] h3').textContent", "rank 3")
        browser.key("End")
        chosen = "document.querySelector('canvas[data-testid=heat]').labels['rank 149']"
        browser.wait(chosen)
        labels = browser.js("document.querySelector('canvas[data-testid=heat]').labels")
        assert "rank 2" in labels  # the straggler
        assert np.diff(sorted(labels.values())).min() > 13
        assert browser.complaints == []
