"""The parts of the data loader: collating, fetching, the worker process, and the transport between processes."""

from __future__ import annotations

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two checks whether the other process is alive

from . import collate, exception, fetch, pin_memory, transport, worker  # noqa: E402

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "exception", "fetch", "pin_memory", "transport", "worker"]
