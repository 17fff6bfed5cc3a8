"""What a recording lacks, at the top of trace files: a Health in, a JSON object out; and back, from files that may hold anything.

Without it, a file of a recording that dropped events, was killed or was read from a damaged file would pass for a complete one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .json_types import JSONObject, JSONValue, whole_number
from .text_escaping import terminal_text
from .trace import Health

KEY = "recording_health"  # at the top of a file; absent: nothing is known to be missing
_COUNTS = ("dropped", "repaired")  # spans without an end are marked in the file, and counted when it is read
_TEXTS = ("notes", "lacks", "remarks")
_MOST_TEXTS = 100  # of each kind, and characters of one: a file may hold any number of them
_LONGEST = 1_000


def health_entry(health: Health) -> JSONObject:
    """The key and what is to be written under it; nothing for a complete recording."""
    counts: dict[str, JSONValue] = {name: getattr(health, name) for name in _COUNTS if getattr(health, name)}
    texts: dict[str, JSONValue] = {name: [*getattr(health, name)] for name in _TEXTS if getattr(health, name)}
    return {KEY: {**counts, **texts}} if counts or texts else {}


def health_at(top: Mapping[str, JSONValue]) -> Health:
    """The health that the top of a file tells; values of other types than these are ignored. Texts are made safe to print."""
    entry = top.get(KEY)
    if not isinstance(entry, dict):
        return Health()
    dropped, repaired = (max(whole_number(entry.get(name)) or 0, 0) for name in _COUNTS)
    notes, lacks, remarks = (_texts(entry.get(name)) for name in _TEXTS)
    return Health(dropped, 0, repaired, notes, lacks, remarks)


def _texts(value: JSONValue) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else []
    return tuple(terminal_text(text[:_LONGEST]) for text in texts[:_MOST_TEXTS] if isinstance(text, str))


def with_recorded(found: Health, recorded: Health) -> Health:
    """What was found while a file was read, with what the file says of its recording. What the recording dropped is not in the file and
    adds up; what was repaired before (events that overlap) may be found again, and counts once."""
    notes, lacks, remarks = (
        tuple(dict.fromkeys((*getattr(recorded, name), *getattr(found, name)))) for name in _TEXTS
    )
    dropped, repaired = recorded.dropped + found.dropped, max(recorded.repaired, found.repaired)
    return Health(dropped, found.unfinished, repaired, notes, lacks, remarks)


def health_of_parts(parts: Iterable[tuple[str, Health]]) -> Health:
    """The health of a file that is made of one file or of several: their labels and healths in; each text begins with the label of its
    file, whose bytes and events it speaks of."""
    labelled = list(parts)
    notes, lacks, remarks = (
        tuple(f"{label}: {text}" for label, health in labelled for text in getattr(health, name))
        for name in _TEXTS
    )
    dropped = sum(health.dropped for _, health in labelled)
    repaired = sum(health.repaired for _, health in labelled)
    return Health(dropped, 0, repaired, notes, lacks, remarks)
