"""Fake tensors of torch's compiler: classes for isinstance checks. Tensors of the meta device do what programs use them for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class FakeTensor:
    """A tensor without data; cannot be built."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "FakeTensor is a part of torch's compiler; use a tensor of device 'meta' instead"
        )


class FakeTensorMode:
    """A mode in which new tensors have no data; cannot be built."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "FakeTensorMode is a part of torch's compiler; use torch.device('meta') instead"
        )


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """A block without the active fake mode: there is none, so nothing changes."""
    yield None


def is_fake(x: Any) -> bool:
    """Whether this is a fake tensor: never."""
    return False


def _is_tensor_constructor(func: Any) -> bool:
    """Whether an op overload makes a tensor of no tensor."""
    schema = func._schema
    if any(str(argument.type) == "Tensor" for argument in schema.arguments):
        return False
    return len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor"
