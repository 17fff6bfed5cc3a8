"""`functions`: every op by its bare aten name, for families that call each other. Filled when all families are loaded."""

from types import SimpleNamespace
from typing import Any

functions: Any = SimpleNamespace()
