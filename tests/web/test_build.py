"""The built page: it is what the sources in web/ give."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mindtorch_prof.export.html import calls

WEB = Path(__file__).parents[2] / "web"
BUILT = Path(calls.__file__).parent


def test_the_built_pages_are_what_their_sources_give(tmp_path: Path) -> None:
    if not WEB.is_dir() or shutil.which("node") is None or not (WEB / "node_modules" / "esbuild").is_dir():
        pytest.skip("NOT CHECKED: whether the built pages fit web/src (needs node, and `npm ci` in web/)")
    command = ["node", "build.mjs", str(tmp_path)]
    subprocess.run(command, cwd=WEB, check=True, capture_output=True, timeout=600)
    for name in ("template.html", "fleet.html", "table.html", "THIRD_PARTY.txt"):
        assert (tmp_path / name).read_bytes() == (BUILT / name).read_bytes(), (
            f"{name}: run `npm run build` in web/"
        )


def test_the_lock_file_names_no_host() -> None:
    if not WEB.is_dir():
        pytest.skip("NOT CHECKED: the lock file is not part of this copy of the tests")
    text = (WEB / "package-lock.json").read_text()
    assert '"resolved"' not in text
