"""The registry of columns: each is explained, and each alias leads to it."""

from __future__ import annotations

from mindtorch_prof.analysis.columns import COLUMNS, column_key, legend


def test_every_column_is_explained_in_sentences_and_found_by_its_names() -> None:
    for key, fact in COLUMNS.items():
        assert fact.meaning.endswith(".") or "." in fact.meaning, key
        assert fact.unit in {"us", "bytes", "count", "flops", "share", "number", "text"}, key
        for name in (key, *fact.aliases):
            assert column_key(name) == key
    assert column_key("Self CUDA %") == "self_device_share"
    assert column_key("CPU time avg") == "cpu_time"
    assert column_key("# of Calls") == "count"
    assert column_key("self_xpu_time_total") == "self_device_time_total"


def test_a_legend_has_titles_on_the_left_and_definitions_that_fit_beside_them() -> None:
    lines = legend([("p95", "p95"), ("stream", "Stream"), ("unknown", "?")], 50)
    assert lines == [
        "p95     95th percentile of the durations of the",
        "        row's events. Of an op on the CPU, of a",
        "        kernel or copy on the device; without",
        "        synthetic calls. With few events it is",
        "        close to the maximum.",
        "Stream  Stream of the device on which the event",
        "        ran.",
    ]
    assert legend([], 80) == []
