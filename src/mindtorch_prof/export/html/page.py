"""The page: blocks of data in, one self-contained HTML file out. The page itself (template.html) is built from web/ and draws the data.

The Content-Security-Policy of the template has the hashes of its one script and one style; nothing else is executed, and nothing is
fetched. Data replaces markers of the template, as <script> elements of a data type: base64 has no character that could end one.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import IO

from .pack import Block

_FIRST, _LATER = b"<!--first-->", b"<!--later-->"


@cache
def template(name: str) -> tuple[bytes, bytes, bytes]:
    """A built page in three parts: before the first marker, between the markers, and after the second."""
    whole = resources.files(__package__).joinpath(name).read_bytes()
    head, rest = whole.split(_FIRST)
    middle, tail = rest.split(_LATER)
    return head, middle, tail


def write_page(
    out: IO[bytes], first: dict[str, Block], later: dict[str, Block], page: str = "template.html"
) -> None:
    """Write a page; it reads the blocks of `first` before it draws anything, those of `later` when a view needs them."""
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
