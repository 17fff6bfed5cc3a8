"""torch.distributed.launcher.api: names only."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class, refused_function

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

_MODULE = "torch.distributed.launcher"
_REASON = "start processes with torch.distributed.run or torch.multiprocessing.spawn; they are not restarted"
LaunchConfig: Any = refused_class(_MODULE, "LaunchConfig", _REASON)
elastic_launch: Any = refused_class(_MODULE, "elastic_launch", _REASON)
launch_agent = refused_function(_MODULE, "launch_agent", _REASON)
