"""torch.utils.cpp_extension: C++ extensions need torch's C++ library; every attempt to build or load one raises."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "BuildExtension", "CUDAExtension", "CppExtension", "CUDA_HOME", "ROCM_HOME", "include_paths", "is_ninja_available", "library_paths",
    "load", "load_inline",
]  # fmt: skip

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None
CUDNN_HOME: str | None = None
IS_HIP_EXTENSION = False


def _refuse(name: str) -> RuntimeError:
    return RuntimeError(
        f"torch.utils.cpp_extension.{name}: a C++ extension needs torch's headers and C++ library, which this library does not have; "
        "register a Python kernel with torch.library instead"
    )


def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no C++ library to build against."""
    raise _refuse("load")


def load_inline(name: str, cpp_sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no C++ library to build against."""
    raise _refuse("load_inline")


def include_paths(device_type: str = "cpu") -> NoReturn:
    """Raises: there are no headers."""
    raise _refuse("include_paths")


def library_paths(device_type: str = "cpu") -> NoReturn:
    """Raises: there is no C++ library."""
    raise _refuse("library_paths")


def is_ninja_available() -> bool:
    """Whether the build tool ninja can be called."""
    import shutil

    return shutil.which("ninja") is not None


def CppExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no C++ library to build against."""
    raise _refuse("CppExtension")


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no C++ library to build against."""
    raise _refuse("CUDAExtension")


class BuildExtension:
    """The build command of setuptools for C++ extensions; raises when it is set up."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The class itself, whose options do not matter: it raises."""
        return cls
