"""Tables for notebooks: results or a list of events in, HTML out that needs neither a network nor anything of the page around it.

Averages become a small page to sort and filter, in a sandboxed frame whose policy allows its one script only. Below it stands the
plain text, for notebooks that remove frames. Names reach both only as data or as escaped text.
"""

from __future__ import annotations

import html
import io
from typing import TYPE_CHECKING

from ..text_escaping import html_text
from .enums import DeviceType
from .event_list import E, EventList
from .function_events import FunctionEventAvg

if TYPE_CHECKING:
    from .results import Results

_MOST_ROWS = 200  # of the text
_ROW_HEIGHT = 23  # pixels
_STYLE = "width: 100%; border: 1px solid rgba(128, 128, 128, .4); border-radius: 4px; height: {height}px"


def html_table(events: EventList[E]) -> str:
    """A list of averages to sort and filter; a list of events as text."""
    if events and all(isinstance(row, FunctionEventAvg) for row in events):
        return _interactive(events)
    return _text(events.table() or "No events were recorded.")


def results_table(results: Results) -> str:
    """The averages of a recording, to sort and filter."""
    return html_table(results.key_averages())


def _interactive(rows: EventList[E]) -> str:
    from ..export.html.operators import add_rows, short_kernel_names
    from ..export.html.pack import Block
    from ..export.html.page import write_page

    block = Block()
    health = "" if rows._results is None else rows._results.trace.health.line()
    averages = [row for row in rows if isinstance(row, FunctionEventAvg)]
    on_device = [str(row.key) for row in averages if row.device_type != DeviceType.CPU]
    block.values = {
        "groups": {"name": add_rows(block, "name", averages)},
        "health": health,
        "short_names": short_kernel_names(on_device),
    }
    page = io.BytesIO()
    write_page(page, {"summary-0": block}, {}, page="table.html")
    height = min(420, 70 + _ROW_HEIGHT * len(rows))
    frame = (
        f'<iframe sandbox="allow-scripts" title="Profile" style="{_STYLE.format(height=height)}" '
        f'srcdoc="{html.escape(page.getvalue().decode(), quote=True)}"></iframe>'
    )
    busy = any(row.self_device_time_total > 0 for row in averages)
    sort_by = "self_device_time_total" if busy else "self_cpu_time_total"
    text = rows.table(sort_by=sort_by, row_limit=_MOST_ROWS)
    return f"{frame}<details><summary>As text</summary>{_text(text)}</details>"


def _text(text: str) -> str:
    shown = html_text(text)
    return f'<pre style="overflow-x: auto; white-space: pre">{shown}</pre>'
