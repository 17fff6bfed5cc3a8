"""torch.distributed.launcher: names only. `python -m mindtorch_v2.distributed.run` and `torch.multiprocessing.spawn` start processes."""

from __future__ import annotations

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
