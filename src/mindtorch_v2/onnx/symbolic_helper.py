"""Decorators of rules for TorchScript's ONNX exporter, which is not there: a rule is kept and never called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """Decorator of a rule; the kinds of its arguments matter only to an exporter."""

    def decorate(fn: Any) -> Any:
        fn._arg_descriptors = list(arg_descriptors)
        return fn

    return decorate
