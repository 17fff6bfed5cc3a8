"""torch.hub: folders and files that are there already; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch


def test_a_local_folder_is_a_hub(tmp_path: Path) -> None:
    (tmp_path / "hub_neighbour.py").write_text("N = 7\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['json']\nfrom hub_neighbour import N\ndef tiny(n=2, **more): return n, N, more\n"
    )
    assert torch.hub.load(str(tmp_path), "tiny", 3, source="local", z=1) == (3, 7, {"z": 1})
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        torch.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match='Unknown source: "web"'):
        torch.hub.load(str(tmp_path), "tiny", source="web")


def test_a_checkpoint_that_is_already_in_the_hub_folder_is_loaded(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "w.pth")
    loaded = torch.hub.load_state_dict_from_url("https://example.org/w.pth", model_dir=str(tmp_path))
    assert torch.equal(loaded["w"], torch.ones(2))


def test_downloads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="downloads nothing"):
        torch.hub.load("owner/repository", "model")
    with pytest.raises(RuntimeError, match="downloads nothing"):
        torch.hub.load_state_dict_from_url("https://example.org/w.pth", model_dir=str(tmp_path))
    with pytest.raises(RuntimeError, match="downloads nothing"):
        torch.utils.model_zoo.load_url("https://example.org/model.pth")


def test_programs_import_tqdm_from_torch_hub_with_and_without_the_package(run_python: Any) -> None:
    printed = run_python(
        """
        import sys
        sys.modules["tqdm"] = None  # not installed
        from mindtorch_v2.hub import tqdm
        with tqdm(total=4, disable=True) as bar:
            bar.update(2)
        with tqdm(total=4) as bar:
            bar.update(2)
            print(bar.n)
        """
    )
    assert printed == "2\n"
