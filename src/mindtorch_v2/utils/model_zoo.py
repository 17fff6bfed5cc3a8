"""torch.utils.model_zoo: deprecated name of torch.hub's download, which raises."""

from __future__ import annotations

from ..hub import load_state_dict_from_url as load_url
from ..hub import tqdm  # noqa: F401  (torch has the name here)

__all__ = ["load_url"]
