"""docs/with_real_torch.md: its examples run, one after the other, where real torch is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from mindtorch_prof.live.acceleration import CHECKED_VERSIONS

PAGE = Path(__file__).parents[2] / "docs" / "with_real_torch.md"
SOURCE = Path(__file__).parents[2] / "src"


def test_the_examples_run(torch_reference: ModuleType, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Self CPU time total: ") == 3
    assert (tmp_path / "report.html").exists()
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_the_page_names_the_versions_that_were_checked() -> None:
    *first, last = CHECKED_VERSIONS
    assert f"**{', '.join(first)} and {last}**" in PAGE.read_text()
