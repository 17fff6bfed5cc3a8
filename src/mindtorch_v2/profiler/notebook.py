"""Lists of events for notebooks: an EventList in, escaped HTML out."""

from __future__ import annotations

import html
from typing import Any


def html_table(events: Any) -> str:
    """The text table in a page, scrollable; names reach it only as escaped text."""
    text = events.table() or "No events were recorded."
    return f'<pre style="overflow-x: auto; white-space: pre">{html.escape(text)}</pre>'
