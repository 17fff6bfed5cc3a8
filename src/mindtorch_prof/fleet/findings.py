"""Findings: a job and what was measured of it in; what slows it down, besides one straggler, out: one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..analysis.intervals import union_lengths
from ..arrays import FloatArray, IntArray
from ..communication import POINT_TO_POINT
from ..number_formats import format_time
from .clocks import Clocks
from .collectives import Collectives, Waits
from .evidence import MIN_STEPS, SUPERIORITY, superiority
from .job import Job
from .verdict import DEVICE, EXPLAINED, Tables, Verdict, find_straggler, no_verdict

_BAD_STEP = 1.5  # times the median step
_SPREADS = 6.0  # above the median, in robust standard deviations
_SLOW_LINK = 1.5  # times the transfer of the others
_FEW_TRANSFERS, _CLEARLY_SLOW = 4, 2.0
_UNBALANCED = 1.25  # largest message over the mean
_MANY = 0.3  # share of the step that is worth a sentence where all ranks are alike
_BUBBLE = 0.1
_SPLITS = 12


@dataclass(frozen=True)
class Finding:
    """One thing that slows the job down."""

    kind: str
    sentence: str
    ranks: tuple[int, ...] = ()  # places
    steps: tuple[int, ...] = ()  # numbers


@dataclass(frozen=True)
class SlowLink:
    """Ranks between which the same message takes longer than between others."""

    ranks: tuple[int, ...]  # places
    collective: str  # a type
    ratio: float  # of its transfers to those of the others
    extra_us: float  # per step


def findings(
    job: Job,
    table: Tables,
    collectives: Collectives,
    arrivals: Waits,
    clocks: Clocks,
    verdict: Verdict,
    links: tuple[SlowLink, ...],
    threshold: float,
) -> tuple[Finding, ...]:
    """All findings, the most telling first."""
    at_different_times = tuple(_at_different_times(job, table, clocks, verdict, threshold))
    parts = [
        at_different_times,
        _bad_steps(job, table, collectives, arrivals),
        _slow_link_findings(job, collectives, links, verdict),
        _unbalanced(job, collectives),
        _bubbles(job, collectives, arrivals),
        () if at_different_times else _all_alike(job, table, verdict),
    ]
    return tuple(finding for part in parts for finding in part)


def _at_different_times(
    job: Job, table: Tables, clocks: Clocks, verdict: Verdict, threshold: float
) -> Iterator[Finding]:
    """One rank first, another one later."""
    n_steps = len(job.steps)
    if verdict.place is not None or n_steps < 2 * MIN_STEPS or len(table.places) < 2:
        return
    cuts = np.unique(np.linspace(MIN_STEPS, n_steps - MIN_STEPS, _SPLITS).round().astype(int))
    # the rank that each step points to
    if table.unit_is_step and table.device.any():
        slowest = table.wait_ns.argmin(axis=0)
    else:
        slowest = table.host.sum(axis=2).argmax(axis=0)
    best: tuple[int, float, int, int, int] | None = None
    for cut in cuts.tolist():
        early, _ = find_straggler(table.steps(np.arange(cut)), clocks, threshold)
        late, _ = find_straggler(table.steps(np.arange(cut, n_steps)), clocks, threshold)
        if early is not None and late is not None and early.place != late.place:
            fitting = int((slowest[:cut] == early.place).sum() + (slowest[cut:] == late.place).sum())
            candidate = (fitting, early.excess + late.excess, -cut, early.place, late.place)
            best = candidate if best is None else max(best, candidate)
    if best is None:
        return
    cut, places = -best[2], [int(table.places[place]) for place in best[3:]]
    first, second = (job.ranks[place].label for place in places)
    steps = job.steps
    yield Finding(
        "stragglers_at_different_times",
        f"two stragglers at different times: {first} in steps {steps[0]} to {steps[cut - 1]},"
        f" {second} in steps {steps[cut]} to {steps[-1]}",
        tuple(places),
        (steps[cut],),
    )


def _bad_steps(job: Job, table: Tables, collectives: Collectives, arrivals: Waits) -> Iterator[Finding]:
    """A few steps that are much longer than the others."""
    if len(job.steps) < MIN_STEPS + 1 or not table.step_ns.size:
        return
    step = np.median(table.step_ns, axis=0)
    middle = float(np.median(step))
    spread = 1.4826 * float(np.median(np.abs(step - middle)))
    bad = np.flatnonzero((step > _BAD_STEP * middle) & (step > middle + _SPREADS * spread))
    if not len(bad) or len(bad) > max(1, len(step) // 10):
        return
    for place in bad[np.argsort(-step[bad], kind="stable")].tolist():
        number = job.steps[place]
        here = np.flatnonzero(collectives.step == number) if len(collectives) else np.empty(0, np.int64)
        sentence = f"step {number} took {format_time(step[place] / 1e3)}, {step[place] / middle:.1f} times the median step"
        ranks: tuple[int, ...] = ()
        if len(here):
            worst = int(here[np.argmax(arrivals.skew_ns[here])])
            last = int(arrivals.last[worst])
            ranks = (last,)
            sentence += (
                f"; in it {job.ranks[last].label} came {format_time(arrivals.skew_ns[worst] / 1e3)}"
                f" after the first rank to {collectives.types[int(collectives.type[worst])]}"
            )
        yield Finding("bad_step", sentence, ranks, (number,))


def slow_links(job: Job, collectives: Collectives) -> tuple[SlowLink, ...]:
    """Groups of ranks whose transfers are outliers among those of equal type, message and number of ranks; the slowest first."""
    if not len(collectives):
        return ()
    members = _members(collectives)
    keys = np.stack([collectives.type, collectives.message, collectives.participants], axis=1)
    _, kind = np.unique(keys, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    transfer = collectives.transfer_ns.astype(float)
    slow: dict[
        int, list[tuple[float, float]]
    ] = {}  # by set of ranks: ratios, and times beyond the typical one
    for each in np.unique(kind[collectives.message >= 0]).tolist():
        rows = np.flatnonzero(kind == each)
        sets = np.unique(members[rows])
        if len(sets) < 3:  # with two, one cannot say which of them is slow
            continue
        medians = np.array([np.median(transfer[rows[members[rows] == one]]) for one in sets.tolist()])
        for place, one in enumerate(sets.tolist()):
            own, others = transfer[rows[members[rows] == one]], transfer[rows[members[rows] != one]]
            typical = float(np.median(np.delete(medians, place)))
            ratio = float(medians[place] / max(typical, 1.0))
            clear = superiority(own, others) >= SUPERIORITY
            if clear and ratio >= (_SLOW_LINK if len(own) >= _FEW_TRANSFERS else _CLEARLY_SLOW):
                slow.setdefault(one, []).append((ratio, float((own - typical).sum())))
    links = []
    n_steps = max(len(job.steps), 1)
    for one, outliers in sorted(slow.items(), key=lambda item: (-max(item[1])[0], item[0])):
        row = int(np.flatnonzero(members == one)[0])
        ratio, extra = float(np.median([ratio for ratio, _ in outliers])), sum(extra for _, extra in outliers)
        kind_name = collectives.types[int(collectives.type[row])]
        links.append(
            SlowLink(tuple(_ranks_of(collectives, row).tolist()), kind_name, ratio, extra / n_steps / 1e3)
        )
    return tuple(links)


def without_slow_links(decision: Verdict, links: tuple[SlowLink, ...]) -> Verdict:
    """The verdict, but nobody where the time that a slow link takes explains why its ranks come late."""
    if decision.place is None or decision.where is not None:
        return decision
    extra = sum(link.extra_us for link in links if decision.place in link.ranks)
    if extra < EXPLAINED * decision.late_us:
        return decision
    return no_verdict(
        f"no rank holds the others up by itself: a slow link does, by {format_time(decision.late_us)} per step"
        f" ({decision.share:.0%} of it)"
    )


def _slow_link_findings(
    job: Job, collectives: Collectives, links: tuple[SlowLink, ...], verdict: Verdict
) -> Iterator[Finding]:
    for link in links:
        if verdict.where == DEVICE and verdict.place in link.ranks:
            continue  # what slows the device's kernels slows its transfers
        labels = ", ".join(_label(job, place) for place in link.ranks[:8]) + (
            " ..." if len(link.ranks) > 8 else ""
        )
        hosts = sorted({job.ranks[place].host for place in link.ranks} - {""})
        between = f" ({' and '.join(hosts)})" if 0 < len(hosts) <= 4 else ""
        yield Finding(
            "slow_link",
            f"slow link between {labels}{between}: {link.collective} takes"
            f" {link.ratio:.1f} times as long as the same between other ranks",
            link.ranks,
        )


def _label(job: Job, place: int) -> str:
    return job.ranks[place].label


def _ranks_of(collectives: Collectives, row: int) -> IntArray:
    first = int(collectives.first[row])
    return collectives.rank[first : first + int(collectives.participants[row])]


def _members(collectives: Collectives) -> IntArray:
    """By collective a number of the set of ranks that take part."""
    # sums of two unrelated functions of ranks tell sets apart
    values = collectives.rank.astype(np.int64) + 1
    mixed = (values * 2_654_435_761) % 2_147_483_647
    sums = np.stack(
        [
            np.add.reduceat(values, collectives.first),
            np.add.reduceat(mixed * mixed % 2_147_483_647, collectives.first),
        ],
        axis=1,
    )
    _, number = np.unique(sums, axis=0, return_inverse=True)
    return number.reshape(-1)


def _unbalanced(job: Job, collectives: Collectives) -> Iterator[Finding]:
    """All-to-alls in which one rank receives much more than the others."""
    if "all_to_all" not in collectives.types or not len(collectives):
        return
    rows = np.flatnonzero(
        (collectives.type == collectives.types.index("all_to_all")) & (collectives.participants > 1)
    )
    for way, values in (("receives", collectives.received), ("sends", collectives.sent)):
        known = np.minimum.reduceat(values, collectives.first) >= 0
        chosen = rows[known[rows]]
        if not len(chosen):
            continue
        total = np.add.reduceat(values, collectives.first)[chosen]
        largest = np.maximum.reduceat(values, collectives.first)[chosen]
        ratio = largest * collectives.participants[chosen] / np.maximum(total, 1)
        weight = float(np.median(ratio[total > 0])) if (total > 0).any() else 0.0
        if weight < _UNBALANCED:
            continue
        order = np.lexsort((collectives.rank, -values, collectives.collective))
        most = collectives.rank[order[collectives.first]][chosen]
        place = int(np.bincount(most).argmax())
        yield Finding(
            "unbalanced_all_to_all",
            f"unbalanced all_to_all: {job.ranks[place].label} {way} most; the largest part is {weight:.2f} times the mean",
            (place,),
        )
        return


def _bubbles(job: Job, collectives: Collectives, arrivals: Waits) -> Iterator[Finding]:
    """Ranks of a pipeline that wait for their neighbours."""
    if not len(collectives) or not job.step_ns.size:
        return
    is_message = np.array([name in POINT_TO_POINT for name in collectives.types])[collectives.type]
    rows = np.flatnonzero(is_message[collectives.collective])
    if not len(rows):
        return
    begin = arrivals.arrival_ns[rows]
    waits = union_lengths(collectives.rank[rows], begin, begin + arrivals.wait_ns[rows], len(job))
    total = job.step_ns.sum(axis=1).astype(float)
    share = waits[[rank.place for rank in job.with_steps]] / np.maximum(total, 1.0)
    typical = float(np.median(share))
    if typical >= _BUBBLE:
        place = job.with_steps[int(np.argmax(share))].place
        yield Finding(
            "pipeline_bubble",
            f"pipeline bubble: the median rank waits {typical:.0%} of its steps for messages of its neighbours,"
            f" {job.ranks[place].label} {float(share.max()):.0%}",
            (place,),
        )


def exposed_share(job: Job) -> FloatArray:
    """By rank with steps the share of its steps in which communication is exposed; on a host: in which it waits for a collective."""
    if not job.step_ns.size:
        return np.zeros(0)
    name = "exposed_communication_ns"
    values = [rank.device_column(name) if rank.has_device else rank.waiting_ns for rank in job.with_steps]
    return np.asarray(job.by_step(values).sum(axis=1) / np.maximum(job.step_ns.sum(axis=1), 1))


def skew_share(job: Job, collectives: Collectives, arrivals: Waits) -> float:
    """The largest skew within a step as a share of the step: the median over steps."""
    if not len(collectives) or not job.step_ns.size:
        return 0.0
    largest: dict[int, int] = {}
    for number, skew in zip(collectives.step.tolist(), arrivals.skew_ns.tolist()):
        key = number if job.steps != (-1,) else -1
        largest[key] = max(largest.get(key, 0), skew)
    step = np.median(job.step_ns, axis=0)
    shares = [
        largest[number] / step[place]
        for place, number in enumerate(job.steps)
        if number in largest and step[place]
    ]
    return float(np.median(shares)) if shares else 0.0


def _all_alike(job: Job, table: Tables, verdict: Verdict) -> Iterator[Finding]:
    """No straggler, and yet slow: all ranks communicate, or idle, for much of the step."""
    if verdict.place is not None or len(job) < 2 or not job.step_ns.size:
        return
    total = np.maximum(job.step_ns.sum(axis=1), 1)
    exposed, waits = exposed_share(job), table.wait_ns.sum(axis=1) / total
    # a rank that comes early waits for the last one: that is skew, not transfer
    transfer = float(np.median(np.maximum(exposed - waits, 0.0)))
    if transfer >= _MANY:
        yield Finding(
            "all_slow_together",
            f"all ranks together: communication is exposed for {float(np.median(exposed)):.0%} of the step,"
            f" {transfer:.0%} without waiting for the last rank: the transfers themselves take long",
        )
    if job.has_device:
        idle = job.by_step([rank.device_column("idle_ns") for rank in job.with_steps]).sum(axis=1)
        share = float(np.median(idle / total))
        if share >= _MANY:
            yield Finding(
                "all_slow_together",
                f"all ranks together: the devices are idle for {share:.0%} of the step: the hosts do not keep up",
            )
