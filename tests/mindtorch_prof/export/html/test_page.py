"""The report's page: its policy allows one script; names reach it only as data."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from html_report import HOSTILE_NAMES, blocks
from trace_builder import make_trace

from mindtorch_prof.export.html import export_html
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import ANNOTATION, Health


def test_the_policy_allows_the_one_script_and_the_one_style_alone(report_page: Path) -> None:
    text = report_page.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]  # type: ignore[index]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (code,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert not re.search(r"<(link|img|iframe|script src|object|embed|base)\b", text.split("<script>")[0])


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_reaches_the_page_as_anything_but_data(name: str, tmp_path: Path) -> None:
    trace = make_trace(
        (name, 0, 100, 1, ANNOTATION), ("aten::add", 10, 20, 1, ANNOTATION), health=Health(notes=(name,))
    )
    export_html(Results(trace), tmp_path / "r.html", Results(trace), labels=(name, name))
    content = (tmp_path / "r.html").read_bytes()
    assert name.encode("utf-8", "surrogatepass")[:40] not in content
    values, columns = blocks(tmp_path / "r.html")["summary-0"]
    names = values["groups"]["name"]["names"]
    assert name in [names[i] for i in columns["name.name"]]
    assert values["label"] == name
    ends = len(re.findall(rb"</script>", content))
    assert ends == len(re.findall(rb"<script[ >]", content))
