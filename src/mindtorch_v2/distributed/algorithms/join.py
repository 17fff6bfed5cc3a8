"""torch.distributed.algorithms.join: uneven inputs of several processes, which this library refuses."""

from __future__ import annotations

from ..._refused import refused_class

_REASON = "give each process the same number of batches (DistributedSampler does)"
Join = refused_class("torch.distributed.algorithms.join", "Join", _REASON)


class JoinHook:
    """What a joinable object does when this process has no more inputs; never called here."""

    def main_hook(self) -> None:
        """Shadow the collectives of the other processes."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Run after all processes have ended."""


class Joinable:
    """The base class of joinable objects."""
