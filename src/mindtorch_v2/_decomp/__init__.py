"""torch._decomp: names only. Ops run as they are; none is rewritten in terms of others."""

from __future__ import annotations

from .._refused import refused_function

__all__ = ["core_aten_decompositions", "get_decompositions", "register_decomposition"]

_REASON = "programs are not captured, so there is nothing to decompose; every op has a kernel"
core_aten_decompositions = refused_function("torch._decomp", "core_aten_decompositions", _REASON)
get_decompositions = refused_function("torch._decomp", "get_decompositions", _REASON)
register_decomposition = refused_function("torch._decomp", "register_decomposition", _REASON)
