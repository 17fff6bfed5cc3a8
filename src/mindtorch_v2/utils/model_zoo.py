"""torch.utils.model_zoo: deprecated name of torch.hub's download, which raises."""

from __future__ import annotations

from ..hub import load_state_dict_from_url as load_url

try:
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]  # noqa: F401  (torch has the name here, where tqdm is installed)
except ModuleNotFoundError:
    pass

__all__ = ["load_url"]
