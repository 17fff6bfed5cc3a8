"""torch.distributed._tensor.experimental: the old name of torch.distributed.tensor.experimental."""

from ..tensor.experimental import *  # noqa: F403
