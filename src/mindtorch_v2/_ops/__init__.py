"""The ops, one file per family. An op is declared once, its schema, kernel, derivative and flops side by side."""

from importlib import import_module
from pathlib import Path

from .. import _dispatch
from ._namespace import functions

# Loaded in this order; a family may import from those before it, and reaches the others through `functions` at call time.
FAMILIES = (
    "creation",
    "ranges",
    "from_data",
    "shape",
    "pointwise",
    "sums",
    "extremes",
)

for _name in FAMILIES:
    import_module("." + _name, __name__)
for _path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    if _path.stem not in FAMILIES:
        import_module("." + _path.stem, __name__)

for _name in ("_kernel_bookkeeping", "_layer_bookkeeping"):  # rules for ops of all families
    import_module("." + _name, __name__)

for _op in _dispatch.OPS.values():
    if not hasattr(functions, _op.name):
        setattr(functions, _op.name, _op.entry)
for _name, _function in _dispatch.FUNCTIONS.items():
    setattr(functions, _name, _function)

from .. import ops  # noqa: E402  (torch._ops has torch.ops and its classes)
from ..ops import OpOverload, OpOverloadPacket, _OpNamespace  # noqa: E402

__all__ = ["OpOverload", "OpOverloadPacket", "_OpNamespace", "functions", "ops"]
