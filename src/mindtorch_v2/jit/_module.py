"""TorchScript's module classes: plain modules under those names."""

from ..nn import Module


class ScriptModule(Module):
    """A module written for scripting; it runs eagerly."""

    def __init__(self) -> None:
        super().__init__()


class RecursiveScriptModule(ScriptModule):
    """What `script` gives in torch; here it gives the module itself."""


class TracedModule(ScriptModule):
    """What `trace` gives in torch; here it gives the module itself."""


class TopLevelTracedModule(TracedModule):
    """What `trace` gives in torch for a whole module; here it gives the module itself."""
