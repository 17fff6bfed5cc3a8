"""The page of a job: a FleetReport in, one self-contained HTML file out. The page itself (fleet.html) is built from web/ and draws the data."""

from __future__ import annotations

import os

import numpy as np

from ..arrays import FloatArray, IntArray
from ..export.html.pack import Block
from ..export.html.page import write_page
from ..files import open_for_export
from ..kernel_names import short_names
from .evidence import shifts
from .report import FleetReport, Row

_MOST_COLLECTIVES = 20_000
_MOST_OPS = 5  # per rank, those that take longest compared with the median rank


def export_fleet(report: FleetReport, path: str | os.PathLike[str]) -> None:
    """Write the page."""
    with open_for_export(path) as out:
        write_page(out, {"summary-0": summary_block(report)}, {}, "fleet.html")


def summary_block(report: FleetReport) -> Block:
    """All data of the page."""
    job, table = report.job, report.tables
    ranks = report.rank_rows()
    block = Block()
    for key in ("step_us", "own_us", "computation_us", "exposed_us", "exposed_copy_us", "idle_us", "wait_us"):
        block.add(f"rank_{key}", _numbers(ranks, key) * 1e3)
    for key in ("last_in", "collectives", "steps", "peak_device_memory"):
        block.add(f"rank_{key}", _numbers(ranks, key))
    for name, values in _heat(report).items():
        block.add(f"heat_{name}", np.rint(values).astype(np.int64).reshape(-1))
    for name, values in (("host", table.host), ("device", table.device)):
        medians = np.median(values, axis=1) if values.size else np.zeros((len(table.places), values.shape[2]))
        block.add(f"phases_{name}", np.rint(medians).astype(np.int64).reshape(-1))
    collectives, left_out = _collectives(report)
    for key in ("seq", "step", "bytes", "ranks", "skew_us", "transfer_us", "mean_wait_us", "bus_gb_s"):
        scale = 1e3 if key.endswith("_us") else 1.0
        block.add(f"collective_{key}", _numbers(collectives, key, missing=-1.0) * scale)
    texts = sorted({str(row[key]) for row in collectives for key in ("group", "name", "last_rank")})
    place = {text: number for number, text in enumerate(texts)}
    for key in ("group", "name", "last_rank"):
        block.add(f"collective_{key}", np.array([place[str(row[key])] for row in collectives], np.int64))
    clock = report.clock_rows()
    for key in ("offset_us", "drift_ppm", "residual_us"):
        block.add(f"clock_{key}", _numbers(clock, key, missing=np.nan))
    ops, op_place, op_excess = _slow_ops(report)
    block.add("op_place", op_place.reshape(-1))
    block.add("op_excess", np.rint(op_excess).astype(np.int64).reshape(-1))
    whole = report.to_dict()
    verdict = report.verdict
    block.values = {
        "label": "Fleet",
        "ranks": [str(report.rank_name(rank.place)) for rank in job.ranks],
        "hosts": [rank.host for rank in job.ranks],
        "files": [rank.file for rank in job.ranks],
        "health": [row["health"] for row in ranks],
        "places": table.places.tolist(),  # of the ranks that have steps
        "has_device": job.has_device,
        "steps": [str(number) if number >= 0 else "whole trace" for number in job.steps],
        "host_phases": list(table.host_phases),
        "device_phases": list(table.device_phases) if job.has_device else [],
        "ops": ops,
        "ops_per_rank": op_place.shape[1] if op_place.ndim == 2 else 0,
        "texts": texts,
        "collectives_left_out": left_out,
        "straggler": verdict.place,
        "also": list(verdict.also),
        "events": sum(each.events for rank in job.ranks for each in rank.sketches),
        **{
            key: whole[key]
            for key in (
                "verdict", "findings", "collective_types", "matched_by", "unmatched", "missing", "notes", "skew_share",
                "exposed_share",
            )
        },
        "what_if": _with_short_names(whole["what_if"]),
    }  # fmt: skip
    return block


def _with_short_names(what_if: object) -> object:
    """What-ifs with the names of kernels as tables show them."""
    if not isinstance(what_if, dict):
        return what_if
    names = short_names([row["op"] for row in what_if["by_op"]])
    return {**what_if, "by_op": [{**row, "op": name} for row, name in zip(what_if["by_op"], names)]}


def _numbers(rows: list[Row], key: str, missing: float = 0.0) -> FloatArray:
    return np.array([float(v) if isinstance(v := row[key], (int, float)) else missing for row in rows], float)


def _heat(report: FleetReport) -> dict[str, FloatArray]:
    """rank x step in nanoseconds: what the heat map shows."""
    job, table = report.job, report.tables
    if not job.step_ns.size:
        return {}
    exposed = [
        rank.device_column("exposed_communication_ns") if rank.has_device else rank.waiting_ns
        for rank in job.with_steps
    ]
    heat: dict[str, FloatArray] = {
        "step": table.step_ns,
        "wait": table.wait_ns,
        "own": table.host.sum(axis=2),
        "exposed": job.by_step(exposed).astype(float),
    }
    if job.has_device:
        idle: IntArray = job.by_step([rank.device_column("idle_ns") for rank in job.with_steps])
        heat["idle"] = idle.astype(float)
    return heat


def _collectives(report: FleetReport) -> tuple[list[Row], int]:
    """The collectives, those with the largest skew if there are too many; and how many are left out."""
    rows = report.collective_rows()
    if len(rows) <= _MOST_COLLECTIVES:
        return rows, 0
    largest = np.argsort(-_numbers(rows, "skew_us"), kind="stable")[:_MOST_COLLECTIVES]
    return [rows[place] for place in np.sort(largest).tolist()], len(rows) - _MOST_COLLECTIVES


def _slow_ops(report: FleetReport) -> tuple[list[list[str]], IntArray, FloatArray]:
    """Ops as [phase, name]; and by rank the places of those that exceed the median rank most, and by how many nanoseconds."""
    table = report.tables
    if not table.step_ns.size or len(table.places) < 2:
        return [], np.zeros((0, 0), np.int64), np.zeros((0, 0))
    names = [[cell.phase, cell.op] for cell in table.cells]
    names += [["device", kernel] for kernel in short_names(table.kernels)]
    excess = np.concatenate([shifts(table.cell_ns), shifts(table.kernel_ns)], axis=1)
    places = np.argsort(-excess, axis=1, kind="stable")[:, :_MOST_OPS]
    return names, places, np.take_along_axis(excess, places, axis=1)
