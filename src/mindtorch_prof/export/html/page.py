"""The page: blocks of data in, one self-contained HTML file out. The page itself (template.html) is built from web/ and knows how to draw.

The template names in its Content-Security-Policy the hashes of its one script and one style; nothing else may run, and nothing is fetched.
Data goes where the template has a marker, as <script> elements that are no scripts: base64 has no character that could end one.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import IO

from .pack import Block

_FIRST, _LATER = b"<!--first-->", b"<!--later-->"


@cache
def template(name: str) -> tuple[bytes, bytes, bytes]:
    """A built page as what stands before the first data, between them, and after the rest."""
    whole = resources.files(__package__).joinpath(name).read_bytes()
    head, rest = whole.split(_FIRST)
    middle, tail = rest.split(_LATER)
    return head, middle, tail


def write_page(
    out: IO[bytes], first: dict[str, Block], later: dict[str, Block], page: str = "template.html"
) -> None:
    """Write a page; `first` is read before anything is drawn, `later` when a view needs it."""
    head, middle, tail = template(page)
    out.write(head)
    _write_blocks(out, first)
    out.write(middle)
    _write_blocks(out, later)
    out.write(tail)


def _write_blocks(out: IO[bytes], blocks: dict[str, Block]) -> None:
    for name, block in blocks.items():
        out.write(b'<script type="application/octet-stream" id="' + name.encode("ascii") + b'">')
        out.write(block.text())
        out.write(b"</script>\n")
