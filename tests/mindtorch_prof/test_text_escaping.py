"""Escaping: no hidden character reaches an output, texts stay different, and nothing in them is obeyed."""

from __future__ import annotations

import html
import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.text_escaping import (
    csv_cell,
    folded_frame,
    html_text,
    json_output,
    markdown_cell,
    terminal_text,
    workflow_message,
    workflow_property,
)

HIDDEN = [
    c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}
]
SINKS = [terminal_text, csv_cell, folded_frame, html_text, markdown_cell, workflow_message, workflow_property]
TEXTS = st.text(st.sampled_from("ax19\\uU:=+'#[ \n\x1b\u202e\u200b\ud800\U000e0001é"), max_size=12)


def decoded(text: str) -> str:
    """What `terminal_text` escaped."""
    escape = re.compile(r"\\(?:(\\)|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
    return escape.sub(lambda m: m[1] or chr(int(m[2] or m[3] or m[4], 16)), text)


@pytest.mark.parametrize("sink", SINKS)
def test_no_hidden_character_of_unicode_reaches_an_output(sink) -> None:  # type: ignore[no-untyped-def]
    assert len(HIDDEN) > 200
    assert [
        f"{ord(c):x}" for c in HIDDEN if c in sink(f"a{c}b") and not (c == "\n" and sink is html_text)
    ] == []
    together = sink("".join(HIDDEN) + "x")
    assert [f"{ord(c):x}" for c in HIDDEN if c in together.replace("\n", "")] == []


def test_json_spells_hidden_characters_otherwise_and_means_the_same() -> None:
    for char in HIDDEN:
        text = json_output(json.dumps({"name": f"a{char}##[x]"}, ensure_ascii=False))
        assert char not in text
        assert "##[" not in text
        assert json.loads(text) == {"name": f"a{char}##[x]"}


@given(TEXTS)
def test_an_escaped_text_can_be_read_back(text: str) -> None:
    assert decoded(terminal_text(text)) == text


@given(TEXTS, TEXTS)
def test_different_texts_stay_different(one: str, two: str) -> None:
    for sink in (terminal_text, csv_cell, html_text, markdown_cell, workflow_message):
        assert (sink(one) == sink(two)) == (one == two)


def test_paths_of_windows_and_plain_names_stay_as_they_are() -> None:
    for name in (r"C:\users\a.py(3): f", "aten::add", "void k<float>(int)", "naïve 名前", "nn.Module: Net_0"):
        assert terminal_text(name) == name


@pytest.mark.parametrize(
    "name", ["::error::x", "  ::set-output name=a::b", "a\n::error::x", "x ##[add-mask]y"]
)
def test_no_line_is_a_command_of_github_actions(name: str) -> None:
    for sink in (*SINKS, lambda text: terminal_text(text, lines=True)):
        for line in sink(name).splitlines():
            assert not line.lstrip().startswith("::")
            assert "##[" not in line


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "'", "＝"])
def test_spreadsheets_take_no_cell_for_a_formula(first: str) -> None:
    assert csv_cell(f"{first}1+1").startswith("'")


def test_html_and_markdown_show_names_as_text() -> None:
    assert html_text('<b>"x"&\'') == html.escape('<b>"x"&\'')
    assert markdown_cell("  a|b<i>[x](y)`*&") == "\u00a0\u00a0a\\|b&lt;i>\\[x](y)\\`\\*&amp;"


def test_separators_of_folded_stacks_become_underscores_as_in_torch() -> None:
    assert folded_frame("a.py(3): f;g\th\n") == "a.py(3):_f_g_h_"


def test_a_property_of_a_workflow_command_ends_where_it_should() -> None:
    assert workflow_property("a::b,c\nd%") == "a%3A%3Ab%2Cc%0Ad%25"
