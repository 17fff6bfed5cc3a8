"""torch.quantization.qconfig: the older name of torch.ao.quantization.qconfig."""

from ..ao.quantization.qconfig import *  # noqa: F403
