"""Workloads of packages that run training loops."""

from __future__ import annotations

import tempfile
from typing import Any

from ._programs import data, lightning_module, network, numbers

__all__ = [
    "fastai", "ignite", "lightning", "mmengine", "opacus", "pytorch_metric_learning", "skorch", "stable_baselines3", "tensordict", "torchmetrics",
    "torchrl",
]  # fmt: skip


def _loader(batch_size: int = 8) -> Any:
    import torch

    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=batch_size)


def lightning() -> dict[str, Any]:
    import lightning as L
    import torch
    from lightning.pytorch.profilers import PyTorchProfiler, SimpleProfiler

    with tempfile.TemporaryDirectory() as folder:
        options = {
            "accelerator": "cpu",
            "logger": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
        }
        first = lightning_module(torch.optim.Adam, lr=0.01)
        trainer = L.Trainer(max_epochs=1, profiler=SimpleProfiler(), default_root_dir=folder, **options)
        trainer.fit(first, _loader())
        trainer.save_checkpoint(f"{folder}/model.ckpt")
        second = lightning_module(torch.optim.Adam, lr=0.01)
        profiler = PyTorchProfiler(dirpath=folder, filename="profile", emit_nvtx=False)
        trainer = L.Trainer(max_epochs=2, profiler=profiler, default_root_dir=folder, **options)
        trainer.fit(second, _loader(), ckpt_path=f"{folder}/model.ckpt", weights_only=False)
    return {"first": first.losses, "second": second.losses}


def torchmetrics() -> dict[str, Any]:
    import torch
    from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC
    from torchmetrics.regression import R2Score

    scores = torch.softmax(network()(data()[0]), -1)
    targets = data()[1]
    return {
        "accuracy": MulticlassAccuracy(3)(scores, targets).item(),
        "auroc": MulticlassAUROC(3)(scores, targets).item(),
        "r2": R2Score()(scores[:, 0], targets.float()).item(),
    }


def ignite() -> dict[str, Any]:
    import torch
    from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss

    model = network()
    trainer = create_supervised_trainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.functional.cross_entropy
    )
    evaluator = create_supervised_evaluator(
        model, metrics={"accuracy": Accuracy(), "loss": Loss(torch.nn.functional.cross_entropy)}
    )
    losses: list[float] = []

    @trainer.on(Events.ITERATION_COMPLETED)
    def note(engine: Engine) -> None:
        losses.append(engine.state.output)

    trainer.run(_loader(), max_epochs=2)
    evaluator.run(_loader())
    return {"losses": losses, **evaluator.state.metrics}


def mmengine() -> dict[str, Any]:
    import torch
    from mmengine.config import Config
    from mmengine.model import BaseModel
    from mmengine.optim import build_optim_wrapper

    class Model(BaseModel):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()

        def forward(self, inputs: Any, targets: Any, mode: str = "loss") -> Any:
            return {"loss": torch.nn.functional.cross_entropy(self.model(inputs), targets)}

    model = Model()
    wrapper = build_optim_wrapper(
        model, Config({"wrapper": {"optimizer": {"type": "SGD", "lr": 0.1}}}).wrapper
    )
    losses = []
    for _ in range(3):
        loss, _logs = model.parse_losses(model(*data()))
        wrapper.update_params(loss)
        losses.append(loss.item())
    return {"losses": losses}


def fastai() -> dict[str, Any]:
    import torch
    from fastai.callback import progress  # noqa: F401  (adds methods to Learner)
    from fastai.callback.core import Callback
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader
    from fastai.learner import Learner

    class Note(Callback):
        losses: list[float] = []

        def after_loss(self) -> None:
            self.losses.append(self.loss.item())

    rows = list(zip(*data()))
    loaders = DataLoaders(DataLoader(rows, bs=8, num_workers=0), DataLoader(rows, bs=8, num_workers=0))
    learner = Learner(loaders, network(), loss_func=torch.nn.functional.cross_entropy, cbs=[Note()])
    with learner.no_bar(), learner.no_logging():
        learner.fit(1, 0.01)
    return {"losses": Note.losses}


def opacus() -> dict[str, Any]:
    import torch
    from opacus.grad_sample import GradSampleModule

    model = GradSampleModule(network())
    inputs, targets = data()
    torch.nn.functional.cross_entropy(model(inputs), targets).backward()
    return {"per_sample": [p.grad_sample.norm().item() for p in model.parameters()]}


def pytorch_metric_learning() -> dict[str, Any]:
    from pytorch_metric_learning import losses, miners

    embeddings, labels = network()(data()[0]), data()[1]
    pairs = miners.MultiSimilarityMiner()(embeddings, labels)
    return {
        "triplet": losses.TripletMarginLoss()(embeddings, labels, pairs).item(),
        "contrastive": losses.NTXentLoss()(embeddings, labels).item(),
    }


def skorch() -> dict[str, Any]:
    import numpy as np
    import torch
    from skorch import NeuralNetClassifier

    inputs, targets = data()
    model = NeuralNetClassifier(
        network(),
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=3,
        lr=0.1,
        train_split=None,
        verbose=0,
        iterator_train__shuffle=False,
    )
    model.fit(inputs.numpy(), targets.numpy().astype(np.int64))
    return {"losses": model.history[:, "train_loss"]}


def stable_baselines3() -> dict[str, Any]:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=2, seed=0, device="cpu")
    model.learn(64)
    return {"weights": [p.norm().item() for p in model.policy.parameters()]}


def tensordict() -> dict[str, Any]:
    import torch
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule

    batch = TensorDict({"inputs": data()[0], "nested": {"targets": data()[1]}}, batch_size=[32])
    module = TensorDictModule(network(), in_keys=["inputs"], out_keys=["scores"])
    out = module(batch[:4])
    joined = torch.cat([out, out], 0)
    return {
        "scores": numbers(out["scores"]),
        "shape": list(joined.shape),
        "targets": joined["nested", "targets"].tolist(),
    }


def torchrl() -> dict[str, Any]:
    import torch
    from tensordict import TensorDict
    from torchrl.objectives.value.functional import generalized_advantage_estimate

    torch.manual_seed(0)
    values = [torch.randn(2, 5, 1) for _ in range(3)]
    done = torch.zeros(2, 5, 1, dtype=torch.bool)
    done[:, -1] = True
    advantage, target = generalized_advantage_estimate(0.9, 0.8, values[0], values[1], values[2], done, done)
    return {
        "advantage": numbers(advantage),
        "target": numbers(target),
        "size": list(TensorDict({}, [2]).shape),
    }
