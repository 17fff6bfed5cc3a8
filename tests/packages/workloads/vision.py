"""Workloads of packages for images, graphs and networks of other kinds."""

from __future__ import annotations

from typing import Any

from ._programs import numbers

__all__ = [
    "e3nn", "einops", "entmax", "kornia", "monai", "open_clip", "rotary_embedding_torch", "segmentation_models_pytorch", "timm", "torch_geometric",
    "torchvision", "vit_pytorch", "x_transformers",
]  # fmt: skip


def _image(size: int = 32, channels: int = 3) -> Any:
    import torch

    return torch.rand(1, channels, size, size, generator=torch.Generator().manual_seed(1))


def torchvision() -> dict[str, Any]:
    import torch
    import torchvision
    from torchvision.transforms import v2

    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=4).eval()
    output = model(_image(64))
    output.sum().backward()
    changed = v2.Compose(
        [v2.Resize(24, antialias=True), v2.CenterCrop(16), v2.Normalize([0.5] * 3, [0.2] * 3)]
    )(_image())
    return {
        "logits": numbers(output),
        "gradient": model.conv1.weight.grad.norm().item(),
        "changed": changed.sum().item(),
    }


def timm() -> dict[str, Any]:
    import timm
    import torch

    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=3).eval()
    network = timm.create_model("resnet10t", num_classes=3).eval()
    return {"vit": numbers(model(_image())), "resnet": numbers(network(_image(64)))}


def segmentation_models_pytorch() -> dict[str, Any]:
    import segmentation_models_pytorch as smp
    import torch

    torch.manual_seed(0)
    model = smp.Unet("resnet18", encoder_weights=None, classes=2).eval()
    return {"sum": model(_image(64)).double().sum().item()}


def vit_pytorch() -> dict[str, Any]:
    import torch
    from vit_pytorch import ViT

    torch.manual_seed(0)
    model = ViT(image_size=32, patch_size=8, num_classes=3, dim=32, depth=2, heads=2, mlp_dim=64).eval()
    return {"logits": numbers(model(_image()))}


def kornia() -> dict[str, Any]:
    import kornia

    return {
        "blur": kornia.filters.gaussian_blur2d(_image(), (3, 3), (1.0, 1.0)).sum().item(),
        "sobel": kornia.filters.sobel(_image()).sum().item(),
        "hsv": kornia.color.rgb_to_hsv(_image()).sum().item(),
    }


def monai() -> dict[str, Any]:
    import torch
    from monai.losses import DiceLoss
    from monai.networks.nets import UNet

    torch.manual_seed(0)
    model = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,)).eval()
    output = model(_image(16, 1))
    return {
        "sum": output.sum().item(),
        "dice": DiceLoss(sigmoid=True)(output, torch.ones_like(output)).item(),
    }


def open_clip() -> dict[str, Any]:
    import torch
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    torch.manual_seed(0)
    vision = CLIPVisionCfg(layers=2, width=32, head_width=16, patch_size=8, image_size=32)
    text = CLIPTextCfg(context_length=8, vocab_size=50, width=32, heads=2, layers=2)
    model = CLIP(16, vision, text).eval()
    return {
        "image": numbers(model.encode_image(_image())),
        "text": numbers(model.encode_text(torch.arange(8).view(1, 8))),
    }


def torch_geometric() -> dict[str, Any]:
    import torch
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GATConv, GCNConv, global_mean_pool

    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    batch = Batch.from_data_list([Data(x=torch.randn(4, 5), edge_index=edges) for _ in range(2)])
    hidden = GCNConv(5, 8)(batch.x, batch.edge_index).relu()
    output = GATConv(8, 3, heads=2)(hidden, batch.edge_index)
    return {"pooled": numbers(global_mean_pool(output, batch.batch))}


def e3nn() -> dict[str, Any]:
    import torch
    from e3nn import o3

    torch.manual_seed(0)
    linear = o3.Linear("2x0e + 1x1o", "1x0e + 1x1o")
    return {
        "harmonics": numbers(o3.spherical_harmonics([0, 1, 2], torch.randn(3, 3), True)),
        "linear": numbers(linear(torch.randn(2, 5))),
    }


def einops() -> dict[str, Any]:
    from einops import rearrange, reduce

    return {
        "patches": numbers(rearrange(_image(4), "b c (h p) w -> b (h c) p w", p=2)[0, 0]),
        "means": numbers(reduce(_image(), "b c h w -> c", "mean")),
    }


def entmax() -> dict[str, Any]:
    import torch
    from entmax import entmax15, sparsemax

    scores = torch.tensor([[1.0, 0.5, -1.0, 0.9]], requires_grad=True)
    (entmax15(scores, dim=-1)[0, 0] + sparsemax(scores, dim=-1)[0, 1]).backward()
    return {
        "entmax": numbers(entmax15(scores, dim=-1)),
        "sparsemax": numbers(sparsemax(scores, dim=-1)),
        "gradient": numbers(scores.grad),
    }


def rotary_embedding_torch() -> dict[str, Any]:
    import torch
    from rotary_embedding_torch import RotaryEmbedding

    torch.manual_seed(0)
    return {"rotated": numbers(RotaryEmbedding(dim=4).rotate_queries_or_keys(torch.randn(1, 2, 3, 4)))}


def x_transformers() -> dict[str, Any]:
    import torch
    from x_transformers import Decoder, TransformerWrapper

    torch.manual_seed(0)
    model = TransformerWrapper(
        num_tokens=20, max_seq_len=16, attn_layers=Decoder(dim=32, depth=2, heads=2)
    ).eval()
    return {"logits": numbers(model(torch.arange(6).view(1, 6))[0, -1])}
