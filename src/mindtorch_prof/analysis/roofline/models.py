"""Models: the name and the inputs of an op in; its work out, or why there is none. Knows which model belongs to which op.

These count what a device must do at least, for a roofline. torch's own counts (`with_flops`, in `mindtorch_prof.flops`) are another
thing and stay torch's: they know seven ops, leave out additions and everything backward, and count `add` by its first operand alone.
"""

from __future__ import annotations

from ...inputs import Inputs
from . import attention, convolution, elementwise, matmul, movement, normalization, reductions, serving
from .work import Call, Model, NotModelled, Work

_MODELS: dict[str, Model] = {
    **elementwise.MODELS,
    **reductions.MODELS,
    **movement.MODELS,
    **normalization.MODELS,
    **attention.MODELS,
    **convolution.MODELS,
    **matmul.MODELS,
    **serving.MODELS,
}


def known_ops() -> list[str]:
    """The names of all ops that have a model, but for those that are told by a part of their name."""
    return sorted(_MODELS)


def model_of(name: str) -> Model | None:
    """The model of an op; None: there is none. Overloads (`aten::add.Tensor`) have the model of their op."""
    plain = name.split(".", 1)[0] if name.startswith("aten::") else name
    if plain in _MODELS:
        return _MODELS[plain]
    if plain.startswith(elementwise.FOREACH_PREFIX):
        return elementwise.foreach
    return matmul.library_gemm if matmul.LIBRARY_NAMES.fullmatch(plain) else None


def work_of(name: str, inputs: Inputs) -> Work:
    """The work of a call; NotModelled says what is missing."""
    model = model_of(name)
    if model is None:
        raise NotModelled("there is no model for this op")
    plain = name.split(".", 1)[0] if name.startswith("aten::") else name
    try:
        return model(Call(plain, inputs))
    except (IndexError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise NotModelled("the inputs are not those that the op takes") from error
