"""Escaping: a text from a trace in; the text as one kind of output may hold it out. One function per kind of output.

Names in a trace are data of strangers. Written as they are, they could control a terminal (ESC), hide or reorder what stands beside them
(zero-width and bidirectional marks), begin a line of their own, be computed by a spreadsheet (`=`), or be obeyed by GitHub Actions
(`::error::`). Different texts stay different: a backslash that could be taken for the beginning of an escape is doubled.
"""

from __future__ import annotations

import html
import re
import unicodedata

_HIDDEN = frozenset(
    {"Cc", "Cf", "Cs", "Zl", "Zp"}
)  # categories of Unicode: controls, formats, surrogates, line ends
# further characters without a glyph (Default_Ignorable_Code_Point), which have other categories
_INVISIBLE = frozenset(
    map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, 0xFFA0])
) | frozenset(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
_PRINTABLE = re.compile(r"[ !\"$-\[\]-~]*")  # no control, no backslash, no number sign
_ESCAPE = r"\\(?=\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
# Lines that GitHub Actions obeys: `::command::` at the beginning, `##[command]` anywhere
_COMMAND = re.compile(r"(^\s*):(?=:)|#(?=#\[)", re.MULTILINE)
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n", "'")


def terminal_text(text: str, *, lines: bool = False) -> str:
    """Text for a terminal or a log, on one line; `lines` keeps the ends of its lines."""
    if _PRINTABLE.fullmatch(text) and not text.lstrip().startswith("::"):
        return text
    hidden = _hidden_in(text)
    if lines:
        hidden.discard("\n")
    if "\\" in text or hidden:
        special = f"[{re.escape(''.join(sorted(hidden)))}]" if hidden else ""
        backslash = rf"{_ESCAPE}|\\(?={special})" if special else _ESCAPE
        text = re.sub(f"{special}|{backslash}" if special else backslash, _escaped, text)
    return _COMMAND.sub(_without_command, text)


def _hidden_in(text: str) -> set[str]:
    return {char for char in set(text) if unicodedata.category(char) in _HIDDEN or char in _INVISIBLE}


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\\":
        return "\\\\"
    number = ord(char)
    return (
        f"\\x{number:02x}"
        if number < 1 << 8
        else f"\\u{number:04x}"
        if number < 1 << 16
        else f"\\U{number:08x}"
    )


def _without_command(match: re.Match[str]) -> str:
    return "\\x23" if match[0] == "#" else f"{match[1]}\\x3a"


def csv_cell(text: str) -> str:
    """Text for a cell of a CSV file: as for a terminal, with a quote before what a spreadsheet would compute, and before a quote."""
    return "'" + terminal_text(text) if text.startswith(_FORMULAS) else terminal_text(text)


_SEPARATORS = str.maketrans(" ;\t\n\r", "_____")


def folded_frame(text: str) -> str:
    """A frame of a folded stack: separators of frames and values become `_`, as torch writes them."""
    return terminal_text(text.translate(_SEPARATORS))


def json_output(document: str) -> str:
    """JSON text with hidden characters as `\\u....`: another spelling of the same values."""
    document = document.replace("##[", "#\\u0023[")
    hidden = _hidden_in(document) - {"\n"}
    if not hidden:
        return document
    return re.sub(f"[{re.escape(''.join(sorted(hidden)))}]", _json_escaped, document)


def _json_escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def html_text(text: str) -> str:
    """Text for an HTML page, also inside quotes."""
    return html.escape(terminal_text(text, lines=True), quote=True)


def markdown_cell(text: str) -> str:
    """Text for a cell of a table in GitHub's Markdown; blanks before it, of trees, are kept."""
    inner = text.lstrip(" ")
    indent = "\u00a0" * (len(text) - len(inner))  # Markdown would drop plain spaces
    return indent + re.sub(r"[\\|\[`*]", r"\\\g<0>", terminal_text(inner)).replace("&", "&amp;").replace(
        "<", "&lt;"
    )


def workflow_message(text: str) -> str:
    """The message of a GitHub workflow command (`::error::message`)."""
    return terminal_text(text, lines=True).replace("%", "%25").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """A property of a GitHub workflow command (`::error title=property::`)."""
    return workflow_message(text).replace(":", "%3A").replace(",", "%2C")
