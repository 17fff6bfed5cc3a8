"""Sub-commands that other packages add: their entry points, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# The group of entry points: name = a module with the members of `cli.Command`.
_GROUP = "mindtorch_prof.commands"


def plugins() -> dict[str, EntryPoint]:
    """Sub-commands of other packages, by name."""
    from importlib.metadata import entry_points  # reads the metadata of every installed package

    return {each.name: each for each in entry_points(group=_GROUP)}
