"""Takes the pictures of the documentation: reports of recorded traces in, one WebP file per picture out.

    python docs/images/take_screenshots.py [NAME ...]

Needs Chromium and the traces of shared/ecosystem beside the checkout (tests/helpers/doc_pages.py says which).
Run it after a change of the report's looks, look at the pictures, and commit them. A test says if one is
missing, unused or larger than 200 KB.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
sys.path[:0] = [str(ROOT / path) for path in ("src", "tests/helpers", "tests/mindtorch_v2/facts")]

from chromium import Browser, browser  # noqa: E402  # after the path is set
from doc_folder import ecosystem  # noqa: E402
from doc_pages import RECORDED  # noqa: E402

from mindtorch_prof import load  # noqa: E402

QUALITY = 82  # of WebP: text stays sharp


def _nothing(page: Browser) -> None:
    pass


def _select_attention(page: Browser) -> None:
    """Select an op in the timeline, and show what is around it."""
    page.type("input[placeholder='Find events']", "_flash_attention_forward")
    page.key("Enter")
    page.key("Escape")
    page.js("document.activeElement.blur()")
    for key in "fssss":
        page.key(key)
        time.sleep(0.2)


@dataclass(frozen=True)
class Picture:
    """What a picture shows: a view of the report of a trace."""

    trace: str
    view: str
    width: int = 1400
    height: int = 900
    before: Callable[[Browser], None] = _nothing  # what to do before it is taken


PICTURES = {
    "report_overview": Picture("h100.json.gz", "overview", height=860),
    "report_operators": Picture("h100.json.gz", "operators", height=700),
    "report_flame": Picture("h100.json.gz", "flame", height=700),
    "report_timeline": Picture("h100.json.gz", "timeline", height=860, before=_select_attention),
    "report_roofline": Picture("h100.json.gz", "roofline", height=620),
    "report_memory": Picture("h100.json.gz", "memory", height=800),
    "report_device": Picture("mi300.json.gz", "device", height=900),
}


def take(page: Browser, name: str, picture: Picture, report: Path) -> Path:
    """Open a report, show the view, and write the picture."""
    page.size(picture.width, picture.height)
    page.open(report, f"#{picture.view}")
    time.sleep(0.5)  # canvases are drawn in the next frames
    picture.before(page)
    time.sleep(0.5)
    data = page.send("Page.captureScreenshot", format="webp", quality=QUALITY)["data"]
    path = FOLDER / f"{name}.webp"
    path.write_bytes(base64.b64decode(data))
    return path


def main() -> None:
    found = ecosystem()
    if found is None:
        raise SystemExit("no folder shared/ecosystem beside the checkout, which has the recorded traces")
    names = sys.argv[1:] or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as page:
        page.dark(False)
        reports: dict[str, Path] = {}
        for name in names:
            picture = PICTURES[name]
            if picture.trace not in reports:
                reports[picture.trace] = Path(folder) / f"{picture.trace}.html"
                load(found / RECORDED[picture.trace]).report(reports[picture.trace])
            path = take(page, name, picture, reports[picture.trace])
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
