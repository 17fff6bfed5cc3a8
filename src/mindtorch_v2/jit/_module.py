"""TorchScript's module classes: plain modules under those names."""

from ..nn import Module


class ScriptModule(Module):
    """A module for scripting; it runs eagerly."""

    def __init__(self) -> None:
        super().__init__()


class RecursiveScriptModule(ScriptModule):
    """The result type of `script` in torch; here `script` returns the module itself."""


class TracedModule(ScriptModule):
    """The result type of `trace` in torch; here `trace` returns the module itself."""


class TopLevelTracedModule(TracedModule):
    """The result type of `trace` in torch for a whole module; here `trace` returns the module itself."""
