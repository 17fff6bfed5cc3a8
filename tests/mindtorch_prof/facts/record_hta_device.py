"""Records what HTA 0.5 says of the ranks in shared/ecosystem: run with an interpreter that has it.

Writes hta_device.json beside this file. HTA rounds times to microseconds: only files of whole microseconds
are asked about. The gap below which a queued kernel counts as kernel wait (30) is in microseconds, too.
"""

import json
import logging
import sys
import tempfile
from pathlib import Path

from hta.trace_analysis import TraceAnalysis

logging.disable(logging.CRITICAL)
ECOSYSTEM = Path(sys.argv[1])
facts = {}
for name in sorted([*ECOSYSTEM.glob("ranks/*/*.json.gz")]):
    with tempfile.TemporaryDirectory() as folder:
        analysis = TraceAnalysis(
            trace_files={0: str(name)}, trace_dir=folder, include_last_profiler_step=True
        )
        times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
        overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
        idle, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
        queues = analysis.get_queue_length_summary(ranks=[0])["queue_length"]
        facts[str(name.relative_to(ECOSYSTEM))] = {
            "idle_us": float(times["idle_time(us)"]),
            "compute_us": float(times["compute_time(us)"]),
            "span_us": float(times["kernel_time(us)"]),
            "overlap_percent": float(overlap["comp_comm_overlap_pctg"]),
            "idle": sorted(
                [int(row.stream), row.idle_category, float(row.idle_time)]
                for row in idle.itertuples()
                if row.idle_time
            ),
            "queue": {
                str(stream): [float(row["mean"]), float(row["max"])] for (_, stream), row in queues.iterrows()
            },
        }
Path(__file__).with_name("hta_device.json").write_text(json.dumps(facts, indent=1) + "\n")
