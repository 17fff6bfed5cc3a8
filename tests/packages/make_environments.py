"""Make the environments in which the packages run: `python make_environments.py FOLDER [--torch]`; needs uv.

FOLDER/packages has all packages, this library in editable form, and no torch. With --torch, FOLDER/torch
has torch too, and sees the same packages: there `record_facts.py` records the expected numbers.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
PACKAGES = (HERE / "packages.txt").read_text(encoding="utf-8").split()
# torch is left out of every package's requirements; this torchvision is the one of torch 2.13
OVERRIDES = "torch; sys_platform == 'never'\ntriton; sys_platform == 'never'\ntorchvision==0.28.0\n"


def uv(*arguments: str) -> None:
    """Run uv and stop at its first failure."""
    subprocess.run(["uv", *arguments], check=True)


def make_packages(folder: Path) -> Path:
    """An environment with all packages and without torch; returns its site-packages."""
    uv("venv", "-p", "3.11", str(folder))
    python = str(folder / "bin" / "python")
    with tempfile.TemporaryDirectory() as scratch:
        overrides = Path(scratch) / "overrides.txt"
        overrides.write_text(OVERRIDES, encoding="utf-8")
        uv("pip", "install", "-p", python, "--override", str(overrides), *PACKAGES)
        uv("pip", "install", "-p", python, "--override", str(overrides), "-e", str(REPOSITORY))
    return next((folder / "lib").glob("python*/site-packages"))


def make_torch(folder: Path, packages: Path) -> None:
    """An environment with torch that sees the packages of another one."""
    uv("venv", "-p", "3.11", str(folder))
    uv("pip", "install", "-p", str(folder / "bin" / "python"), "torch==2.13.0")
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    site_packages = make_packages(options.folder.resolve() / "packages")
    if options.torch:
        make_torch(options.folder.resolve() / "torch", site_packages)
