"""Functional tensors of torch's compiler: a class for isinstance checks."""

from __future__ import annotations

from typing import Any, NoReturn


class FunctionalTensor:
    """A tensor whose changes are recorded; cannot be built."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "FunctionalTensor is a part of torch's compiler, which this library does not have"
        )


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor itself: none is functional."""
    return tensor
