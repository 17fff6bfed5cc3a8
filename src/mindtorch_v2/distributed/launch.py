"""torch.distributed.launch: the old name of `torch.distributed.run`."""

from __future__ import annotations

from .run import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
