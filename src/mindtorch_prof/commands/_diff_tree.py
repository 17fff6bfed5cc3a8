"""`diff --by tree`: two loaded traces in, where their trees part printed out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..analysis.diff import Change
from ..analysis.diff_tree import Part, Place, TreeDiff, as_dict, diff_tree
from ..analysis.recording import Recording
from ..kernel_names import short_names
from ..number_formats import counted, format_time
from ._common import CommandError, print_json, print_rows, say

_PARTS = 3  # names that are shown of each side
_WIDEST = 42  # letters of a name
_CSV = (
    "name", "status", "count_a", "count_b", "host_a_us", "host_b_us", "host_delta_us",
    "device_a_us", "device_b_us", "device_delta_us", "only_a", "only_b", "paths", "path",
)  # fmt: skip


def run(a: Recording, b: Recording, options: argparse.Namespace) -> int:
    """Print the places; the exit code is 1 if the trees differ and `--fail-on-change` is given."""
    if options.per == "call":
        raise CommandError("trees are compared per step or in total; --per call works with --by op")
    try:
        comparison = diff_tree(a, b, per=options.per)
    except ValueError as error:
        raise CommandError(str(error)) from error
    places = [p for p in comparison.places if options.all or _matters(comparison, p, options)]
    shown = places[: options.top or None]
    if options.format == "json":
        print_json({**_about(comparison, options), "rows": [as_dict(place) for place in shown]})
    elif options.format == "csv":
        print_rows([_flat(place) for place in shown], "csv", keys=_CSV)
    else:
        _print_text(comparison, places, shown, options)
    return 1 if options.fail_on_change and comparison.differences else 0


def _matters(comparison: TreeDiff, place: Place, options: argparse.Namespace) -> bool:
    """Whether a place differs enough to be shown."""
    changes = (place.host, place.device)
    if place.differs and place.status != "kernels":
        return bool(max(max(change.a, change.b) for change in changes) >= options.min_us)
    change = comparison.change(place)
    large = max(abs(change.a), abs(change.b))
    return bool(abs(change.delta) >= options.min_us and abs(change.delta) > options.threshold * large)


def _about(comparison: TreeDiff, options: argparse.Namespace) -> dict[str, object]:
    total = {"host_us": comparison.host, "device_us": comparison.device}
    return {
        "a": options.a,
        "b": options.b,
        "by": ["tree"],
        "per": comparison.per,
        "steps": list(comparison.steps),
        "differences": len(comparison.differences),
        "ranked_by": "device" if comparison.by_device else "host",
        "total": {name: {"a": c.a, "b": c.b, "delta": c.delta} for name, c in total.items()},
        "notes": list(comparison.notes),
    }


def _flat(place: Place) -> dict[str, object]:
    values = as_dict(place)
    for side, parts in (("only_a", place.only_a), ("only_b", place.only_b)):
        values[side] = [part.name for part in parts]
    return values


def _print_text(
    comparison: TreeDiff, places: Sequence[Place], shown: Sequence[Place], options: argparse.Namespace
) -> None:
    say(f"A: {options.a}")
    say(f"B: {options.b}")
    steps = comparison.steps
    say(
        f"per step: {counted(steps[0], 'step')} in A, {steps[1]} in B"
        if comparison.per == "step"
        else "per run"
    )
    totals = [("device", comparison.device), ("host", comparison.host)]
    parts = [f"{title} {_both(change)}" for title, change in totals if change.a or change.b]
    say("total: " + ", ".join(parts) if parts else "total: nothing was recorded")
    if not shown:
        say("\nno differences")
    for place in shown:
        print()
        _print_place(comparison, place)
    left = comparison.change_left(shown)
    if len(shown) < len(comparison.places):
        more = f", {len(places) - len(shown):,} of them beyond --top" if len(places) > len(shown) else ""
        count = len(comparison.places) - len(shown)
        say(f"\n{count:,} further places{more}: {_signed(left)}; --all --top 0 shows all")
    for i, note in enumerate(comparison.notes):
        say(("\n" if not i else "") + f"note: {note}")


def _print_place(comparison: TreeDiff, place: Place) -> None:
    change = comparison.change(place)
    where = f" ({place.paths:,} places)" if place.paths > 1 else ""
    say(f"{_signed(change.delta):>11}  {place.status:<8}  {_cut(place.name)}{where}")
    times = [("device", place.device), ("host", place.host)]
    texts = [f"{title} {_both(each)}" for title, each in times if each.a or each.b]
    say(" " * 13 + ", ".join(texts))
    both = [part.name for parts in (place.only_a, place.only_b) for part in parts[:_PARTS]]
    names = dict(
        zip(both, short_names(both, _WIDEST))
    )  # of both sides at once: different kernels look different
    for side, parts in (("A", place.only_a), ("B", place.only_b)):
        for i, part in enumerate(parts[:_PARTS]):
            say(f"{'' if i else side + ' only:':>20} {names[part.name]}  {_part(part, comparison)}")
        if len(parts) > _PARTS:
            say(f"{'':>20} and {len(parts) - _PARTS:,} more")
    if len(place.path) > 1:
        say(" " * 13 + "in " + " > ".join(_cut(name, 24) for name in place.path[-4:-1]))


def _part(part: Part, comparison: TreeDiff) -> str:
    time = part.device_us if comparison.by_device and (part.device_us or not part.host_us) else part.host_us
    return f"{part.count:,.6g} x, {format_time(time)}"


def _both(change: Change) -> str:
    relative = f" ({change.delta / change.a:+.1%})" if change.a else ""
    return f"{format_time(change.a)} -> {format_time(change.b)}{relative}"


def _signed(us: float) -> str:
    return ("+" if us >= 0 else "-") + format_time(abs(us))


def _cut(text: str, most: int = _WIDEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
