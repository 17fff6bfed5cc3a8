"""Check whether a trace is complete and its numbers are consistent.

Looks for dropped or repaired events, overlaps, missing steps and device events
without an op. The exit code is 1 if there are errors (numbers are wrong) or
warnings (data is missing); findings of severity info do not count. Also says which
core read the file: `c`, the compiled reader, or `python`; and with `--cache`, whether
the answer came from the cache.

example:
  mindtorch-prof doctor trace.json.gz
  mindtorch-prof doctor trace.json.gz --format json
"""

from __future__ import annotations

import argparse

from .. import core
from . import _common


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `doctor`."""
    _common.add_file(parser)
    _common.add_output(parser, top=0)


def run(options: argparse.Namespace) -> int:
    """Print the findings; the exit code is 1 if there are errors or warnings."""
    from ..analysis.doctor import doctor
    from ..analysis.figures import figures

    loaded = _common.open_trace(options.file, options)
    with _common.phase("checking"):
        findings = doctor(loaded)
        known = figures(loaded)
    unhealthy = any(finding.severity != "info" for finding in findings)
    if options.format == "table":
        for finding in findings[: options.top or None]:
            where = f" (first: {finding.where})" if finding.where else ""
            _common.say(f"{finding.severity}: {finding.message}{where} [{finding.code}]")
        on_device = f" and {known.device_events:,} device events" if known.device_events else ""
        verdict = "see above" if unhealthy else "complete and consistent"
        print(f"{known.events:,} events{on_device}: {verdict}")
        print(f"core: {core.name()}")
        if loaded.cache is not None:
            state = {"read": "answered from", "written": "written to", "none": "not used"}[loaded.cache.state]
            _common.say(f"cache: {state} {loaded.cache.path}")
    else:
        _common.print_rows(
            [finding.to_dict() for finding in findings],
            options.format,
            keys=["code", "severity", "count", "message", "where"],
            top=options.top,
            about={
                "file": options.file,
                "healthy": not unhealthy,
                "core": core.name(),
                "cache": loaded.cache.state if loaded.cache is not None else None,
                "events": known.events,
                "device_events": known.device_events,
                "device_without_op_share": known.device_without_op_share,
            },
            titles={
                "code": "Code",
                "severity": "Severity",
                "count": "Count",
                "message": "Message",
                "where": "First at",
            },
        )
    return 1 if unhealthy else 0
