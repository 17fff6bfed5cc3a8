"""Workloads of packages that run training loops: callbacks, checkpoints, metrics, agents, tables and sequences."""

from __future__ import annotations

import tempfile
from typing import Any

from ._programs import data, network, numbers

__all__ = [
    "fastai_callbacks", "ignite_handlers", "lightning_callbacks", "lightning_fabric", "mmengine_runner", "opacus_engine", "opacus_layers",
    "pytorch_forecasting", "pytorch_metric_learning_losses", "pytorch_tabnet", "skorch_search", "stable_baselines3_dqn", "tensordict_features",
    "torchmetrics_many", "torchrl_ppo", "monai_transforms", "ema_pytorch", "torch_ema",
]  # fmt: skip


def _loader(batch_size: int = 8, **options: Any) -> Any:
    import torch

    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*data()), batch_size=batch_size, **options
    )


def lightning_callbacks() -> dict[str, Any]:
    import lightning as L
    import torch
    from lightning.pytorch.callbacks import (
        EarlyStopping,
        GradientAccumulationScheduler,
        LearningRateMonitor,
        ModelCheckpoint,
        StochasticWeightAveraging,
    )  # fmt: skip
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
    from torchmetrics.classification import MulticlassAccuracy

    class Model(L.LightningModule):
        def __init__(self, rate: float = 0.05) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.model = network()
            self.accuracy = MulticlassAccuracy(3)
            self.values: list[float] = []

        def training_step(self, batch: Any, index: int) -> Any:
            loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            scores = self.model(batch[0])
            self.accuracy(scores, batch[1])
            self.log("accuracy", self.accuracy)
            self.log("loss", torch.nn.functional.cross_entropy(scores, batch[1]))

        def on_validation_epoch_end(self) -> None:
            self.values.append(self.trainer.callback_metrics["accuracy"].item())

        def predict_step(self, batch: Any, index: int) -> Any:
            return self.model(batch[0])

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.rate, momentum=0.9)
            rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}

    L.seed_everything(0, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ModelCheckpoint(folder, monitor="loss", save_top_k=2, filename="{epoch}-{loss:.2f}")
        trainer = L.Trainer(
            max_epochs=3, accelerator="cpu", enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder, log_every_n_steps=1,
            logger=[CSVLogger(folder), TensorBoardLogger(folder)], gradient_clip_val=0.5, num_sanity_val_steps=1,
            callbacks=[
                checkpoint, EarlyStopping("loss", patience=2), LearningRateMonitor(), GradientAccumulationScheduler({1: 2}),
                StochasticWeightAveraging(0.01, swa_epoch_start=2),
            ],
        )  # fmt: skip
        model = Model()
        trainer.fit(model, _loader(), _loader(16))
        metrics = {key: value.item() for key, value in trainer.callback_metrics.items()}
        loaded = Model.load_from_checkpoint(checkpoint.best_model_path)
        predictions = trainer.predict(loaded, _loader(16))
        tested = trainer.validate(loaded, _loader(16), verbose=False)
    return {
        "metrics": metrics, "values": model.values, "predictions": numbers(predictions[0][:2]), "tested": tested,
        "best": checkpoint.best_model_score.item(), "rate": loaded.hparams.rate,
    }  # fmt: skip


def lightning_fabric() -> dict[str, Any]:
    import torch
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision="32-true")
    fabric.launch()
    fabric.seed_everything(0, verbose=False)
    model = network()
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), lr=0.05))
    loader = fabric.setup_dataloaders(_loader())
    losses = []
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        losses.append(fabric.all_reduce(loss).item())
    with tempfile.TemporaryDirectory() as folder:
        fabric.save(f"{folder}/state.ckpt", {"model": model, "optimizer": optimizer, "step": 4})
        rest = fabric.load(f"{folder}/state.ckpt", {"model": model, "optimizer": optimizer})
    return {"losses": losses, "rest": rest}


def torchmetrics_many() -> dict[str, Any]:
    import torch
    from torchmetrics import MeanMetric, MetricCollection, MetricTracker
    from torchmetrics.classification import (
        BinaryAveragePrecision,
        BinaryCalibrationError,
        BinaryROC,
        MulticlassCohenKappa,
        MulticlassConfusionMatrix,
        MulticlassF1Score,
        MulticlassJaccardIndex,
        MulticlassMatthewsCorrCoef,
        MulticlassPrecision,
        MulticlassRecall,
        MultilabelAUROC,
    )  # fmt: skip
    from torchmetrics.clustering import MutualInfoScore
    from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure, TotalVariation
    from torchmetrics.regression import (
        ConcordanceCorrCoef,
        ExplainedVariance,
        KendallRankCorrCoef,
        MeanAbsoluteError,
        MeanSquaredLogError,
        PearsonCorrCoef,
        SpearmanCorrCoef,
    )  # fmt: skip
    from torchmetrics.retrieval import RetrievalMAP, RetrievalNormalizedDCG
    from torchmetrics.text import BLEUScore, Perplexity, WordErrorRate

    scores, targets = torch.softmax(network()(data()[0]).detach(), -1), data()[1]
    many = MetricCollection(
        [
            MulticlassF1Score(3), MulticlassPrecision(3), MulticlassRecall(3), MulticlassConfusionMatrix(3), MulticlassJaccardIndex(3),
            MulticlassMatthewsCorrCoef(3), MulticlassCohenKappa(3),
        ]
    )  # fmt: skip
    many.update(scores[:16], targets[:16])
    many.update(scores[16:], targets[16:])
    results = {name: value.double().tolist() for name, value in many.compute().items()}
    binary = (targets > 0).long()
    for kind in (BinaryAveragePrecision(thresholds=5), BinaryCalibrationError(n_bins=4)):
        results[type(kind).__name__] = kind(scores[:, 1], binary).item()
    results["roc"] = [numbers(part) for part in BinaryROC()(scores[:, 1], binary)]
    results["multilabel"] = MultilabelAUROC(3)(scores, (scores > 0.3).long().roll(1, 0)).item()
    for metric in (
        PearsonCorrCoef(), SpearmanCorrCoef(), KendallRankCorrCoef(), ConcordanceCorrCoef(), ExplainedVariance(), MeanAbsoluteError(),
        MeanSquaredLogError(),
    ):  # fmt: skip
        results[type(metric).__name__] = metric(scores[:, 0], scores[:, 1] + 0.1 * targets).item()
    images = torch.rand(2, 3, 24, 24, generator=torch.Generator().manual_seed(3))
    other = (images + 0.05).clamp(0, 1)
    for metric in (PeakSignalNoiseRatio(1.0), StructuralSimilarityIndexMeasure(data_range=1.0)):
        results[type(metric).__name__] = metric(other, images).item()
    results["variation"] = TotalVariation()(images).item()
    groups = torch.arange(32) // 8
    for metric in (RetrievalMAP(), RetrievalNormalizedDCG()):
        results[type(metric).__name__] = metric(scores[:, 1], binary, indexes=groups).item()
    results["mutual"] = MutualInfoScore()(scores.argmax(-1), targets).item()
    results["bleu"] = BLEUScore(n_gram=2)(["the cat is on the mat"], [["a cat is on the mat"]]).item()
    results["wer"] = WordErrorRate()(["this is it"], ["this was it"]).item()
    results["perplexity"] = Perplexity()(
        torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(1)), torch.ones(2, 4, dtype=torch.long)
    ).item()
    tracker = MetricTracker(MeanMetric(), maximize=True)
    for value in (1.0, 3.0, 2.0):
        tracker.increment()
        tracker.update(torch.tensor(value))
    results["best"] = [float(v) for v in tracker.best_metric(return_step=True)]
    return results


def ignite_handlers() -> dict[str, Any]:
    import torch
    from ignite.contrib.handlers import ProgressBar  # noqa: F401  (imported as programs do)
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import (
        Checkpoint,
        CosineAnnealingScheduler,
        DiskSaver,
        EarlyStopping,
        EMAHandler,
        Timer,
    )
    from ignite.metrics import (
        ConfusionMatrix,
        Fbeta,
        Precision,
        Recall,
        RunningAverage,
        TopKCategoricalAccuracy,
    )

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = create_supervised_trainer(
        model, optimizer, torch.nn.CrossEntropyLoss(), gradient_accumulation_steps=2
    )
    RunningAverage(output_transform=lambda x: x).attach(trainer, "running")
    trainer.add_event_handler(
        Events.ITERATION_STARTED, CosineAnnealingScheduler(optimizer, "lr", 0.1, 0.01, 4)
    )
    EMAHandler(model, momentum=0.1).attach(trainer)
    Timer().attach(trainer, start=Events.STARTED)
    metrics = {
        "precision": Precision(average=True), "recall": Recall(average=False), "matrix": ConfusionMatrix(3), "f": Fbeta(1.0),
        "top": TopKCategoricalAccuracy(2),
    }  # fmt: skip
    evaluator = create_supervised_evaluator(model, metrics=metrics)
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(2, lambda e: -e.state.metrics["f"], trainer))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(_loader()))
    with tempfile.TemporaryDirectory() as folder:
        trainer.add_event_handler(
            Events.EPOCH_COMPLETED,
            Checkpoint({"model": model}, DiskSaver(folder, require_empty=False), n_saved=1),
        )
        trainer.run(_loader(), max_epochs=3)
    return {
        "running": trainer.state.metrics["running"],
        **{k: v.double().tolist() if hasattr(v, "double") else v for k, v in evaluator.state.metrics.items()},
    }


def mmengine_runner() -> dict[str, Any]:
    import torch
    from mmengine.evaluator import BaseMetric
    from mmengine.hooks import Hook
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Model(BaseModel):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()

        def forward(self, inputs: Any, targets: Any, mode: str = "loss") -> Any:
            scores = self.model(inputs)
            if mode == "loss":
                return {"loss": torch.nn.functional.cross_entropy(scores, targets)}
            return scores, targets

    class Accuracy(BaseMetric):
        def process(self, batch: Any, samples: Any) -> None:
            scores, targets = samples
            self.results.append((len(targets), (scores.argmax(1) == targets).sum().item()))

        def compute_metrics(self, results: list[Any]) -> dict[str, float]:
            return {"accuracy": sum(r[1] for r in results) / sum(r[0] for r in results)}

    class Note(Hook):
        losses: list[float] = []

        def after_train_iter(
            self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
        ) -> None:
            self.losses.append(float(outputs["loss"]))

    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(
            model=Model(), work_dir=folder, train_dataloader=_loader(), val_dataloader=_loader(16), val_cfg={}, val_evaluator={"type": Accuracy},
            train_cfg={"by_epoch": True, "max_epochs": 2, "val_interval": 1}, custom_hooks=[Note()],
            optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}, "clip_grad": {"max_norm": 1.0}},
            param_scheduler={"type": "MultiStepLR", "by_epoch": True, "milestones": [1], "gamma": 0.5}, randomness={"seed": 1},
            log_level="ERROR",
        )  # fmt: skip
        runner.train()
        metrics = runner.val()
    return {"losses": Note.losses, "metrics": metrics}


def fastai_callbacks() -> dict[str, Any]:
    import torch
    from fastai.callback.schedule import Learner  # adds fit_one_cycle
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader
    from fastai.layers import LinBnDrop
    from fastai.losses import CrossEntropyLossFlat
    from fastai.metrics import accuracy
    from fastai.torch_core import TensorBase, set_seed

    set_seed(0)
    rows = list(zip(*data()))
    loaders = DataLoaders(DataLoader(rows, bs=8, num_workers=0), DataLoader(rows, bs=16, num_workers=0))
    model = torch.nn.Sequential(LinBnDrop(8, 16, act=torch.nn.ReLU()), LinBnDrop(16, 3, bn=False))
    with tempfile.TemporaryDirectory() as folder:
        learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat(), metrics=accuracy, path=folder)
        with learner.no_bar(), learner.no_logging():
            learner.fit_one_cycle(2, 0.05)
            learner.save("model")
            learner.load("model")
            learner.freeze()
            predictions, _targets = learner.get_preds()
    batch = TensorBase(data()[0])
    return {
        "values": [list(map(float, row)) for row in learner.recorder.values], "predictions": numbers(predictions[:2]),
        "kind": type(batch * 2).__name__, "argmax": batch[:3].argmax(-1).tolist(),
    }  # fmt: skip


def opacus_engine() -> dict[str, Any]:
    import torch
    from opacus import PrivacyEngine
    from opacus.validators import ModuleValidator

    model = torch.nn.Sequential(
        torch.nn.Conv1d(1, 4, 3),
        torch.nn.GroupNorm(2, 4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(24, 3),
    )
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    assert not ModuleValidator.validate(model, strict=False)
    inputs, targets = data()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs.unsqueeze(1), targets), batch_size=8
    )
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0,
        poisson_sampling=False, noise_generator=torch.Generator().manual_seed(2),
    )  # fmt: skip
    losses = []
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "epsilon": float(engine.get_epsilon(1e-5))}


def opacus_layers() -> dict[str, Any]:
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.layers import DPLSTM, DPMultiheadAttention
    from opacus.validators import ModuleValidator

    results = {}
    tokens = torch.arange(12).view(3, 4)
    torch.manual_seed(0)
    layers = {
        "embedding": (torch.nn.Embedding(12, 3), tokens), "layer_norm": (torch.nn.LayerNorm(5), torch.randn(3, 4, 5)),
        "conv2d": (torch.nn.Conv2d(2, 3, 3, padding=1), torch.randn(2, 2, 5, 5)), "lstm": (DPLSTM(4, 3, batch_first=True), torch.randn(2, 3, 4)),
        "linear": (torch.nn.Linear(4, 2), torch.randn(3, 4)), "instance_norm": (torch.nn.InstanceNorm1d(4, affine=True), torch.randn(2, 4, 6)),
    }  # fmt: skip
    for name, (layer, inputs) in layers.items():
        model = GradSampleModule(layer)
        output = model(inputs)
        (output[0] if isinstance(output, tuple) else output).square().sum().backward()
        results[name] = [p.grad_sample.double().square().sum().item() for p in model.parameters()]
    for mode in ("functorch", "ew"):
        torch.manual_seed(0)
        model = (
            GradSampleModule(
                torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)),
                force_functorch=mode == "functorch",
            )
            if mode == "functorch"
            else None
        )
        if model is not None:
            model(torch.randn(3, 4)).square().sum().backward()
            results[mode] = [p.grad_sample.double().square().sum().item() for p in model.parameters()]
    attention = GradSampleModule(DPMultiheadAttention(4, 2))
    queries = torch.randn(3, 2, 4)
    attention(queries, queries, queries)[0].square().sum().backward()
    results["attention"] = [p.grad_sample.double().square().sum().item() for p in attention.parameters()]
    fixed = ModuleValidator.fix(torch.nn.Sequential(torch.nn.Conv2d(1, 32, 3), torch.nn.BatchNorm2d(32)))
    results["fixed"] = type(fixed[1]).__name__
    return results


def pytorch_metric_learning_losses() -> dict[str, Any]:
    import torch
    from pytorch_metric_learning import distances, losses, miners, reducers, testers  # noqa: F401

    embeddings, labels = network()(data()[0]), data()[1]
    torch.manual_seed(0)
    kinds = {
        "arcface": losses.ArcFaceLoss(3, 3), "circle": losses.CircleLoss(), "contrastive": losses.ContrastiveLoss(), "proxy": losses.ProxyAnchorLoss(3, 3),
        "lifted": losses.LiftedStructureLoss(), "supcon": losses.SupConLoss(), "npairs": losses.NPairsLoss(), "ms": losses.MultiSimilarityLoss(),
        "triplet": losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0.1)),
    }  # fmt: skip
    results: dict[str, Any] = {}
    pairs = miners.BatchEasyHardMiner()(embeddings, labels)
    for name, loss in kinds.items():
        value = (
            loss(embeddings, labels, pairs)
            if name in ("contrastive", "triplet")
            else loss(embeddings, labels)
        )
        results[name] = [value.item(), torch.autograd.grad(value, embeddings)[0].norm().item()]
    return results


def skorch_search() -> dict[str, Any]:
    import numpy as np
    import torch
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from skorch import NeuralNetClassifier, NeuralNetRegressor
    from skorch.callbacks import EpochScoring, LRScheduler
    from skorch.helper import SliceDataset  # noqa: F401  (imported as programs do)

    class Net(torch.nn.Module):
        def __init__(self, hidden: int = 4) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(8, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 3)
            )

        def forward(self, x: Any) -> Any:
            return torch.softmax(self.layers(x), -1)

    inputs, targets = (part.numpy() for part in data())
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        Net, max_epochs=2, lr=0.1, verbose=0, iterator_train__shuffle=False, train_split=None
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), net),
        {"neuralnetclassifier__module__hidden": [4, 6]},
        cv=2,
        scoring="accuracy",
        refit=True,
    )
    search.fit(inputs, targets.astype(np.int64))
    regressor = NeuralNetRegressor(
        torch.nn.Linear, module__in_features=8, module__out_features=1, max_epochs=3, lr=0.05, verbose=0, optimizer=torch.optim.Adam,
        callbacks=[LRScheduler("StepLR", step_size=1), EpochScoring("r2", lower_is_better=False)],
    )  # fmt: skip
    torch.manual_seed(0)
    regressor.fit(inputs, inputs[:, :1] * 2)
    with tempfile.TemporaryDirectory() as folder:
        regressor.save_params(f_params=f"{folder}/weights.pt", f_optimizer=f"{folder}/optimizer.pt")
        regressor.load_params(f_params=f"{folder}/weights.pt", f_optimizer=f"{folder}/optimizer.pt")
    return {
        "scores": search.cv_results_["mean_test_score"].tolist(), "losses": regressor.history[:, ("train_loss", "valid_loss", "r2")],
        "predictions": regressor.predict(inputs[:2]).ravel().tolist(),
    }  # fmt: skip


def stable_baselines3_dqn() -> dict[str, Any]:
    from stable_baselines3 import A2C, DQN

    dqn = DQN(
        "MlpPolicy",
        "CartPole-v1",
        learning_starts=20,
        buffer_size=200,
        batch_size=8,
        seed=0,
        device="cpu",
        target_update_interval=10,
    )
    dqn.learn(60)
    with tempfile.TemporaryDirectory() as folder:
        dqn.save(f"{folder}/dqn")
        loaded = DQN.load(f"{folder}/dqn", device="cpu")
    a2c = A2C("MlpPolicy", "CartPole-v1", n_steps=8, seed=0, device="cpu")
    a2c.learn(32)
    return {
        "dqn": [p.norm().item() for p in loaded.policy.parameters()], "a2c": [p.norm().item() for p in a2c.policy.parameters()],
    }  # fmt: skip


def tensordict_features() -> dict[str, Any]:
    import torch
    from tensordict import MemoryMappedTensor, NonTensorData, TensorDict, TensorDictParams, tensorclass
    from tensordict.nn import (
        ProbabilisticTensorDictModule,
        ProbabilisticTensorDictSequential,
        TensorDictModule,
        TensorDictSequential,
    )

    first = TensorDict({"a": torch.arange(6.0).view(3, 2), "b": {"c": torch.ones(3, 1)}}, [3])
    first["text"] = NonTensorData("hello", batch_size=[3])
    stacked = torch.stack([first, first * 2 if False else first.clone()], 0)
    lazy = TensorDict.lazy_stack([first, first.clone()], 0)
    split = stacked.reshape(-1).split(2)
    flat = first.flatten_keys(".")
    mapped = first.exclude("text").apply(lambda x: x + 1)

    @tensorclass
    class Batch:
        image: torch.Tensor
        label: torch.Tensor

    batch = Batch(image=torch.zeros(4, 2), label=torch.arange(4), batch_size=[4])
    policy = TensorDictSequential(
        TensorDictModule(torch.nn.Linear(2, 2), ["a"], ["hidden"]),
        TensorDictModule(lambda h: (h, torch.ones_like(h)), ["hidden"], ["loc", "scale"]),
    )
    module = ProbabilisticTensorDictSequential(
        policy,
        ProbabilisticTensorDictModule(
            in_keys=["loc", "scale"],
            out_keys=["action"],
            distribution_class=torch.distributions.Normal,
            return_log_prob=True,
        ),
    )
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    out = module(first.exclude("text"))
    parameters = TensorDict.from_module(network())
    doubled = parameters.data * 2
    with doubled.to_module(net := network()):
        inside = net(data()[0][:1])
    with tempfile.TemporaryDirectory() as folder:
        first.exclude("text").memmap_(folder)
        back = TensorDict.load_memmap(folder)
        kind = isinstance(back["a"], MemoryMappedTensor)
    return {
        "stacked": list(stacked.shape), "lazy": list(lazy["a"].shape), "split": [list(part.shape) for part in split], "flat": sorted(map(str, flat.keys())),
        "mapped": numbers(mapped["a"]), "labels": batch[1:3].label.tolist(), "text": first["text"], "inside": numbers(inside), "back": numbers(back["a"]),
        "mapped_kind": kind, "log_prob": numbers(out["action_log_prob"]), "params": len(list(TensorDictParams(parameters).parameters())),
    }  # fmt: skip


def torchrl_ppo() -> dict[str, Any]:
    import torch
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.envs import GymEnv, TransformedEnv
    from torchrl.envs.transforms import RewardSum
    from torchrl.modules import ProbabilisticActor, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    torch.manual_seed(0)
    env = TransformedEnv(GymEnv("CartPole-v1", device="cpu"), RewardSum())
    env.set_seed(0)
    actor = ProbabilisticActor(
        TensorDictModule(torch.nn.Linear(4, 2), ["observation"], ["logits"]), in_keys=["logits"], distribution_class=torch.distributions.OneHotCategorical,
        return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(torch.nn.Linear(4, 1), in_keys=["observation"])
    with torch.no_grad():
        rollout = env.rollout(8, actor, break_when_any_done=False)
    GAE(gamma=0.9, lmbda=0.8, value_network=critic)(rollout)
    loss = ClipPPOLoss(actor, critic)
    losses = loss(rollout)
    total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
    total.backward()
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
    buffer.extend(rollout.detach())
    return {
        "total": total.item(), "shape": list(rollout.shape), "sample": list(buffer.sample().shape), "empty": TensorDict({}, []).is_empty(),
        "gradient": sum(p.grad.norm().item() for p in loss.parameters() if p.grad is not None),
    }  # fmt: skip


def monai_transforms() -> dict[str, Any]:
    import torch
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss, FocalLoss
    from monai.metrics import DiceMetric, HausdorffDistanceMetric
    from monai.networks.nets import UNETR, DynUNet, SegResNet
    from monai.transforms import (
        AsDiscrete,
        Compose,
        EnsureChannelFirst,
        RandFlip,
        RandGaussianNoise,
        ScaleIntensity,
        Spacing,
    )

    image = torch.rand(12, 12, generator=torch.Generator().manual_seed(1))
    chain = Compose(
        [
            EnsureChannelFirst(channel_dim="no_channel"),
            ScaleIntensity(),
            RandFlip(1.0, 0),
            RandGaussianNoise(1.0),
        ]
    )
    chain.set_random_state(0)
    changed = chain(image)
    torch.manual_seed(0)
    model = SegResNet(
        spatial_dims=2, in_channels=1, out_channels=2, init_filters=8, blocks_down=(1, 1), blocks_up=(1,)
    ).eval()
    output = sliding_window_inference(torch.rand(1, 1, 24, 24), (16, 16), 2, model, overlap=0.25)
    labels = (output.argmax(1, keepdim=True)).float()
    discrete = AsDiscrete(to_onehot=2)(labels[0])
    dice = DiceMetric(include_background=True)(discrete[None], discrete[None].roll(1, -1))
    distance = HausdorffDistanceMetric(include_background=True)(discrete[None], discrete[None].roll(2, -1))
    volume = torch.rand(1, 1, 16, 16, 16)
    unet = DynUNet(
        3, 1, 2, kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2], filters=[4, 8, 8]
    ).eval()
    transformer = UNETR(1, 2, (16, 16, 16), feature_size=4, hidden_size=12, mlp_dim=16, num_heads=2).eval()
    return {
        "changed": numbers(changed.as_tensor()[0, 5] if hasattr(changed, "as_tensor") else changed[0, 5]), "output": output.double().sum().item(),
        "dice": numbers(dice), "distance": numbers(distance), "loss": DiceCELoss(to_onehot_y=True, softmax=True)(output, labels).item(),
        "focal": FocalLoss()(output, discrete[None]).item(), "unet": unet(volume).double().sum().item(),
        "transformer": transformer(volume).double().sum().item(), "spacing": type(Spacing(pixdim=(1.0, 1.0))).__name__,
    }  # fmt: skip


def pytorch_tabnet() -> dict[str, Any]:
    import torch
    from pytorch_tabnet.tab_model import TabNetClassifier

    inputs, targets = (part.numpy() for part in data(64))
    model = TabNetClassifier(
        n_d=4, n_a=4, n_steps=2, seed=0, verbose=0, optimizer_params={"lr": 0.02}, device_name="cpu"
    )
    model.fit(
        inputs, targets, max_epochs=2, batch_size=32, virtual_batch_size=16, num_workers=0, drop_last=False
    )
    return {
        "loss": [float(v) for v in model.history["loss"]], "probabilities": model.predict_proba(inputs[:2]).ravel().tolist(),
        "grad": torch.is_grad_enabled(),
    }  # fmt: skip


def pytorch_forecasting() -> dict[str, Any]:
    import numpy as np
    import pandas as pd
    import torch
    from pytorch_forecasting import TemporalFusionTransformer, TimeSeriesDataSet
    from pytorch_forecasting.data import GroupNormalizer
    from pytorch_forecasting.metrics import QuantileLoss

    rows = pd.DataFrame(
        {
            "time": np.tile(np.arange(30), 2),
            "group": np.repeat(["a", "b"], 30),
            "value": np.sin(np.arange(60) / 5.0) + 2.0,
        }
    )
    dataset = TimeSeriesDataSet(
        rows, time_idx="time", target="value", group_ids=["group"], max_encoder_length=8, max_prediction_length=3, static_categoricals=["group"],
        time_varying_known_reals=["time"], time_varying_unknown_reals=["value"], target_normalizer=GroupNormalizer(groups=["group"]),
    )  # fmt: skip
    torch.manual_seed(0)
    model = TemporalFusionTransformer.from_dataset(
        dataset,
        hidden_size=8,
        attention_head_size=2,
        hidden_continuous_size=4,
        dropout=0.0,
        loss=QuantileLoss(),
        output_size=7,
    )
    inputs, target = next(iter(dataset.to_dataloader(train=False, batch_size=4)))
    prediction = model(inputs)["prediction"]
    loss = model.loss(prediction, target)
    loss.backward()
    return {"loss": loss.item(), "prediction": numbers(prediction[0])}


def ema_pytorch() -> dict[str, Any]:
    import torch
    from ema_pytorch import EMA

    model = network()
    average = EMA(model, beta=0.9, update_after_step=1, update_every=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    inputs, targets = data()
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        average.update()
    return {"average": numbers(average(inputs[:2])), "model": numbers(model(inputs[:2]))}


def torch_ema() -> dict[str, Any]:
    import torch
    from torch_ema import ExponentialMovingAverage

    model = network()
    average = ExponentialMovingAverage(model.parameters(), decay=0.9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    inputs, targets = data()
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        average.update()
    with average.average_parameters():
        inside = numbers(model(inputs[:1]))
    return {"inside": inside, "outside": numbers(model(inputs[:1]))}
