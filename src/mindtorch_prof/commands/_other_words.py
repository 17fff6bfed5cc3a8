"""Words for a task that are no commands here, and options that are called otherwise: what does it, for error messages."""

from __future__ import annotations

_SHOW = "`show` prints the table of a trace"
_DEVICE = "`device` shows kernels, copies and idle time; `show --sort-by self_device_time_total` has ops and kernels"
_MEMORY = "`summary` and `report` show the peaks of memory; load(path).memory_summary() says what held it"
_RANKS = "`fleet` compares the ranks of a job; `merge` puts their files together"
_RECORD = "`run` runs a program under the profiler"
_REPORT = "`report` writes a page with a timeline, a flame graph and tables"

OTHER_WORDS: dict[str, str] = {
    "table": _SHOW,
    "ops": _SHOW,
    "operators": _SHOW,
    "top": _SHOW,
    "key_averages": _SHOW,
    "averages": _SHOW,
    "print": _SHOW,
    "stats": "`show --stats` adds minimum, median, p95 and maximum of every row",
    "kernels": _DEVICE,
    "gpu": _DEVICE,
    "idle": _DEVICE,
    "breakdown": _DEVICE,
    "flops": "`show --sort-by flops --columns name,calls,flops` prints FLOP of a trace with shapes; `roofline` compares rates with the device's peak",
    "memory": _MEMORY,
    "mem": _MEMORY,
    "timeline": _REPORT,
    "view": _REPORT,
    "open": _REPORT,
    "html": _REPORT,
    "flamegraph": f"`stacks` writes folded stacks for flame graphs; {_REPORT}",
    "flame": f"`stacks` writes folded stacks for flame graphs; {_REPORT}",
    "compare": "`diff` compares two traces, `check` traces with a baseline, `fleet` the ranks of a job",
    "regress": "`check` fails the build on a regression",
    "gate": "`check` fails the build on a regression",
    "baseline": "`check --write-baseline` writes one",
    "stragglers": _RANKS,
    "straggler": _RANKS,
    "distributed": _RANKS,
    "collectives": _RANKS,
    "nccl": _RANKS,
    "align": _RANKS,
    "fuse": _RANKS,
    "modules": "`show --group-by module --no-name` is a table of modules; `tree` prints the call tree",
    "layers": "`show --group-by module --no-name` is a table of modules; `tree` prints the call tree",
    "steps": "`summary` shows the steps; `convert --to csv --table steps` writes them",
    "cut": "`slice` cuts a part out of a trace",
    "filter": "`slice` cuts a part out of a trace; `show --where` filters a table",
    "split": "`slice` cuts a part out of a trace",
    "trim": "`slice` cuts a part out of a trace",
    "export": "`convert` writes other formats, `report` a page, `stacks` folded stacks",
    "csv": "every command has `--format csv`; `convert --to csv` writes all events",
    "json": "every command has `--format json`",
    "perfetto": "Perfetto opens trace files as they are; `convert --to chrome` writes a repaired one",
    "sql": "`query` takes SQL",
    "columns": "`explain` lists the columns and what they mean",
    "health": "`doctor` checks whether a trace is complete",
    "validate": "`doctor` checks whether a trace is complete",
    "repair": "`convert --to chrome` writes a repaired trace",
    "fix": "`convert --to chrome` writes a repaired trace; `advise` suggests changes of the program",
    "advice": "`advise` suggests changes of the program",
    "bottleneck": "`advise` suggests changes of the program; `summary` shows where the time went",
    "record": _RECORD,
    "profile": _RECORD,
    "exec": _RECORD,
}

_FORMAT = "--format"
_TOP = "--top"
# options of other programs: the option that does the same here, and how it is written; where a command does not have it, nothing is said
OTHER_OPTIONS: dict[str, tuple[str, str]] = {
    "--json": (_FORMAT, "--format json"),
    "--csv": (_FORMAT, "--format csv"),
    "--md": (_FORMAT, "--format md"),
    "--markdown": (_FORMAT, "--format md"),
    "--limit": (_TOP, "--top N"),
    "--row-limit": (_TOP, "--top N"),
    "--row_limit": (_TOP, "--top N"),
    "--rows": (_TOP, "--top N"),
    "-n": (_TOP, "--top N"),
    "--max-slower": ("--max-regression", "--max-regression PCT"),
    "--sort": ("--sort-by", "--sort-by COLUMN"),
    "--filter": ("--where", "--where CONDITION"),
    "--group": ("--group-by", "--group-by KEYS"),
}
