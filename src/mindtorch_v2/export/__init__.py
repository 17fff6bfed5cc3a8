"""torch.export: names only. Programs are not captured by this library; `torch.fx.symbolic_trace` records a graph of calls."""

from __future__ import annotations

from .._refused import refused_class, refused_function

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims",
    "draft_export", "export", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip


_REASON = (
    "programs run eagerly and are not captured; torch.fx.symbolic_trace records a graph of calls, and "
    "torch.save(module.state_dict(), f) keeps the weights"
)
AdditionalInputs = refused_class("torch.export", "AdditionalInputs", _REASON)
Constraint = refused_class("torch.export", "Constraint", _REASON)
CustomDecompTable = refused_class("torch.export", "CustomDecompTable", _REASON)
Dim = refused_class("torch.export", "Dim", _REASON)
ExportBackwardSignature = refused_class("torch.export", "ExportBackwardSignature", _REASON)
ExportGraphSignature = refused_class("torch.export", "ExportGraphSignature", _REASON)
ExportedProgram = refused_class("torch.export", "ExportedProgram", _REASON)
FlatArgsAdapter = refused_class("torch.export", "FlatArgsAdapter", _REASON)
ModuleCallEntry = refused_class("torch.export", "ModuleCallEntry", _REASON)
ModuleCallSignature = refused_class("torch.export", "ModuleCallSignature", _REASON)
ShapesCollection = refused_class("torch.export", "ShapesCollection", _REASON)
UnflattenedModule = refused_class("torch.export", "UnflattenedModule", _REASON)
default_decompositions = refused_function("torch.export", "default_decompositions", _REASON)
dims = refused_function("torch.export", "dims", _REASON)
draft_export = refused_function("torch.export", "draft_export", _REASON)
export = refused_function("torch.export", "export", _REASON)
load = refused_function("torch.export", "load", _REASON)
register_dataclass = refused_function("torch.export", "register_dataclass", _REASON)
save = refused_function("torch.export", "save", _REASON)
unflatten = refused_function("torch.export", "unflatten", _REASON)
