"""Workloads of packages with networks for images, graphs, sequences and sound: several families of models each, with gradients."""

from __future__ import annotations

from typing import Any

from ._programs import numbers

__all__ = [
    "denoising_diffusion_pytorch", "e3nn_tensor_product", "einops_layers", "kornia_geometry", "lpips", "nnaudio", "open_clip_loss", "pytorch_crf",
    "pytorch_msssim", "segmentation_models_families", "timm_families", "timm_features", "torch_geometric_loader",
    "torch_geometric_models", "torchvision_models", "torchvision_ops", "torchvision_transforms", "ultralytics",
    "vector_quantize_pytorch", "vit_pytorch_families", "x_transformers_training",
]  # fmt: skip


def _image(size: int = 32, channels: int = 3, count: int = 1) -> Any:
    import torch

    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(1))


def _trained(model: Any, inputs: Any) -> list[float]:
    """The output of a model in a training step, and the size of its gradients."""
    output = model(inputs)
    output = getattr(output, "logits", output)
    if isinstance(output, dict):
        output = output["out"]
    loss = output.square().mean()
    loss.backward()
    return [
        loss.item(),
        sum(p.grad.double().abs().mean().item() for p in model.parameters() if p.grad is not None),
    ]


def torchvision_models() -> dict[str, Any]:
    import torch
    from torchvision import models

    results = {}
    for name, size in (
        ("mobilenet_v2", 32), ("mobilenet_v3_small", 32), ("efficientnet_b0", 32), ("squeezenet1_1", 64), ("shufflenet_v2_x0_5", 32),
        ("regnet_y_400mf", 32), ("convnext_tiny", 32), ("vgg11_bn", 32), ("densenet121", 32), ("swin_t", 32), ("mnasnet0_5", 32),
    ):  # fmt: skip
        torch.manual_seed(0)
        model = models.get_model(name, weights=None, num_classes=4).eval()
        results[name] = numbers(model(_image(size)))
    torch.manual_seed(0)
    model = models.mobilenet_v2(num_classes=4, dropout=0.0, width_mult=0.25).train()
    results["training"] = _trained(model, _image(64, 3, 4))
    results["running"] = model.features[0][1].running_mean.double().sum().item()
    return results


def torchvision_ops() -> dict[str, Any]:
    """The ops that are Python in torchvision: its C++ ones need a build for CUDA where facts are recorded."""
    import torch
    from torchvision import ops, utils

    generator = torch.Generator().manual_seed(2)
    corners = torch.rand(6, 2, generator=generator) * 10
    boxes = torch.cat([corners, corners + 5 + torch.rand(6, 2, generator=generator) * 5], 1)
    scores = torch.rand(6, generator=generator)
    features = torch.rand(1, 4, 12, 12, generator=generator)
    pyramid = ops.FeaturePyramidNetwork([4, 4], 3)
    torch.manual_seed(0)
    for parameter in pyramid.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    levels = pyramid({"a": features, "b": features[:, :, ::2, ::2]})
    return {
        "iou": numbers(ops.box_iou(boxes, boxes)),
        "giou": numbers(ops.generalized_box_iou(boxes[:2], boxes)),
        "converted": numbers(ops.box_convert(boxes, "xyxy", "cxcywh")[:2]),
        "focal": ops.sigmoid_focal_loss(scores, (scores > 0.5).float(), reduction="mean").item(),
        "diou": numbers(ops.distance_box_iou_loss(boxes[:3], boxes[3:])),
        "ciou": numbers(ops.complete_box_iou_loss(boxes[:3], boxes[3:])),
        "clipped": numbers(ops.clip_boxes_to_image(boxes, (9, 9))),
        "masks": numbers(ops.masks_to_boxes(features[0] > 0.9)),
        "levels": [level.double().sum().item() for level in levels.values()],
        "grid": list(utils.make_grid(_image(8, 3, 5), nrow=3).shape),
        "drawn": utils.draw_bounding_boxes((_image(32)[0] * 255).byte(), boxes[:2]).double().sum().item(),
        "squeezed": list(ops.SqueezeExcitation(4, 2)(features).shape),
    }


def torchvision_transforms() -> dict[str, Any]:
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import functional as old
    from torchvision.transforms import v2

    torch.manual_seed(0)
    image = tv_tensors.Image((_image(24)[0] * 255).byte())
    boxes = tv_tensors.BoundingBoxes(torch.tensor([[2, 3, 10, 12]]), format="XYXY", canvas_size=(24, 24))
    mask = tv_tensors.Mask((_image(24, 1)[0] > 0.5).byte())
    chain = v2.Compose(
        [
            v2.RandomResizedCrop(16, antialias=True), v2.RandomHorizontalFlip(1.0), v2.ColorJitter(0.2, 0.2, 0.2, 0.1), v2.RandomRotation(20),
            v2.GaussianBlur(3), v2.RandomAdjustSharpness(2, 1.0), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3),
        ]
    )  # fmt: skip
    out_image, out_boxes, out_mask = chain(image, boxes, mask)
    single = {
        "affine": old.affine(_image(16), 10.0, [1, 2], 1.1, [3.0, 2.0]), "perspective": old.perspective(_image(16), [[0, 0], [15, 0], [15, 15], [0, 15]], [[1, 1], [14, 0], [15, 14], [0, 15]]),
        "gray": old.rgb_to_grayscale(_image(16)), "hue": old.adjust_hue(_image(16), 0.2), "equalize": old.equalize((_image(16) * 255).byte()),
        "pad": old.pad(_image(8), [1, 2], padding_mode="reflect"), "contrast": old.adjust_contrast(_image(8), 1.3), "posterize": old.posterize((_image(8) * 255).byte(), 3),
    }  # fmt: skip
    torch.manual_seed(1)
    mixed, labels = v2.MixUp(num_classes=3)(_image(8, 3, 2), torch.tensor([0, 2]))
    return {
        "image": out_image.double().sum().item(), "boxes": out_boxes.tolist(), "mask": out_mask.double().sum().item(), "kinds": [type(out_image).__name__, type(out_boxes).__name__],
        **{key: value.double().sum().item() for key, value in single.items()}, "mixed": mixed.double().sum().item(), "labels": numbers(labels),
        "augmented": v2.AutoAugment()((_image(16)[0] * 255).byte()).shape[0], "erased": v2.RandomErasing(1.0)(_image(8)[0]).double().sum().item(),
    }  # fmt: skip


def timm_families() -> dict[str, Any]:
    import timm
    import torch

    results = {}
    for name, size, options in (
        ("resnet18", 32, {}), ("efficientnet_b0", 32, {}), ("mobilenetv3_small_050", 32, {}), ("convnext_atto", 32, {}), ("deit_tiny_patch16_224", 32, {"img_size": 32}),
        ("swin_tiny_patch4_window7_224", 56, {"img_size": 56, "window_size": 7}), ("mixer_s32_224", 64, {"img_size": 64}), ("regnetx_002", 32, {}), ("ghostnet_050", 32, {}), ("poolformer_s12", 32, {}),
    ):  # fmt: skip
        torch.manual_seed(0)
        model = timm.create_model(name, num_classes=3, **options).eval()
        results[name] = numbers(model(_image(size)))
    torch.manual_seed(0)
    results["training"] = _trained(timm.create_model("resnet18", num_classes=3), _image(32, 3, 2))
    return results


def timm_features() -> dict[str, Any]:
    import timm
    import torch
    from timm.data import Mixup, create_transform, resolve_data_config
    from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
    from timm.scheduler import CosineLRScheduler
    from timm.utils import AverageMeter, ModelEmaV3, accuracy

    torch.manual_seed(0)
    model = timm.create_model("resnet18", features_only=True, out_indices=(1, 3)).eval()
    maps = model(_image(64))
    classifier = timm.create_model("resnet18", num_classes=0).eval()
    pooled = classifier(_image(32))
    transform = create_transform(**resolve_data_config({}, model=classifier), is_training=False)
    average = ModelEmaV3(classifier, decay=0.5)
    average.update(classifier)
    optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
    schedule = CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=0.01)
    rates = []
    for epoch in range(4):
        schedule.step(epoch)
        rates.append(optimizer.param_groups[0]["lr"])
    scores = torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
    meter = AverageMeter()
    meter.update(2.0, 3)
    return {
        "maps": [m.double().sum().item() for m in maps], "pooled": pooled.double().sum().item(), "transform": len(transform.transforms), "rates": rates,
        "smooth": LabelSmoothingCrossEntropy(0.1)(scores, torch.tensor([0, 1, 2, 0])).item(), "soft": SoftTargetCrossEntropy()(scores, scores.softmax(-1)).item(),
        "accuracy": [v.item() for v in accuracy(scores, torch.tensor([0, 1, 2, 0]), topk=(1, 2))], "meter": meter.avg, "mixup": Mixup.__name__,
    }  # fmt: skip


def segmentation_models_families() -> dict[str, Any]:
    import segmentation_models_pytorch as smp
    import torch

    results: dict[str, Any] = {}
    for kind in (smp.FPN, smp.Linknet, smp.DeepLabV3Plus, smp.UnetPlusPlus, smp.MAnet):
        torch.manual_seed(0)
        model = kind("resnet18", encoder_weights=None, classes=2).eval()
        with torch.no_grad():
            results[kind.__name__] = model(_image(64)).double().sum().item()
    scores = torch.randn(1, 2, 8, 8, generator=torch.Generator().manual_seed(2))
    target = (scores.roll(1, -1).argmax(1)).long()
    for loss in (
        smp.losses.DiceLoss("multiclass"), smp.losses.FocalLoss("multiclass"), smp.losses.JaccardLoss("multiclass"), smp.losses.LovaszLoss("multiclass"),
        smp.losses.TverskyLoss("multiclass"),
    ):  # fmt: skip
        results[type(loss).__name__] = loss(scores, target).item()
    stats = smp.metrics.get_stats(scores.argmax(1), target, mode="multiclass", num_classes=2)
    results["iou"] = smp.metrics.iou_score(*stats, reduction="micro").item()
    return results


def vit_pytorch_families() -> dict[str, Any]:
    import torch
    from vit_pytorch import SimpleViT
    from vit_pytorch.cait import CaiT
    from vit_pytorch.cct import CCT
    from vit_pytorch.deepvit import DeepViT

    results: dict[str, Any] = {}
    common = {
        "image_size": 32,
        "patch_size": 8,
        "num_classes": 3,
        "dim": 32,
        "depth": 2,
        "heads": 2,
        "mlp_dim": 48,
    }
    for kind, extra in ((SimpleViT, {}), (DeepViT, {}), (CaiT, {"cls_depth": 1})):
        torch.manual_seed(0)
        results[kind.__name__] = _trained(kind(**common, **extra).eval(), _image(32))
    torch.manual_seed(0)
    results["CCT"] = numbers(
        CCT(
            img_size=32,
            embedding_dim=16,
            n_conv_layers=1,
            num_layers=2,
            num_heads=2,
            mlp_ratio=2.0,
            num_classes=3,
        ).eval()(_image(32))
    )
    return results


def kornia_geometry() -> dict[str, Any]:
    import kornia
    import torch
    from kornia import augmentation

    torch.manual_seed(0)
    image = _image(16).requires_grad_()
    rotated = kornia.geometry.transform.rotate(image, torch.tensor([30.0]))
    rotated.square().sum().backward()
    chain = augmentation.AugmentationSequential(
        augmentation.RandomHorizontalFlip(p=1.0), augmentation.RandomAffine(15.0, p=1.0), augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
        data_keys=["input", "mask"],
    )  # fmt: skip
    changed, mask = chain(_image(16), (_image(16, 1) > 0.5).float())
    points = torch.tensor([[[1.0, 2.0], [3.0, 1.0], [4.0, 5.0], [0.0, 4.0]]])
    homography = kornia.geometry.homography.find_homography_dlt(points, points * 2 + 1)
    return {
        "rotated": rotated.sum().item(), "gradient": image.grad.sum().item(), "changed": changed.sum().item(), "mask": mask.sum().item(),
        "homography": numbers(homography), "canny": kornia.filters.canny(_image(16))[0].sum().item(), "harris": kornia.feature.harris_response(_image(16, 1), 0.04).sum().item(),
        "ssim": kornia.metrics.ssim(_image(16), _image(16).flip(-1), 5).sum().item(), "lab": kornia.color.rgb_to_lab(_image(8)).sum().item(),
        "dilated": kornia.morphology.dilation(_image(8), torch.ones(3, 3)).sum().item(), "dice": kornia.losses.dice_loss(_image(8, 2), torch.ones(1, 8, 8, dtype=torch.long)).item(),
        "axis": numbers(kornia.geometry.conversions.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]]))),
        "warp": kornia.geometry.transform.warp_perspective(_image(8), torch.eye(3)[None], (8, 8)).sum().item(),
    }  # fmt: skip


def _graph() -> Any:
    import torch
    from torch_geometric.data import Data

    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(0, 12, (2, 40), generator=generator)
    return Data(
        x=torch.randn(12, 5, generator=generator), edge_index=edges, y=torch.randint(0, 3, (12,), generator=generator),
        edge_attr=torch.rand(40, 2, generator=generator),
    )  # fmt: skip


def torch_geometric_models() -> dict[str, Any]:
    import torch
    from torch_geometric import nn
    from torch_geometric.utils import add_self_loops, degree, softmax, to_dense_adj, to_undirected

    graph = _graph()
    results: dict[str, Any] = {}
    for name, layer in (
        ("sage", lambda: nn.SAGEConv(5, 3)), ("gin", lambda: nn.GINConv(torch.nn.Linear(5, 3))), ("gatv2", lambda: nn.GATv2Conv(5, 3, heads=2, edge_dim=2)),
        ("transformer", lambda: nn.TransformerConv(5, 3, heads=2)), ("cheb", lambda: nn.ChebConv(5, 3, 2)), ("tag", lambda: nn.TAGConv(5, 3)),
        ("graph", lambda: nn.GraphConv(5, 3)), ("nnconv", lambda: nn.NNConv(5, 3, torch.nn.Linear(2, 15))), ("edge", lambda: nn.EdgeConv(torch.nn.Linear(10, 3))),
    ):  # fmt: skip
        torch.manual_seed(0)
        module = layer()
        arguments = (
            (graph.x, graph.edge_index, graph.edge_attr)
            if name in ("gatv2", "nnconv")
            else (graph.x, graph.edge_index)
        )
        output = module(*arguments)
        output.square().mean().backward()
        results[name] = [
            output.double().sum().item(), sum(p.grad.double().abs().sum().item() for p in module.parameters())
        ]  # fmt: skip
    torch.manual_seed(0)
    model = nn.GCN(5, 8, num_layers=2, out_channels=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(graph.x, graph.edge_index), graph.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    undirected = to_undirected(graph.edge_index)
    return {
        **results, "losses": losses, "dense": to_dense_adj(graph.edge_index).sum().item(), "degree": numbers(degree(undirected[0], 12)),
        "loops": add_self_loops(graph.edge_index)[0].shape[1], "softmax": numbers(softmax(graph.edge_attr[:, 0], graph.edge_index[1])[:5]),
    }  # fmt: skip


def torch_geometric_loader() -> dict[str, Any]:
    import torch
    from torch_geometric.data import HeteroData
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import (
        GCNConv,
        HeteroConv,
        SAGEConv,
        Sequential,
        TopKPooling,
        global_add_pool,
        global_max_pool,
    )
    from torch_geometric.transforms import Compose, NormalizeFeatures, RandomNodeSplit, ToUndirected

    torch.manual_seed(0)
    graphs = [
        Compose([NormalizeFeatures(), ToUndirected(), RandomNodeSplit(num_val=2, num_test=2)])(_graph())
        for _ in range(4)
    ]
    model = Sequential(
        "x, edge_index",
        [(GCNConv(5, 8), "x, edge_index -> x"), torch.nn.ReLU(), (GCNConv(8, 4), "x, edge_index -> x")],
    )
    pool = TopKPooling(4, ratio=0.5)
    sums = []
    for batch in DataLoader(graphs, batch_size=2):
        hidden = model(batch.x, batch.edge_index)
        sums.append(global_add_pool(hidden, batch.batch).double().sum().item())
        kept, _edges, _attr, kept_batch, _perm, _score = pool(hidden, batch.edge_index, None, batch.batch)
        sums.append(global_max_pool(kept, kept_batch).double().sum().item())
    hetero = HeteroData()
    hetero["a"].x, hetero["b"].x = torch.randn(4, 3), torch.randn(5, 3)
    hetero["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]])
    hetero["b", "back", "a"].edge_index = torch.tensor([[0, 1, 4], [0, 3, 2]])
    layer = HeteroConv({("a", "to", "b"): SAGEConv((3, 3), 2), ("b", "back", "a"): SAGEConv((3, 3), 2)})
    out = layer(hetero.x_dict, hetero.edge_index_dict)
    return {"sums": sums, "hetero": {key: numbers(value) for key, value in out.items()}}


def e3nn_tensor_product() -> dict[str, Any]:
    import torch
    from e3nn import nn, o3

    torch.manual_seed(0)
    product = o3.FullyConnectedTensorProduct("2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 1x1o + 1x1e")
    left, right = torch.randn(3, 5, requires_grad=True), torch.randn(3, 4)
    output = product(left, right)
    output.square().sum().backward()
    gate = nn.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
    rotation = o3.rand_matrix()
    irreps = o3.Irreps("1x0e + 1x1o")
    return {
        "output": numbers(output), "gradient": numbers(left.grad), "gate": numbers(gate(torch.randn(2, gate.irreps_in.dim))),
        "wigner": numbers(o3.wigner_3j(1, 1, 2)), "matrix": numbers(irreps.D_from_matrix(rotation)), "dim": irreps.dim,
        "normalized": numbers(nn.BatchNorm("2x0e + 1x1o")(torch.randn(4, 5))), "path": numbers(o3.ElementwiseTensorProduct("1x1o", "1x1o")(torch.ones(1, 3), torch.ones(1, 3))),
    }  # fmt: skip


def einops_layers() -> dict[str, Any]:
    import torch
    from einops import einsum, pack, parse_shape, repeat, unpack
    from einops.layers.torch import EinMix, Rearrange, Reduce

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4), EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=6),
        Reduce("b t d -> b d", "max"),
    )  # fmt: skip
    packed, shapes = pack([torch.ones(2, 3), torch.ones(2, 4, 2)], "a *")
    return {
        "output": _trained(model, _image(16)), "einsum": numbers(einsum(_image(4), _image(4), "b c h w, b d h w -> c d")),
        "packed": list(packed.shape), "unpacked": [list(part.shape) for part in unpack(packed, shapes, "a *")],
        "repeat": list(repeat(_image(4), "b c h w -> b c (h 2) w").shape), "parsed": parse_shape(_image(4), "b c _ w"),
    }  # fmt: skip


def open_clip_loss() -> dict[str, Any]:
    import torch
    from open_clip import create_model
    from open_clip.loss import ClipLoss, SigLipLoss

    torch.manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(4, 8), dim=-1)
    texts = torch.nn.functional.normalize(torch.randn(4, 8), dim=-1)
    return {
        "clip": ClipLoss()(features, texts, torch.tensor(10.0)).item(), "siglip": SigLipLoss()(features, texts, torch.tensor(10.0), torch.tensor(-1.0)).item(),
        "model": create_model.__name__,
    }  # fmt: skip


def x_transformers_training() -> dict[str, Any]:
    import torch
    from x_transformers import (
        AutoregressiveWrapper,
        ContinuousTransformerWrapper,
        Decoder,
        Encoder,
        TransformerWrapper,
        XTransformer,
    )

    torch.manual_seed(0)
    model = AutoregressiveWrapper(
        TransformerWrapper(
            num_tokens=20, max_seq_len=16,
            attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True, attn_qk_norm=True),
        )
    )  # fmt: skip
    tokens = torch.arange(10).view(1, 10)
    loss = model(tokens)
    loss.backward()
    generated = model.eval().generate(tokens[:, :3], 4, temperature=0.0)
    torch.manual_seed(0)
    pair = XTransformer(
        dim=16,
        enc_num_tokens=20,
        enc_depth=1,
        enc_heads=2,
        enc_max_seq_len=16,
        dec_num_tokens=20,
        dec_depth=1,
        dec_heads=2,
        dec_max_seq_len=16,
    )
    pair_loss = pair(tokens, tokens[:, :6])
    continuous = ContinuousTransformerWrapper(
        dim_in=4, dim_out=3, max_seq_len=8, attn_layers=Encoder(dim=16, depth=1, heads=2, alibi_pos_bias=True)
    )
    return {
        "loss": loss.item(), "gradient": sum(p.grad.double().norm().item() for p in model.parameters() if p.grad is not None), "generated": generated.tolist(),
        "pair": pair_loss.item(), "continuous": continuous(torch.randn(1, 6, 4)).double().sum().item(),
    }  # fmt: skip


def vector_quantize_pytorch() -> dict[str, Any]:
    import torch
    from vector_quantize_pytorch import FSQ, LFQ, VectorQuantize

    torch.manual_seed(0)
    quantizer = VectorQuantize(dim=8, codebook_size=16, decay=0.8)
    inputs = torch.randn(2, 5, 8, requires_grad=True)
    quantized, indices, loss = quantizer(inputs)
    (quantized.sum() + loss.sum()).backward()
    finite, codes = FSQ([4, 5, 3])(torch.randn(1, 6, 3))
    lookup = LFQ(codebook_size=16, dim=4)(torch.randn(1, 6, 4))
    return {
        "quantized": quantized.double().sum().item(), "indices": indices.tolist(), "loss": loss.sum().item(), "gradient": inputs.grad.double().sum().item(),
        "finite": finite.double().sum().item(), "codes": codes.tolist(), "lookup": lookup.indices.tolist(),
    }  # fmt: skip


def denoising_diffusion_pytorch() -> dict[str, Any]:
    import torch
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    torch.manual_seed(0)
    diffusion = GaussianDiffusion(
        Unet(dim=8, dim_mults=(1, 2), flash_attn=False, attn_heads=2, attn_dim_head=8),
        image_size=8,
        timesteps=8,
        sampling_timesteps=2,
    )
    loss = diffusion(_image(8, 3, 2))
    loss.backward()
    with torch.no_grad():
        sample = diffusion.sample(batch_size=1)
    return {"loss": loss.item(), "sample": sample.double().sum().item()}


def lpips() -> dict[str, Any]:
    import lpips
    import torch

    torch.manual_seed(0)
    model = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False).eval()
    return {"distance": model(_image(64) * 2 - 1, _image(64).flip(-1) * 2 - 1).item()}


def pytorch_msssim() -> dict[str, Any]:
    from pytorch_msssim import MS_SSIM, ssim

    image = _image(180).requires_grad_()
    value = ssim(image, _image(180).flip(-1), data_range=1.0)
    value.backward()
    return {
        "ssim": value.item(), "gradient": image.grad.double().abs().sum().item(),
        "ms": MS_SSIM(data_range=1.0, channel=3)(_image(180), _image(180) * 0.9).item(),
    }  # fmt: skip


def pytorch_crf() -> dict[str, Any]:
    import torch
    from torchcrf import CRF

    torch.manual_seed(0)
    model = CRF(4, batch_first=True)
    scores = torch.randn(2, 5, 4, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    likelihood = model(scores, torch.randint(0, 4, (2, 5)), mask=mask)
    likelihood.backward()
    return {
        "likelihood": likelihood.item(),
        "gradient": numbers(scores.grad),
        "best": model.decode(scores, mask),
    }


def nnaudio() -> dict[str, Any]:
    import torch
    from nnAudio import features

    wave = torch.sin(torch.arange(2048) / 20.0)[None]
    mel = features.MelSpectrogram(sr=8000, n_fft=256, n_mels=16, hop_length=128, verbose=False)
    return {
        "stft": features.STFT(n_fft=256, hop_length=128, output_format="Magnitude", verbose=False)(wave).double().sum().item(),
        "mel": mel(wave).double().sum().item(), "mfcc": features.MFCC(sr=8000, n_mfcc=8, n_fft=256, n_mels=16, hop_length=128, verbose=False)(wave).double().sum().item(),
    }  # fmt: skip


def ultralytics() -> dict[str, Any]:
    import torch
    from ultralytics.nn.tasks import DetectionModel
    from ultralytics.utils.nms import non_max_suppression

    torch.manual_seed(0)
    model = DetectionModel("yolov8n.yaml", nc=3, verbose=False).eval()
    with torch.no_grad():
        output = model(_image(64))[0]
    found = non_max_suppression(output, conf_thres=0.001, max_det=5)
    return {
        "output": output.double().sum().item(),
        "count": len(found),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
