"""The report of a job: a Sketch in; every figure of `fleet` out, as one object and as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..analysis.intervals import union_lengths
from ..arrays import FloatArray, IntArray
from .clocks import Clocks, clocks
from .collectives import Collectives, Waits, bus_factor, match, waits
from .findings import Finding, exposed_share, findings, skew_share, slow_links, without_slow_links
from .histograms import Durations, merged
from .job import Job, job_of
from .same_job import unrelated_ranks
from .sketch import Missing, Sketch
from .verdict import THRESHOLD, Tables, Verdict, no_verdict, tables, verdict
from .what_if import WhatIf, what_if

Scalar = int | float | str | None
Row = dict[str, Scalar]


@dataclass(frozen=True)
class FleetReport:
    """What is known of a job. Equal sketches give equal reports."""

    sketch: Sketch
    job: Job
    collectives: Collectives
    clocks: Clocks
    waits: Waits
    tables: Tables
    verdict: Verdict
    findings: tuple[Finding, ...]
    what_if: WhatIf | None
    threshold: float

    @property
    def missing(self) -> tuple[Missing, ...]:
        return self.job.missing

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that all ranks have; empty: whole traces are compared, or there are none in common."""
        return () if self.job.steps == (-1,) else self.job.steps

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before believing the figures."""
        notes = [*self.job.notes, *self.collectives.notes]
        if len(self.job) > 1 and not len(self.collectives):
            notes.append("no collectives that at least two ranks have: ranks are compared by their own times")
        if self.job.steps == (-1,):
            notes.append("no steps (ProfilerStep#N): whole traces are compared")
        elif len(self.job) > 1 and not self.job.steps:
            notes.append("the ranks have no steps in common")
        if self.clocks.known:
            worst = float(np.nanmax(self.clocks.residual_ns))
            typical = float(np.median(self.waits.skew_ns)) if len(self.collectives) else 0.0
            if worst > max(typical, 1.0):
                notes.append(
                    f"clocks: ends of collectives differ by {worst / 1e3:,.0f} us after correction, more than the typical skew:"
                    " do not trust skew and waits"
                )
        damaged = [rank.label for rank in self.job.ranks if any(each.health for each in rank.sketches)]
        if damaged:
            more = "" if len(damaged) <= 5 else f" and {len(damaged) - 5} more"
            notes.append(f"files with gaps or repairs: {', '.join(damaged[:5])}{more}")
        return tuple(notes)

    @cached_property
    def skew_share(self) -> float:
        return skew_share(self.job, self.collectives, self.waits)

    @cached_property
    def exposed_share(self) -> float:
        """Of the median rank."""
        shares = exposed_share(self.job)
        return float(np.median(shares)) if len(shares) else 0.0

    @cached_property
    def wait_ns(self) -> IntArray:
        """By rank: time until the last rank came to collectives, waits at the same time counted once."""
        begin = self.waits.arrival_ns
        return union_lengths(self.collectives.rank, begin, begin + self.waits.wait_ns, len(self.job))

    @cached_property
    def last_in(self) -> IntArray:
        """By rank: how many collectives it came to last."""
        return (
            np.bincount(self.waits.last, minlength=len(self.job))
            if len(self.collectives)
            else np.zeros(len(self.job), np.int64)
        )

    @cached_property
    def ops(self) -> Durations:
        """Ops of all ranks."""
        return merged(each.ops for rank in self.job.ranks for each in rank.sketches)

    @cached_property
    def kernels(self) -> Durations:
        """Kernels of all ranks."""
        return merged(each.kernels for rank in self.job.ranks for each in rank.sketches)

    # ------------------------------------------------------------------------------------------------ as rows

    def rank_rows(self) -> list[Row]:
        """One row per rank; times are medians over the common steps in microseconds, but for `wait_us`, which is the sum."""
        rows = []
        in_steps = {rank.place: place for place, rank in enumerate(self.job.with_steps)}
        took_part = np.bincount(self.collectives.rank, minlength=len(self.job))
        names = (
            "computation_ns",
            "communication_ns",
            "exposed_communication_ns",
            "exposed_copy_ns",
            "idle_ns",
        )
        columns = {
            name: self.job.by_step([r.device_column(name) for r in self.job.with_steps]) for name in names
        }
        waiting = self.job.by_step([rank.waiting_ns for rank in self.job.with_steps])
        own = self.tables.host.sum(axis=2)
        for rank in self.job.ranks:
            place = in_steps.get(rank.place)
            first = rank.sketches[0]

            def median(values: IntArray | FloatArray, place: int | None = place) -> float:
                return float(np.median(values[place])) / 1e3 if place is not None and values.size else 0.0

            rows.append(
                {
                    "rank": rank.rank,
                    "label": rank.label,
                    "file": rank.file,
                    "host": rank.host,
                    "steps": len([number for number in rank.steps if number >= 0]),
                    "step_us": median(self.job.step_ns),
                    "wait_us": float(self.wait_ns[rank.place]) / 1e3,
                    "last_in": int(self.last_in[rank.place]),
                    "collectives": int(took_part[rank.place]),
                    "own_us": median(own),
                    "waiting_us": median(waiting),
                    "computation_us": median(columns["computation_ns"]),
                    "communication_us": median(columns["communication_ns"])
                    if rank.has_device
                    else median(waiting),
                    "exposed_us": median(columns["exposed_communication_ns"])
                    if rank.has_device
                    else median(waiting),
                    "exposed_copy_us": median(columns["exposed_copy_ns"]),
                    "idle_us": median(columns["idle_ns"]),
                    "peak_memory": max(each.peak_memory for each in rank.sketches),
                    "peak_device_memory": max(each.peak_device_memory for each in rank.sketches),
                    "events": sum(each.events for each in rank.sketches),
                    "device": first.device_name,
                    "health": "; ".join(each.health for each in rank.sketches if each.health),
                }
            )
        return rows

    def collective_rows(self) -> list[Row]:
        """One row per collective, in the order of time."""
        table = self.collectives
        factor = np.ones(len(table))
        for number, kind in enumerate(table.types):
            here = table.type == number
            factor[here] = bus_factor(kind, np.where(table.size > 0, table.size, table.participants)[here])
        with np.errstate(divide="ignore", invalid="ignore"):
            bandwidth = np.where(
                (table.message > 0) & (table.transfer_ns > 0), table.message / table.transfer_ns, np.nan
            )
        mean_wait = (
            np.add.reduceat(self.waits.wait_ns, table.first) / table.participants
            if len(table)
            else np.zeros(0)
        )
        return [
            {
                "group": table.groups[group],
                "seq": seq,
                "name": table.types[kind],
                "step": step if step >= 0 else None,
                "bytes": nbytes if nbytes >= 0 else None,
                "ranks": ranks,
                "group_size": size or None,
                "skew_us": skew / 1e3,
                "transfer_us": transfer / 1e3,
                "mean_wait_us": wait / 1e3,
                "last_rank": self.rank_name(last),
                "algorithm_gb_s": _finite(speed),
                "bus_gb_s": _finite(speed * scale),
            }
            for group, seq, kind, step, nbytes, ranks, size, skew, transfer, wait, last, speed, scale in zip(
                *(
                    each.tolist()
                    for each in (
                        table.group, table.seq, table.type, table.step, table.message, table.participants, table.size,
                        self.waits.skew_ns, table.transfer_ns, mean_wait, self.waits.last, bandwidth, factor,
                    )
                )
            )
        ]  # fmt: skip

    def type_rows(self) -> list[Row]:
        """One row per type of collective; times are medians in microseconds, but for sums."""
        rows: list[Row] = []
        details = self.collective_rows()
        for kind in dict.fromkeys(str(row["name"]) for row in details):
            chosen = [row for row in details if row["name"] == kind]

            def values(key: str, chosen: list[Row] = chosen) -> list[float]:
                return [float(value) for row in chosen if isinstance(value := row[key], (int, float))]

            rows.append(
                {
                    "name": kind,
                    "count": len(chosen),
                    "bytes": int(sum(values("bytes"))),
                    "skew_us": _median(values("skew_us")),
                    "transfer_us": _median(values("transfer_us")),
                    "total_transfer_us": sum(values("transfer_us")),
                    "mean_wait_us": _median(values("mean_wait_us")),
                    "bus_gb_s": _median(values("bus_gb_s")) if values("bus_gb_s") else None,
                }
            )
        return rows

    def clock_rows(self) -> list[Row]:
        """One row per rank: how far its clock is ahead of the first rank's. None: not known."""
        return [
            {
                "rank": self.rank_name(place),
                "offset_us": offset / 1e3 if np.isfinite(residual) else None,
                "drift_ppm": drift * 1e6 if np.isfinite(residual) else None,
                "residual_us": residual / 1e3 if np.isfinite(residual) else None,
                "ends": ends,
            }
            for place, (offset, drift, residual, ends) in enumerate(
                zip(
                    self.clocks.offset_ns.tolist(),
                    self.clocks.drift.tolist(),
                    self.clocks.residual_ns.tolist(),
                    self.clocks.ends.tolist(),
                )
            )
        ]

    def rank_name(self, place: int) -> int | str:
        """A rank's number, or its file where it has none."""
        rank = self.job.ranks[place]
        return rank.rank if rank.rank is not None else rank.label

    def op_rows(self, durations: Durations) -> list[Row]:
        """One row per name, those with the most time of their own first; times in microseconds."""
        p50, p95, p99 = (durations.quantiles(share) for share in (0.5, 0.95, 0.99))
        order = np.lexsort((np.arange(len(durations)), -durations.self_ns)).tolist()
        return [
            {
                "name": durations.names[n],
                "count": int(durations.count[n]),
                "total_us": int(durations.total_ns[n]) / 1e3,
                "self_us": int(durations.self_ns[n]) / 1e3,
                "p50_us": float(p50[n]) / 1e3,
                "p95_us": float(p95[n]) / 1e3,
                "p99_us": float(p99[n]) / 1e3,
            }
            for n in order
        ]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain data; the keys are documented in docs/commands/fleet.md."""
        v, w = self.verdict, self.what_if
        return {
            "verdict": {
                "straggler": v.straggler,
                "phase": v.phase,
                "where": v.where,
                "explained": v.explained,
                "sentence": v.sentence,
                "late_us": v.late_us,
                "share": v.share,
                "annotation": v.annotation,
                "ops": list(v.ops),
                "also": [self.rank_name(place) for place in v.also],
            },
            "findings": [
                {
                    "kind": each.kind,
                    "sentence": each.sentence,
                    "ranks": [self.rank_name(place) for place in each.ranks],
                    "steps": list(each.steps),
                }
                for each in self.findings
            ],
            "steps": list(self.steps),
            "skew_share": self.skew_share,
            "exposed_share": self.exposed_share,
            "ranks": self.rank_rows(),
            "collectives": self.collective_rows(),
            "collective_types": self.type_rows(),
            "matched_by": list(self.collectives.matched_by),
            "unmatched": self.collectives.unmatched,
            "clock": self.clock_rows(),
            "missing": [
                {"file": each.file, "rank": each.rank, "reason": each.reason} for each in self.missing
            ],
            "what_if": None
            if w is None
            else {
                "step_us": w.step_us,
                "ideal_step_us": w.ideal_step_us,
                "slowdown": w.slowdown,
                "by_rank": [{"rank": self.rank_name(place), "us": us} for place, us in w.by_rank],
                "by_op": [{"op": op, "us": us} for op, us in w.by_op],
                "by_stage": [{"stage": stage, "us": us} for stage, us in w.by_stage],
            },
            "ops": self.op_rows(self.ops)[:50],
            "kernels": self.op_rows(self.kernels)[:50],
            "notes": list(self.notes),
        }


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else 0.0


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def report_of(sketch: Sketch, threshold: float = THRESHOLD) -> FleetReport:
    """Analyse the ranks of a sketch."""
    job = job_of(sketch)
    collectives = match(job)
    clock = clocks(collectives, len(job))
    arrivals = waits(collectives, clock.correction(collectives.rank, collectives.arrival_ns))
    compared = tables(job, collectives, arrivals)
    reason = unrelated_ranks(job.ranks)
    found: tuple[Finding, ...] = ()
    if reason:
        decision = no_verdict(f"no verdict: the files are not ranks of one job: {reason}")
    else:
        links = slow_links(job, collectives)
        decision = without_slow_links(verdict(job, compared, clock, threshold), links)
        found = findings(job, compared, collectives, arrivals, clock, decision, links, threshold)
    return FleetReport(
        sketch,
        job,
        collectives,
        clock,
        arrivals,
        compared,
        decision,
        found,
        None if reason else what_if(job, compared),
        threshold,
    )
