"""What the loader is made of: collating, fetching, the worker process, and the way between processes."""

from __future__ import annotations

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two looks whether the other process still lives

from . import collate, exception, fetch, pin_memory, transport, worker  # noqa: E402

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "exception", "fetch", "pin_memory", "transport", "worker"]
