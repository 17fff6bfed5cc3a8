"""Types in TorchScript annotations."""

from .._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3, List, Optional

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "List", "Optional"]
