"""tqdm for programs that import it from torch.hub: the package if it is installed, else a count on stderr."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["tqdm"]


class _Count:
    """The part of tqdm's interface that downloads use."""

    def __init__(
        self, total: float | None = None, disable: bool = False, unit: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        """Count n more."""
        if self.disable:
            return
        self.n += n
        share = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n:.1f} bytes"
        sys.stderr.write(f"\r{share}")
        sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: there is no line to describe."""

    def write(self, s: str) -> None:
        """A line on stderr."""
        sys.stderr.write(f"{s}\n")

    def close(self) -> None:
        """End the line."""
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self) -> _Count:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


try:
    from tqdm import tqdm
except ImportError:
    tqdm = _Count  # type: ignore[assignment,misc]
