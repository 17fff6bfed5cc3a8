"""torch._higher_order_ops: ops that take functions, run eagerly."""

from __future__ import annotations

from .._control_flow import cond, while_loop
from .associative_scan import associative_scan

__all__ = ["associative_scan", "cond", "while_loop"]
