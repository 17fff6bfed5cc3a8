"""Errors of torch's compiler, which programs catch. Nothing is compiled, so none is raised here."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """Any error of the compiler."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault in the compiler."""


class RestartAnalysis(TorchDynamoException):
    """The compiler starts over."""


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """The compiler starts over with scalars as tensors."""


class Unsupported(TorchDynamoException):
    """Code that the compiler does not support."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend failed."""


class UserError(Unsupported):
    """Code that cannot be compiled."""
