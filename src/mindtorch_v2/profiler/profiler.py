"""torch.profiler.profiler's names: sessions and schedules under torch's import path."""

from __future__ import annotations

from .config import _ExperimentalConfig
from .schedule import ProfilerAction, schedule
from .session import _KinetoProfile, profile, supported_activities

__all__ = [
    "ProfilerAction",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "profile",
    "schedule",
    "supported_activities",
]
