"""Workloads of packages that look into models."""

from __future__ import annotations

import tempfile
from typing import Any

from ._programs import data, network, numbers

__all__ = ["captum", "fvcore", "higher", "ptflops", "tensorboard", "thop", "torchinfo", "torchsummary"]


def captum() -> dict[str, Any]:
    from captum.attr import IntegratedGradients, LayerConductance, Saliency

    model, inputs = network(), data()[0][:2]
    return {
        "integrated": numbers(IntegratedGradients(model).attribute(inputs, target=1)),
        "saliency": numbers(Saliency(model).attribute(inputs.clone().requires_grad_(), target=0)),
        "conductance": numbers(LayerConductance(model, model[0]).attribute(inputs, target=1)),
    }


def fvcore() -> dict[str, Any]:
    from fvcore.nn import parameter_count

    return {"parameters": parameter_count(network())[""]}


def ptflops() -> dict[str, Any]:
    from ptflops import get_model_complexity_info

    macs, parameters = get_model_complexity_info(
        network(), (8,), as_strings=False, print_per_layer_stat=False, backend="aten", verbose=False
    )
    return {"macs": macs, "parameters": parameters}


def thop() -> dict[str, Any]:
    from thop import profile

    macs, parameters = profile(network(), (data()[0],), verbose=False)
    return {"macs": macs, "parameters": parameters}


def torchinfo() -> dict[str, Any]:
    from torchinfo import summary

    result = summary(network(), (4, 8), verbose=0)
    return {"parameters": result.total_params, "operations": result.total_mult_adds, "text": str(result)}


def torchsummary() -> dict[str, Any]:
    import contextlib
    import io

    from torchsummary import summary

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        summary(network(), (8,), device="cpu")
    return {"text": text.getvalue()}


def higher() -> dict[str, Any]:
    import higher
    import torch

    model = network()
    inputs, targets = data()
    with higher.innerloop_ctx(model, torch.optim.SGD(model.parameters(), lr=0.1)) as (copy, optimizer):
        for _ in range(2):
            optimizer.step(torch.nn.functional.cross_entropy(copy(inputs), targets))
        loss = torch.nn.functional.cross_entropy(copy(inputs), targets)
        gradients = torch.autograd.grad(loss, copy.parameters(time=0))
    return {"loss": loss.item(), "gradients": [g.norm().item() for g in gradients]}


def tensorboard() -> dict[str, Any]:
    import torch
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_scalar("loss", torch.tensor(0.5), 1)
            writer.add_histogram("weights", torch.linspace(-1, 1, 9), 1)
            writer.add_pr_curve("curve", torch.tensor([1, 0, 1]), torch.tensor([0.9, 0.2, 0.4]), 1)
            writer.add_hparams({"lr": 0.1, "name": "x"}, {"accuracy": 0.5}, run_name="run")
        events = EventAccumulator(folder)
        events.Reload()
        histogram = events.Histograms("weights")[0].histogram_value
        curve = events.Tensors("curve")[0].tensor_proto
        return {
            "scalar": events.Scalars("loss")[0].value,
            "histogram": [histogram.min, histogram.max, histogram.num, histogram.sum],
            "curve": list(curve.float_val)[:20],
            "tags": sorted(events.Tags()["tensors"]),
        }
