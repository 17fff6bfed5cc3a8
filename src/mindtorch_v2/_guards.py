"""torch._guards: the state of torch's compiler. Nothing is compiled."""

from __future__ import annotations


def active_fake_mode() -> None:
    """The active mode of fake tensors: none."""


def detect_fake_mode(inputs: object = None) -> None:
    """The mode of fake tensors among the inputs: none."""
