"""torch._subclasses: tensors without data that torch's compiler computes shapes with. There are none here."""

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
