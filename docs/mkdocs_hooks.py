"""Hooks of the documentation site: pages outside of docs/ in; pages of the site out, with links that fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# as the repository has them: as the site has them
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them; those to other files of the repository become plain text."""
    inside = {name: path for path, name in OUTSIDE.items()}
    source = ROOT / inside.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def link(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        if "://" in target:
            return match.group()
        path = Path(source.parent, target).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            return match.group()  # mkdocs reports it
        name = path.relative_to(ROOT).as_posix()
        uri = OUTSIDE.get(name, name.removeprefix("docs/"))
        up = "../" * page.file.src_uri.count("/")
        return f"{before}{up}{uri}{after}"

    return LINK.sub(link, markdown)
