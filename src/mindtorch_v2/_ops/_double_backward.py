"""Second derivatives of backward ops with a kernel of their own, by differentiating the same expression in tensor ops."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from ._namespace import functions as F


def zeros_of(g: Any) -> Any:
    """The gradient of a backward op by an input whose values it does not depend on; `g` has that input's shape."""
    return F.zeros(g.shape, dtype=g.dtype)


def through(g: Any, expression: Any, *inputs: Any) -> tuple:
    """The gradients of `expression(*inputs)`, weighted by `g`, with respect to each input."""
    from ..autograd import grad

    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = True
    try:
        own = [x if enabled and x._rg else x.detach().requires_grad_() for x in inputs]
        output = expression(*own)
        if not output._rg:
            return (None,) * len(own)
        return grad(output, own, g, create_graph=enabled, allow_unused=True)
    finally:
        state.enabled = enabled
