"""The documentation site: its navigation has every page; pictures are small and shown; recipes are valid."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import PAGES, ROOT, blocks

import mindtorch_prof

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
SETTINGS = (ROOT / "mkdocs.yml").read_text()
NAVIGATION = re.findall(r"^ +- (?:[^#\n]*: )?([\w/-]+\.md)$", SETTINGS.partition("\nnav:\n")[2], re.MULTILINE)
OUTSIDE = {"changelog.md", "contributing.md", "benchmarks.md"}  # which docs/mkdocs_hooks.py adds


def test_every_page_is_once_in_the_navigation() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in PAGES if page.is_relative_to(DOCS)}
    assert len(NAVIGATION) == len(set(NAVIGATION))
    assert set(NAVIGATION) == pages | OUTSIDE


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("NOT CHECKED: the site is built where mkdocs is installed: pip install '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "mindtorch_prof.load" in (tmp_path / "api.html").read_text()


def test_the_api_reference_has_every_public_name() -> None:
    described = set(
        re.findall(r"^::: mindtorch_prof\.(?:\w+\.)*(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    )
    assert sorted(set(mindtorch_prof.__all__) - described) == ["__version__"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^( *)```.*?^\1```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_one_title(page: Path) -> None:
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


# ------------------------------------------------------------------------------------ pictures


def test_pictures_are_small_and_are_those_that_pages_show() -> None:
    shown = {name for page in PAGES for name in re.findall(r"images/([\w.-]+)\)", page.read_text())}
    pictures = {path.name: path for path in IMAGES.iterdir() if path.suffix in {".webp", ".png"}}
    assert set(pictures) == shown
    assert [name for name, path in pictures.items() if path.stat().st_size > 200_000] == []


def test_every_picture_is_taken_by_the_script() -> None:
    source = (IMAGES / "take_screenshots.py").read_text()
    assert {f"{name}.webp" for name in re.findall(r'^    "(\w+)": Picture\(', source, re.MULTILINE)} == {
        path.name for path in IMAGES.glob("*.webp")
    }


# ------------------------------------------------------------------------------------ recipes


def test_recipes_for_build_servers_are_valid_yaml() -> None:
    yaml = pytest.importorskip("yaml", reason="NOT CHECKED: recipes are parsed where PyYAML is installed")
    texts = [block.text for block in blocks(DOCS / "ci_gate.md") if block.language == "yaml"]
    github, gitlab = map(yaml.safe_load, texts)
    assert set(github) == {"name", True, "jobs"}  # YAML reads the key `on` as True
    assert set(gitlab) == {"performance"}


def test_the_two_commands_of_the_readme_are_those_of_the_build() -> None:
    readme, build = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    for command in ("pip install . && mindtorch-prof demo", "pip install '.[test]' && pytest"):
        assert f"```sh\n{command}\n```" in readme
        assert f"{{ {command}; }}" in build


def test_the_build_script_is_valid() -> None:
    if shutil.which("bash") is None:
        pytest.skip("NOT CHECKED: there is no bash here")
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True, timeout=600)


def test_the_build_script_tries_again_what_fetches_packages_and_fails_if_that_always_fails() -> None:
    if shutil.which("bash") is None:
        pytest.skip("NOT CHECKED: there is no bash here")
    fetch = re.search(
        r"^fetch\(\) \{\n.*?^\}\n", (ROOT / ".ci" / "run").read_text(), re.MULTILINE | re.DOTALL
    )
    assert fetch is not None
    program = "set -euo pipefail\nsleep() { :; }\ntries=0\n" + fetch[0]
    program += 'third_time() { tries=$((tries + 1)); [ "$tries" = 3 ]; }\nfetch third_time && echo "$tries"\n'
    program += "fetch false || echo fails\nfetch false\necho not reached\n"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout.split()) == (1, ["3", "fails"])
