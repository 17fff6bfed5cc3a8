"""torch.utils.serialization: the options of save and load."""

from . import config as config

__all__ = ["config"]
