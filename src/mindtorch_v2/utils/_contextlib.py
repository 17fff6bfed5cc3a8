"""Context managers that are decorators too: the base classes that packages derive theirs from."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import _decorate

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Any) -> Any:
    """`func` run inside a context at each call: `ctx` is a function that gives contexts, or one that is entered anew."""
    context = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    return _decorate(context, func)


class _DecoratorContextManager:
    """Base of context managers that can be used as decorators."""

    def __call__(self, orig_func: Any) -> Any:
        return _decorate(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A context like this one; classes with arguments override it."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for classes without arguments: the class itself is a decorator."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
