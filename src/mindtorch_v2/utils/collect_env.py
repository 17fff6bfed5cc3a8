"""A report of versions and of the machine. Run with `python -m`."""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import sys
from collections import namedtuple
from typing import Any

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

# Those of torch's fields that apply here: there is neither a compiler nor an accelerator.
SystemEnv = namedtuple(  # noqa: PYI024  (torch's own form)
    "SystemEnv",
    "torch_version os libc_version python_version python_platform is_cuda_available pip_packages cpu_info",
)

_PACKAGES = ("numpy", "scipy", "ml_dtypes", "orjson", "rich", "pandas", "pyarrow", "duckdb", "tensorboard")


def _operating_system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError, AttributeError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def _packages() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding=locale.getpreferredencoding(False)) as lines:
            model = next(
                (line.split(":")[1].strip() for line in lines if line.startswith("model name")), model
            )
    except OSError:
        pass
    return f"{model or 'unknown'}, {os.cpu_count()} processors"


def get_env_info() -> SystemEnv:
    """Versions and machine as fields."""
    from ..version import __version__

    return SystemEnv(
        torch_version=__version__,
        os=_operating_system(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version.replace(chr(10), ' ')} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=False,
        pip_packages=_packages(),
        cpu_info=_cpu(),
    )


def pretty_str(envinfo: Any) -> str:
    """The fields as text."""
    packages = "\n".join(f"[pip3] {package}" for package in envinfo.pip_packages)
    return f"""MindTorch version: {envinfo.torch_version} (on NumPy, no compiled back end)
Is CUDA available: {envinfo.is_cuda_available}

OS: {envinfo.os}
Libc version: {envinfo.libc_version}
Python version: {envinfo.python_version}
Python platform: {envinfo.python_platform}
CPU: {envinfo.cpu_info}

Versions of relevant libraries:
{packages}"""


def get_pretty_env_info() -> str:
    """Versions and machine as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report."""
    print(get_pretty_env_info())  # noqa: T201


if __name__ == "__main__":
    main()
