"""Versions: this package's own, the torch version it follows, and device toolkits (none: a CPU library)."""

from mindtorch_prof.version import __version__

__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu", "torch_api"]

torch_api = "2.13.0"

debug = False
git_version = "Unknown"
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
