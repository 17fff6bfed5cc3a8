"""Print the merged call tree of a trace.

Shows which events contain which, how often they ran and how long. Calls of
nn.Modules are included if the trace has them; --python includes all Python
calls, --ops none.

example:
  mindtorch-prof tree trace.json.gz --depth 3
  mindtorch-prof tree trace.json.gz --min 1% --format md
  mindtorch-prof tree trace.json.gz --as-recorded
"""

from __future__ import annotations

import argparse

from . import _common
from ._options import share


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tree`."""
    _common.add_file(parser)
    parser.add_argument(
        "--depth", type=_common.count, default=4, metavar="N", help="levels to show (4); 0 shows all"
    )
    parser.add_argument(
        "--min",
        type=share,
        default=0.001,
        metavar="SHARE",
        help="leave out events below this share of the total time (0.1%%)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--python", action="store_true", help="show all Python calls")
    which.add_argument("--ops", action="store_true", help="show neither Python calls nor modules")
    parser.add_argument(
        "--by-time",
        action="store_true",
        help="in order of the first start, not longest first",
    )
    _common.add_output(parser, top=200)


def run(options: argparse.Namespace) -> int:
    """Print the tree."""
    from ..analysis.call_tree import Calls, call_tree

    loaded = _common.open_trace(options.file, options)
    calls: Calls = "all" if options.python else "none" if options.ops else "modules"
    with _common.phase("aggregating"):
        sheet = call_tree(
            loaded, calls=calls, depth=options.depth, min_share=options.min, by_time=options.by_time
        )
    health = loaded.health.line()
    left_out = ("tree",) if options.format in {"json", "csv"} else ("name", "depth")
    _common.print_rows(
        sheet.head(options.top).rows(),
        options.format,
        keys=[key for key in sheet if key not in left_out],
        about={"file": options.file, "rows_in_all": sheet.n_rows, "health": health},
        note=f"Incomplete: {health}" if health else "",
        least_important=(
            "cpu_share",
            "cpu_time",
            "synthetic_count",
            "self_device_time_total",
            "device_share",
        ),
    )
    return 0
