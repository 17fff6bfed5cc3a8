"""Workloads of packages that look into models: attributions, counts of operations, summaries, graphs and pruning."""

from __future__ import annotations

import tempfile
from typing import Any

from ._programs import data, network, numbers

__all__ = [
    "captum_methods", "fvcore_flops", "ptflops_convolution", "safetensors_models", "tensorboard_graph", "thop_convolution", "torch_pruning",
    "torchinfo_convolution", "torchsummary_convolution", "torchviz",
]  # fmt: skip


def _convolutional() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 4, 3, stride=2),
        torch.nn.GELU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 3),
    ).eval()  # fmt: skip


def _image() -> Any:
    import torch

    return torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def captum_methods() -> dict[str, Any]:
    import numpy as np
    import torch
    from captum.attr import (
        DeepLift,
        DeepLiftShap,
        FeatureAblation,
        GradientShap,
        GuidedBackprop,
        GuidedGradCam,
        InputXGradient,
        KernelShap,
        LayerActivation,
        LayerGradCam,
        LayerIntegratedGradients,
        NeuronConductance,
        NoiseTunnel,
        Occlusion,
        Saliency,
        ShapleyValueSampling,
    )  # fmt: skip
    from captum.metrics import infidelity, sensitivity_max  # noqa: F401  (imported as programs do)

    model, image = _convolutional(), _image()
    small, inputs = network(), data()[0][:2]
    np.random.seed(0)  # noqa: NPY002  (captum draws from the global generator)
    torch.manual_seed(0)
    results = {
        "deeplift": DeepLift(model).attribute(image, target=1), "guided": GuidedBackprop(model).attribute(image.clone().requires_grad_(), target=1),
        "gradcam": LayerGradCam(model, model[4]).attribute(image, target=0), "guided_gradcam": GuidedGradCam(model, model[4]).attribute(image.clone().requires_grad_(), target=0),
        "occlusion": Occlusion(model).attribute(image, (3, 4, 4), target=0, strides=(3, 4, 4)), "activation": LayerActivation(model, model[0]).attribute(image),
        "ablation": FeatureAblation(small).attribute(inputs, target=1), "product": InputXGradient(small).attribute(inputs.clone().requires_grad_(), target=1),
        "layer": LayerIntegratedGradients(small, small[0]).attribute(inputs, target=1), "neuron": NeuronConductance(small, small[0]).attribute(inputs, 1, target=1),
        "shap": GradientShap(small).attribute(inputs, torch.zeros(2, 8), target=1), "deepshap": DeepLiftShap(small).attribute(inputs, torch.zeros(2, 8), target=1),
        "tunnel": NoiseTunnel(Saliency(small)).attribute(inputs.clone().requires_grad_(), nt_samples=2, target=1),
        "shapley": ShapleyValueSampling(small).attribute(inputs, target=1, n_samples=2),
    }  # fmt: skip
    return {
        **{name: value.double().abs().sum().item() for name, value in results.items()}, "kernel": list(KernelShap(small).attribute(inputs[:1], target=1, n_samples=20).shape),
    }  # fmt: skip


def fvcore_flops() -> dict[str, Any]:
    from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis, flop_count_table
    from fvcore.nn.precise_bn import update_bn_stats
    from fvcore.nn.weight_init import c2_msra_fill

    model = _convolutional()
    c2_msra_fill(model[0])
    update_bn_stats(model.train(), iter([_image(), _image() * 2]), 2)
    model.eval()
    flops = FlopCountAnalysis(model, _image())
    flops.unsupported_ops_warnings(False)
    return {
        "total": float(flops.total()), "operators": {key: float(value) for key, value in flops.by_operator().items()},
        "modules": {key: float(value) for key, value in flops.by_module().items()}, "activations": float(ActivationCountAnalysis(model, _image()).total()),
        "lines": len(flop_count_table(flops).splitlines()), "mean": numbers(model[1].running_mean),
    }  # fmt: skip


def ptflops_convolution() -> dict[str, Any]:
    from ptflops import get_model_complexity_info

    results = {}
    for backend in ("pytorch", "aten"):
        macs, parameters = get_model_complexity_info(
            _convolutional(),
            (3, 16, 16),
            as_strings=False,
            print_per_layer_stat=False,
            backend=backend,
            verbose=False,
        )
        results[backend] = [macs, parameters]
    return results


def thop_convolution() -> dict[str, Any]:
    from thop import clever_format, profile

    macs, parameters = profile(_convolutional(), (_image(),), verbose=False)
    return {"macs": macs, "parameters": parameters, "text": list(clever_format([macs, parameters], "%.3f"))}


def torchinfo_convolution() -> dict[str, Any]:
    from torchinfo import summary

    columns = ("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable")
    result = summary(
        _convolutional(), (2, 3, 16, 16), verbose=0, depth=2, col_names=columns, row_settings=("var_names",)
    )
    return {"text": str(result), "operations": result.total_mult_adds}


def torchsummary_convolution() -> dict[str, Any]:
    import contextlib
    import io

    from torchsummary import summary

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        summary(_convolutional(), (3, 16, 16), batch_size=2, device="cpu")
    return {"text": text.getvalue()}


def torchviz() -> dict[str, Any]:
    from torchviz import make_dot

    model = network()
    text = make_dot(
        model(data()[0][:2]).sum(), params=dict(model.named_parameters()), show_attrs=False
    ).source
    return {
        "backward": sorted({word for word in text.replace('"', " ").split() if "Backward" in word}),
        "edges": text.count("->"),
    }


def torch_pruning() -> dict[str, Any]:
    import torch_pruning as pruning

    model = _convolutional()
    pruner = pruning.pruner.MagnitudePruner(
        model,
        _image(),
        importance=pruning.importance.MagnitudeImportance(p=2),
        pruning_ratio=0.5,
        ignored_layers=[model[8]],
    )
    before = pruning.utils.count_ops_and_params(model, _image())
    pruner.step()
    after = pruning.utils.count_ops_and_params(model, _image())
    return {
        "before": list(map(float, before)),
        "after": list(map(float, after)),
        "output": numbers(model(_image())),
    }


def safetensors_models() -> dict[str, Any]:
    import torch
    from safetensors.torch import load, load_model, save, save_model

    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(6, 4)
            self.head = torch.nn.Linear(4, 6, bias=False)
            self.head.weight = self.embedding.weight

    torch.manual_seed(0)
    model = Tied()
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, f"{folder}/model.safetensors", metadata={"format": "pt"})
        other = Tied()
        missing, unexpected = load_model(other, f"{folder}/model.safetensors")
    data_types = {
        str(kind): torch.arange(4).to(kind) for kind in (torch.float16, torch.int8, torch.uint8, torch.bool, torch.int64, torch.float64, torch.complex64)
    }  # fmt: skip
    loaded = load(save({key: value for key, value in data_types.items() if "complex" not in key}))
    return {
        "weight": numbers(other.head.weight), "missing": sorted(missing), "unexpected": unexpected, "loaded": {k: [str(v.dtype), *v.tolist()] for k, v in sorted(loaded.items())},
    }  # fmt: skip


def tensorboard_graph() -> dict[str, Any]:
    import numpy as np
    import torch
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_graph(network(), data()[0][:2])
            writer.add_embedding(data()[0], metadata=data()[1].tolist(), tag="points", global_step=2)
            writer.add_image("image", _image()[0], 1)
            writer.add_images("images", _image(), 1)
            writer.add_text("text", "hello", 1)
            writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 1)
            writer.add_mesh("mesh", torch.rand(1, 4, 3))
            writer.add_custom_scalars({"group": {"chart": ["Multiline", ["both/a"]]}})
            writer.add_histogram_raw("raw", 0.0, 1.0, 2, 1.0, 1.0, np.array([0.5, 1.0]), np.array([1, 1]), 1)
            writer.add_pr_curve(
                "curve", torch.tensor([1, 0, 1, 1]), torch.tensor([0.9, 0.2, 0.4, 0.6]), 1, num_thresholds=5
            )
        events = EventAccumulator(folder)
        events.Reload()
        graph = events.Graph()
        import glob
        import os

        files = sorted(
            os.path.basename(path)
            for path in glob.glob(f"{folder}/**/*", recursive=True)
            if "events" not in path
        )
        tags = events.Tags()
        return {
            "nodes": sorted({node.op for node in graph.node}), "files": files, "tags": {key: sorted(tags[key]) for key in ("images", "scalars", "tensors", "histograms")},
            "image": [events.Images("image")[0].width, events.Images("image")[0].height],
        }  # fmt: skip
