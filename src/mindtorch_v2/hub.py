"""torch.hub: calls entry points of local folders; does not download. The cache folder can be read and set."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, NoReturn
from urllib.parse import urlparse  # noqa: F401  (torch has the name here)

from ._progress import tqdm  # noqa: F401  (the same)

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_hub_dir: str | None = None
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the hash in a file name such as resnet18-bfd8deac.pth


def get_dir() -> str:
    """The folder of downloaded files: $TORCH_HOME/hub, or torch/hub in $XDG_CACHE_HOME or ~/.cache."""
    if _hub_dir is not None:
        return _hub_dir
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder of everything that is cached: $TORCH_HOME, or torch in $XDG_CACHE_HOME or ~/.cache."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike) -> None:
    """Set the folder of downloaded files."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def _refuse(call: str, instead: str) -> RuntimeError:
    return RuntimeError(f"torch.hub.{call} is not supported: this library downloads nothing; {instead}")


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """The result of entry point `model` in a folder's `hubconf.py`. Raises for a repository: nothing is
    downloaded.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise _refuse("load", "import the model's own package and load a state_dict with torch.load")
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(folder: str | os.PathLike, model: str, *args: Any, **kwargs: Any) -> Any:
    """Run a folder's `hubconf.py`, which may import modules beside it, and call the entry point."""
    import importlib.util

    where = os.path.realpath(folder)
    sys.path.insert(0, where)
    try:
        spec = importlib.util.spec_from_file_location("hubconf.py", os.path.join(where, "hubconf.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        missing = [
            name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None
        ]
        if missing:
            raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
        entry = getattr(module, model, None)
        if not callable(entry):
            raise RuntimeError(f"Cannot find callable {model} in hubconf")
        return entry(*args, **kwargs)
    finally:
        sys.path.remove(where)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> NoReturn:
    """Raises: nothing is downloaded."""
    raise _refuse("list", "import the model's own package")


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> NoReturn:
    """Raises: nothing is downloaded."""
    raise _refuse("help", "import the model's own package")


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> NoReturn:
    """Raises: nothing is downloaded."""
    raise _refuse("download_url_to_file", "fetch the file by other means")


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Load a state_dict that is already in the cache folder. Raises if it is not: nothing is downloaded."""
    import mindtorch_v2 as torch

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(url.split("?", 1)[0]))
    if not os.path.exists(path):
        raise _refuse("load_state_dict_from_url", f"fetch the file by other means and put it at {path}")
    return torch.load(path, map_location=map_location, weights_only=weights_only)
