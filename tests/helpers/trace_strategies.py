"""Random traces for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from trace_builder import make_trace

from mindtorch_prof.trace import Trace

# a span: (time before it, its children, time after them, its name)
_SPANS = st.recursive(
    st.tuples(st.integers(0, 3), st.just([]), st.integers(0, 5), st.sampled_from("abc")),
    lambda inner: st.tuples(
        st.integers(0, 3), st.lists(inner, max_size=4), st.integers(0, 5), st.sampled_from("abc")
    ),
    max_leaves=25,
)


@st.composite
def nested_traces(draw: st.DrawFn) -> Trace:
    """Up to three threads of spans that follow or contain each other; some touch, some have no length."""
    rows: list[tuple[Any, ...]] = []
    for thread, spans in enumerate(draw(st.lists(st.lists(_SPANS, max_size=4), min_size=1, max_size=3)), 1):
        _lay_out(spans, 0, thread, rows)
    return make_trace(*rows)


def _lay_out(spans: list[tuple[Any, ...]], now: int, thread: int, rows: list[tuple[Any, ...]]) -> int:
    """Appends rows of spans one after the other, parents first; gives the time at which the last one ends."""
    for before, children, after, name in spans:
        start, place = now + before, len(rows)
        rows.append(())
        now = _lay_out(children, start, thread, rows) + after
        rows[place] = (name, start, now, thread)
    return now
