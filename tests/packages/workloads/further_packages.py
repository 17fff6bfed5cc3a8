"""Workloads from the quick starts of further packages, and of ways in which known packages were not used elsewhere."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from ._programs import data, lightning_module, network, numbers

__all__ = [
    "deepctr_torch", "fastai_vision", "keras", "kornia_hausdorff", "laplace_torch", "lightly", "lightning_ddp", "monai_batches", "pyro_jit",
    "snntorch", "torch_geometric_hetero", "torchrl_sac", "torchdata", "torchio", "transformers_mamba",
]  # fmt: skip


def _loader(batch_size: int = 8) -> Any:
    import torch

    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data(64)), batch_size=batch_size)


def keras() -> dict[str, Any]:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((12, 12, 1)), layers.Conv2D(4, 3, padding="same", activation="relu"), layers.BatchNormalization(),
            layers.MaxPooling2D(), layers.Flatten(), layers.Dense(2, activation="softmax"),
        ]
    )  # fmt: skip
    model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])
    images = np.random.RandomState(0).rand(16, 12, 12, 1).astype("float32")
    options = {"epochs": 2, "batch_size": 4, "verbose": 0, "shuffle": False}
    history = model.fit(images, np.arange(16) % 2, **options).history
    sequence = keras.Sequential([layers.Embedding(20, 8), layers.LSTM(6), layers.Dense(1)])
    sequence.compile("rmsprop", "mse")
    losses = sequence.fit(np.arange(40).reshape(8, 5) % 20, np.arange(8.0) / 8, **options).history
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        loaded = keras.models.load_model(f"{folder}/model.keras")
    predictions = loaded.predict(images[:2], verbose=0)
    return {"history": history, "losses": losses, "predictions": predictions.tolist()}


def lightning_ddp() -> dict[str, Any]:
    import lightning as L
    import torch

    L.seed_everything(1, workers=True, verbose=False)
    model = lightning_module(torch.optim.AdamW, lr=0.05)
    L.Trainer(
        strategy="ddp", devices=1, accelerator="cpu", max_epochs=1, enable_progress_bar=False, logger=False,
        enable_checkpointing=False, enable_model_summary=False,
    ).fit(model, _loader())  # fmt: skip
    return {"losses": model.losses}


def fastai_vision() -> dict[str, Any]:
    import numpy as np
    import torch
    from fastai.vision.all import (
        CategoryBlock,
        CrossEntropyLossFlat,
        DataBlock,
        ImageBlock,
        Learner,
        Normalize,
        PILImage,
        imagenet_stats,
        set_seed,
    )
    from fastai.vision.augment import Resize, aug_transforms

    set_seed(0, True)
    pixels = [(np.random.RandomState(i).rand(16, 16, 3) * 255).astype("uint8") for i in range(12)]
    block = DataBlock(
        blocks=(ImageBlock, CategoryBlock), get_x=lambda i: PILImage.create(pixels[i]), get_y=lambda i: i % 2,
        splitter=lambda items: (list(range(8)), list(range(8, 12))), item_tfms=Resize(16),
        batch_tfms=[*aug_transforms(), Normalize.from_stats(*imagenet_stats)],
    )  # fmt: skip
    loaders = block.dataloaders(list(range(12)), bs=4, num_workers=0)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 2), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(4, 2),
    )  # fmt: skip
    learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat())
    with learner.no_bar(), learner.no_logging():
        learner.fit(2, 1e-2)
    images, classes = loaders.train.one_batch()
    return {
        "values": [list(map(float, row)) for row in learner.recorder.values],
        "kinds": [type(images).__name__, type(classes).__name__],
    }


def pyro_jit() -> dict[str, Any]:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, JitTrace_ELBO
    from pyro.infer.autoguide import AutoNormal

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    inputs, _ = data()

    def model(x: Any, y: Any) -> None:
        weight = pyro.sample("weight", dist.Normal(0.0, 1.0).expand([8]).to_event(1))
        with pyro.plate("rows", len(x)):
            pyro.sample("y", dist.Normal(x @ weight, 0.5), obs=y)

    guide = AutoNormal(model)
    inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), JitTrace_ELBO(ignore_jit_warnings=True))
    return {"losses": [inference.step(inputs, inputs[:, 0] * 2) for _ in range(4)]}


def laplace_torch() -> dict[str, Any]:
    import torch
    from laplace import Laplace

    inputs, targets = data()
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), 8)
    results = {}
    for weights, structure in (("last_layer", "kron"), ("last_layer", "full"), ("all", "diag")):
        posterior = Laplace(model, "classification", subset_of_weights=weights, hessian_structure=structure)
        posterior.fit(loader)
        posterior.optimize_prior_precision(method="marglik", n_steps=20)
        results[f"{weights} {structure}"] = numbers(posterior(inputs[:3], link_approx="probit"))
    return results


def torchio() -> dict[str, Any]:
    import torch
    import torchio as tio

    torch.manual_seed(0)
    subject = tio.Subject(
        scan=tio.ScalarImage(tensor=torch.rand(1, 12, 12, 12)),
        labels=tio.LabelMap(tensor=(torch.rand(1, 12, 12, 12) > 0.5).float()),
    )
    transform = tio.Compose(
        [
            tio.RandomFlip(axes=(0,)), tio.RandomNoise(p=1), tio.RescaleIntensity((0, 1)), tio.ZNormalization(), tio.RandomGamma(),
            tio.CropOrPad(10),
        ]
    )  # fmt: skip
    result = transform(subject)
    return {"scan": numbers(result.scan.data.sum((1, 2))), "labels": result.labels.data.sum().item()}


def snntorch() -> dict[str, Any]:
    import snntorch as snn
    import torch
    from snntorch import functional, spikegen, surrogate

    torch.manual_seed(0)
    neurons = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
    linear = torch.nn.Linear(8, 5)
    membrane = neurons.init_leaky()
    spikes = []
    for step in spikegen.rate(torch.rand(4, 8), num_steps=5):
        spike, membrane = neurons(linear(step), membrane)
        spikes.append(spike)
    loss = functional.ce_rate_loss()(torch.stack(spikes), torch.tensor([0, 1, 2, 3]))
    loss.backward()
    return {"loss": loss.item(), "gradient": numbers(linear.weight.grad)}


def lightly() -> dict[str, Any]:
    import torch
    from lightly.loss import BarlowTwinsLoss, DINOLoss, NegativeCosineSimilarity, NTXentLoss, VICRegLoss
    from lightly.models.modules import SimCLRProjectionHead

    torch.manual_seed(0)
    first, second = torch.randn(8, 16), torch.randn(8, 16)
    head = SimCLRProjectionHead(16, 16, 8)
    losses = [
        NTXentLoss()(head(first), head(second)), BarlowTwinsLoss()(first, second), NegativeCosineSimilarity()(first, second),
        VICRegLoss()(first, second), DINOLoss(output_dim=16)([first, second], [first, second], 1),
    ]  # fmt: skip
    losses[0].backward()
    return {
        "losses": [loss.item() for loss in losses],
        "gradient": sum(p.grad.abs().sum().item() for p in head.parameters() if p.grad is not None),
    }


def deepctr_torch() -> dict[str, Any]:
    import numpy as np
    from deepctr_torch.inputs import DenseFeat, SparseFeat
    from deepctr_torch.models import DCN, WDL, AutoInt, DeepFM

    random = np.random.RandomState(0)
    features = [SparseFeat("a", 5, 4), SparseFeat("b", 6, 4), DenseFeat("c", 1)]
    rows = {"a": random.randint(0, 5, 32), "b": random.randint(0, 6, 32), "c": random.rand(32)}
    clicks = random.randint(0, 2, 32)
    results = {}
    for kind in (DeepFM, WDL, DCN, AutoInt):
        model = kind(features, features, task="binary", device="cpu", seed=1)
        model.compile("adagrad", "binary_crossentropy", metrics=["auc"])
        history = model.fit(rows, clicks, batch_size=8, epochs=2, verbose=0, shuffle=False).history
        results[kind.__name__] = [*history["loss"], *model.predict(rows, 8)[:3, 0].tolist()]
    return results


def torch_geometric_hetero() -> dict[str, Any]:
    import torch
    import torch_geometric.nn as gnn

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.linear = gnn.SAGEConv((-1, -1), 8), gnn.Linear(-1, 4)
            self.second = gnn.GATConv((-1, -1), 4, add_self_loops=False)

        def forward(self, x: Any, edge_index: Any) -> Any:
            x = self.first(x, edge_index).relu()
            return self.second(x, edge_index) + self.linear(x)

    torch.manual_seed(0)
    nodes = {"paper": torch.randn(4, 5), "author": torch.randn(3, 6)}
    edges = {
        ("author", "writes", "paper"): torch.tensor([[0, 1, 2, 0], [0, 1, 2, 3]]),
        ("paper", "written_by", "author"): torch.tensor([[0, 1, 2, 3], [0, 1, 2, 0]]),
    }
    model = gnn.to_hetero(Network(), (list(nodes), list(edges)))
    model(nodes, edges)  # fixes the sizes
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(i)))
    results = model(nodes, edges)
    sum(result.sum() for result in results.values()).backward()
    return {
        "results": {name: numbers(result) for name, result in results.items()},
        "gradients": [parameter.grad.sum().item() for parameter in model.parameters()],
        "code": model.code,
    }


def kornia_hausdorff() -> dict[str, Any]:
    import torch
    from kornia.losses import HausdorffERLoss

    torch.manual_seed(0)
    values = torch.rand(1, 2, 8, 8, requires_grad=True)
    loss = HausdorffERLoss()(values, torch.randint(0, 2, (1, 1, 8, 8)))
    loss.backward()
    return {"loss": loss.item(), "gradient": numbers(values.grad)}


def monai_batches() -> dict[str, Any]:
    import torch
    from monai import transforms
    from monai.data import CacheDataset, DataLoader, decollate_batch
    from monai.utils import set_determinism

    set_determinism(0)
    samples = [{"image": torch.rand(1, 8, 8), "label": torch.ones(1, 8, 8)} for _ in range(4)]
    crops = transforms.RandCropByPosNegLabeld(["image", "label"], "label", (4, 4), 1, 1, 2)
    steps = transforms.Compose(
        [transforms.ScaleIntensityd("image"), crops, transforms.RandFlipd(["image"], 1.0)]
    )
    batch = next(iter(DataLoader(CacheDataset(samples, steps, progress=False), batch_size=2)))
    parts = decollate_batch(batch)
    return {
        "images": numbers(batch["image"].as_tensor()),
        "parts": [numbers(part["image"].as_tensor()) for part in parts],
    }


def torchdata() -> dict[str, Any]:
    import torch
    from torchdata import nodes
    from torchdata.stateful_dataloader import StatefulDataLoader

    def loader(workers: int) -> Any:
        generator = torch.Generator().manual_seed(0)
        return StatefulDataLoader(
            list(range(12)), batch_size=3, shuffle=True, generator=generator, num_workers=workers
        )

    resumed = {}
    for workers in (0, 2):
        first = loader(workers)
        batches = iter(first)
        next(batches)
        state = first.state_dict()
        second = loader(workers)
        second.load_state_dict(state)
        resumed[str(workers)] = [[batch.tolist() for batch in batches], [batch.tolist() for batch in second]]
    doubled = nodes.Mapper(nodes.IterableWrapper(range(10)), lambda x: torch.tensor(x * 2))
    batches = nodes.Loader(nodes.Batcher(doubled, 4, drop_last=False))
    return {"resumed": resumed, "nodes": [[int(x) for x in batch] for batch in batches]}


def transformers_mamba() -> dict[str, Any]:
    import torch
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    model = MambaForCausalLM(MambaConfig(hidden_size=32, num_hidden_layers=2, vocab_size=50, state_size=4))
    tokens = torch.arange(12).view(2, 6)
    output = model(tokens, labels=tokens)
    output.loss.backward()
    return {"loss": output.loss.item(), "logits": numbers(output.logits[0, -1])}


def torchrl_sac() -> dict[str, Any]:
    import torch
    from tensordict import TensorDict
    from tensordict.nn import NormalParamExtractor, TensorDictModule
    from torchrl.data import Bounded
    from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
    from torchrl.objectives import SACLoss

    class Value(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(6, 1)

        def forward(self, observation: Any, action: Any) -> Any:
            return self.linear(torch.cat([observation, action], -1))

    torch.manual_seed(0)
    parameters = torch.nn.Sequential(torch.nn.Linear(4, 4), NormalParamExtractor())
    actor = ProbabilisticActor(
        TensorDictModule(parameters, ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"],
        spec=Bounded(-1, 1, (2,)), distribution_class=TanhNormal, return_log_prob=True,
    )  # fmt: skip
    loss = SACLoss(actor, ValueOperator(Value(), in_keys=["observation", "action"]))
    ended = torch.zeros(6, 1, dtype=torch.bool)
    following = {
        "observation": torch.randn(6, 4),
        "reward": torch.randn(6, 1),
        "done": ended,
        "terminated": ended,
    }
    steps = TensorDict({"observation": torch.randn(6, 4), "action": torch.rand(6, 2), "next": following}, [6])
    losses = loss(steps)
    (losses["loss_actor"] + losses["loss_qvalue"]).backward()
    gradients = [parameter.grad.sum().item() for parameter in loss.parameters() if parameter.grad is not None]
    return {"losses": {name: value.item() for name, value in losses.items()}, "gradients": gradients}
