"""Results: what a trace is asked for, from its columns."""

from __future__ import annotations

import kineto_documents as documents
from average_rows import row
from kineto_documents import load_document


def test_memory_of_devices_has_columns_of_its_own() -> None:
    document = documents.gpu()
    args = {"Total Allocated": 512, "Bytes": 512, "Device Id": 0, "Device Type": 1, "Addr": 5}
    instant = {
        "ph": "i",
        "s": "t",
        "name": "[memory]",
        "pid": documents.PID,
        "tid": documents.PID,
        "ts": 1015.0,
        "args": args,
    }
    document["traceEvents"] += [instant, {**instant, "ts": 2000.0}]
    loaded = load_document(document)
    assert row(loaded, "aten::addmm").self_device_memory_usage == 512
    assert row(loaded, "aten::linear").device_memory_usage == 512
    assert row(loaded, "aten::addmm").cpu_memory_usage == 0
    assert row(loaded, "[memory]").device_memory_usage == 512
    assert "Self CUDA Mem" in loaded.key_averages().table()
