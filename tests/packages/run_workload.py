"""Run one workload and print its numbers as JSON: `python run_workload.py NAME torch|mindtorch_v2`."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path


def _define_vision_ops() -> None:
    """Let torchvision's wheel, whose C++ ops need CUDA's libraries, be imported beside torch for the CPU."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor a, Tensor b, float t, float s, int z, float u) -> Tensor")
    _define_vision_ops.library = library  # type: ignore[attr-defined]  # the ops exist as long as it does


def main(name: str, library: str) -> None:
    """Run the workload on a library and print what it returns."""
    warnings.simplefilter("ignore")
    if library == "mindtorch_v2":
        import mindtorch_v2

        mindtorch_v2.as_torch()
    else:
        _define_vision_ops()
    sys.path.insert(0, str(Path(__file__).parent))
    import torch
    from workloads import all_workloads

    torch.manual_seed(0)
    torch.set_num_threads(1)
    print("RESULT " + json.dumps(all_workloads()[name]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
