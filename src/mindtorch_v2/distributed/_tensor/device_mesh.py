"""torch.distributed._tensor.device_mesh: the old name of torch.distributed.device_mesh."""

from ..device_mesh import *  # noqa: F403
