"""Workloads of packages with optimizers: the losses of five steps on a small network."""

from __future__ import annotations

from typing import Any

from ._programs import network, train

__all__ = [
    "adabelief_pytorch",
    "dadaptation",
    "lion_pytorch",
    "prodigyopt",
    "pytorch_optimizer",
    "schedulefree",
    "timm_optim",
    "torch_optimizer",
]


def _losses(make: Any) -> dict[str, Any]:
    model = network()
    optimizer = make(model.parameters())
    if hasattr(optimizer, "train"):
        optimizer.train()
    return {"losses": train(model, optimizer)}


def adabelief_pytorch() -> dict[str, Any]:
    from adabelief_pytorch import AdaBelief

    return _losses(lambda p: AdaBelief(p, lr=0.01, eps=1e-12, print_change_log=False))


def dadaptation() -> dict[str, Any]:
    from dadaptation import DAdaptAdam

    return _losses(lambda p: DAdaptAdam(p, lr=1.0))


def lion_pytorch() -> dict[str, Any]:
    from lion_pytorch import Lion

    return _losses(lambda p: Lion(p, lr=0.01, weight_decay=0.1))


def prodigyopt() -> dict[str, Any]:
    from prodigyopt import Prodigy

    return _losses(lambda p: Prodigy(p, lr=1.0))


def pytorch_optimizer() -> dict[str, Any]:
    from pytorch_optimizer import AdaBelief, Lamb, Ranger

    return {
        kind.__name__: _losses(lambda p, kind=kind: kind(p, lr=0.01))["losses"]
        for kind in (AdaBelief, Lamb, Ranger)
    }


def schedulefree() -> dict[str, Any]:
    from schedulefree import AdamWScheduleFree

    return _losses(lambda p: AdamWScheduleFree(p, lr=0.01))


def timm_optim() -> dict[str, Any]:
    from timm.optim import create_optimizer_v2

    return {
        name: _losses(lambda p, name=name: create_optimizer_v2(p, opt=name, lr=0.01))["losses"]
        for name in ("lamb", "adabelief", "nadamw")
    }


def torch_optimizer() -> dict[str, Any]:
    import torch_optimizer as optimizers

    return {
        name: _losses(lambda p, name=name: getattr(optimizers, name)(p, lr=0.01))["losses"]
        for name in ("RAdam", "Yogi", "DiffGrad")
    }
