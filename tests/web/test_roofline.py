"""The report's roofline in a real Chromium. Skips loudly where there is no browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chromium
import kineto_documents as documents
import pytest
from chromium import Browser

from mindtorch_prof.export.html import export_html

pytestmark = pytest.mark.skipif(
    chromium.executable() is None,
    reason="NOT CHECKED: the report in a browser (no chromium here; `apt-get install chromium` brings it)",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium.browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product, an addition, a fill, which computes nothing, and a kernel that no model explains."""
    events = []
    for number, (name, shapes, length) in enumerate(
        [
            ("aten::mm", [[512, 256], [256, 128]], 100),
            ("aten::add", [[512, 128], [512, 128], []], 50),
            ("aten::fill_", [[512, 128], []], 20),
            ("mine::<b>op", [[2, 2]], 5),
        ],
        start=1,
    ):
        types = ["c10::BFloat16" if shape else "Scalar" for shape in shapes]
        inputs = {
            "Input Dims": shapes,
            "Input type": types,
            "Concrete Inputs": ["" if s else "1" for s in shapes],
        }
        at = 1000.0 * number
        events += [
            documents.event(name, at, 10, **{"External id": number, **inputs}),
            documents.launch(at + 1, number),
            documents.kernel("kernel", at + 20, length, correlation=number),
        ]
    head = documents.document(events, deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    path = tmp_path_factory.mktemp("report") / "report.html"
    export_html(documents.load_document(head), path)
    return path


def test_rows_points_and_what_is_not_explained_are_shown(page: Browser, report: Path) -> None:
    page.size(1280, 900)
    page.open(report, "#roofline")
    page.expect("document.querySelector('canvas[data-points]').dataset.points", "2")
    names = "[...document.querySelectorAll('.table-box tbody tr th')].map(e => e.textContent)"
    page.expect(names, ["aten::mm", "aten::add", "aten::fill_"])

    @page.eventually
    def check() -> None:
        text = page.js("document.querySelector('#view').textContent")
        assert "Models explain 97 % of kernel time" in text
        assert "NVIDIA H100 SXM: 3.35 TB/s" in text
        assert "mine::<b>op" in text
        assert "there is no model for this op" in text

    assert page.js("document.querySelectorAll('#view b').length") == 0
    page.type("input[type=search]", "memory")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 3")
    assert page.complaints == []


def test_nothing_sticks_out_on_a_phone(page: Browser, report: Path) -> None:
    page.size(390, 844, phone=True)
    page.open(report, "#roofline")
    page.wait("document.querySelector('canvas[data-points]')")
    page.frames()
    page.wait("document.documentElement.scrollWidth <= innerWidth")
