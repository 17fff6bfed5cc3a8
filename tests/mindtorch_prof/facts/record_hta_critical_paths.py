"""Record HTA's critical paths: run with HolisticTraceAnalysis, and the folder of traces.

python record_hta_critical_paths.py ../../../shared/ecosystem
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

FACTS = Path(__file__).with_name("hta_critical_paths.json")
FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
# (trace, annotation, which one of its occurrences)
CASES = (
    ("critical_path/alexnet.json.gz", FORWARD, 1),
    ("critical_path/simple_add.json.gz", FORWARD, 1),
    ("traces/h100_qwen_infer_stack_memory.json.gz", "ProfilerStep", 0),
    ("traces/nvidia_ddp_train_nccl.json.gz", "ProfilerStep", 1),
    ("traces/mi300_resnet_ddp_act_checkpoint.json.gz", "ProfilerStep", 1),
    ("ranks/dlrm_8/rank0.pt.trace.json.gz", "ProfilerStep", 0),
    ("graphs/vllm_piecewise/graph_execution.json.gz", "execute", 0),
)


def observe(path: Path, annotation: str, instance: int) -> dict[str, Any]:
    """What HTA finds: microseconds by type of edge, and the kernels on its path; or its error."""
    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "rank0.json.gz"
        shutil.copyfile(path, copy)
        try:
            analysis = TraceAnalysis(trace_files={0: str(copy)}, trace_dir=folder)
            graph, success = analysis.critical_path_analysis(
                rank=0, annotation=annotation, instance_id=instance
            )
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}
        if not success:
            return {"error": "the analysis did not succeed"}
        rows = graph.get_critical_path_breakdown()
        types = rows.groupby(["type", "bound_by"]).duration.sum()
        kernels = graph.trace_df.loc[sorted(graph.critical_path_events_set)]
        kernels = kernels[kernels.stream >= 0]
        return {
            "us": {" ".join(key).strip(): float(value) for key, value in types.items()},
            "kernels": len(kernels),
            "kernel_us": float(kernels.dur.sum()),
        }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    root = Path(sys.argv[1])
    facts = {trace: observe(root / trace, annotation, instance) for trace, annotation, instance in CASES}
    FACTS.write_text(json.dumps(facts, indent=1) + "\n")
