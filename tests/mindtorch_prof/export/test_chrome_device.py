"""Device rows of Chrome traces: written and read again, they are the same."""

from __future__ import annotations

from pathlib import Path

import kineto_documents as documents
import pytest
from average_rows import rows
from kineto_documents import load_document

from mindtorch_prof import load


@pytest.mark.parametrize("style", ["cuda", "2021", "rocm", "xpu"])
def test_a_loaded_trace_of_a_device_is_the_same_after_it_was_written_again(
    style: str, tmp_path: Path
) -> None:
    first = load_document(documents.gpu(style))
    first.export_chrome_trace(tmp_path / "again.json")
    again = load(tmp_path / "again.json")
    assert rows(again.key_averages()) == rows(first.key_averages())
    assert [d.to_dict() for d in again.device_breakdown()] == [d.to_dict() for d in first.device_breakdown()]
    assert [dict(d) for d in again.trace.device.extra_table] == [
        dict(d) for d in first.trace.device.extra_table
    ]
