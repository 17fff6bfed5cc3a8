"""Metadata of events: what else a file says of them, with names and types."""

from __future__ import annotations

import kineto_documents as documents
from kineto_documents import load_document

from mindtorch_prof.torch_api.event_metadata import event_metadata


def test_what_else_a_file_says_of_an_event_is_there() -> None:
    document = documents.gpu()
    document["traceEvents"][1]["args"] |= {"Collective name": "allreduce", "Group size": 8, "Mine": [1, 2]}
    events = load_document(document).events()
    gemm = next(e for e in events if e.name == "gemm")
    assert (gemm.event_metadata.grid, gemm.event_metadata.stream) == ([8, 1, 1], 7)
    linear = next(e for e in events if e.name == "aten::linear")
    assert linear.event_metadata.collective_name == "allreduce"
    assert next(e for e in events if e.name == "aten::addmm").event_metadata is None


def test_texts_become_values_of_the_fields_types() -> None:
    metadata = event_metadata(
        {
            "grid": "[8, 1, 1]",
            "blocks per SM": "1.5",
            "Collective name": '"allreduce"',
            "Is asynchronized op": "true",
            "Seq": "12",
            "of another program": "?",
        }
    )
    assert metadata is not None
    assert (metadata.grid, metadata.blocks_per_sm, metadata.collective_name) == ([8, 1, 1], 1.5, "allreduce")
    assert (metadata.is_async, metadata.seq, metadata.stream) == (True, 12, None)


def test_an_event_of_which_nothing_known_is_said_has_no_metadata() -> None:
    assert event_metadata(None) is None
    assert event_metadata({"of another program": "?"}) is None
