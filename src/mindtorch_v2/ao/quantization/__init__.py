"""torch.ao.quantization: classes that packages check for and insert into models. Preparing or converting a model raises."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from mindtorch_v2.nn import Module

__all__ = [
    "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "convert", "default_observer",
    "default_per_channel_weight_observer", "default_weight_observer", "fuse_modules", "fuse_modules_qat", "get_default_qat_qconfig",
    "get_default_qconfig", "prepare", "prepare_qat", "quantize", "quantize_dynamic", "quantize_qat",
]  # fmt: skip


class QConfig(NamedTuple):
    """How activations and weights are observed."""

    activation: Any
    weight: Any


class QuantStub(Module):
    """Marks where values become quantized; the identity before that."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """The values."""
        return x


class DeQuantStub(QuantStub):
    """Marks where values become floating again; the identity before that."""


class ObserverBase(Module):
    """Base of modules that watch the range of values."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic


class FakeQuantizeBase(Module):
    """Base of modules that round values as quantization would."""

    def __init__(self) -> None:
        super().__init__()
        self.fake_quant_enabled = self.observer_enabled = True


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.ao.quantization.{name}: this library has no quantized tensors; run the floating model, or quantize it with torch"
    )


def _refusing(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        _refuse(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises: there are no quantized tensors."
    return function


convert = _refusing("convert")
default_observer = _refusing("default_observer")
default_per_channel_weight_observer = _refusing("default_per_channel_weight_observer")
default_weight_observer = _refusing("default_weight_observer")
fuse_modules = _refusing("fuse_modules")
fuse_modules_qat = _refusing("fuse_modules_qat")
get_default_qat_qconfig = _refusing("get_default_qat_qconfig")
get_default_qconfig = _refusing("get_default_qconfig")
prepare = _refusing("prepare")
prepare_qat = _refusing("prepare_qat")
quantize = _refusing("quantize")
quantize_dynamic = _refusing("quantize_dynamic")
quantize_qat = _refusing("quantize_qat")
