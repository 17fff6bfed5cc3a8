"""What several workloads share: seeded data, a small network, and numbers of tensors."""

from __future__ import annotations

from typing import Any


def numbers(tensor: Any) -> list[float]:
    """The elements of a tensor as Python numbers."""
    return tensor.detach().double().flatten().tolist()


def network(seed: int = 0) -> Any:
    """A small perceptron with seeded weights."""
    import torch

    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def data(count: int = 32) -> tuple[Any, Any]:
    """Inputs and class numbers."""
    import torch

    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, 8, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def train(model: Any, optimizer: Any, steps: int = 5) -> list[float]:
    """The losses of some steps."""
    import torch

    inputs, targets = data()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def lightning_module(optimizer: Any, **options: Any) -> Any:
    """The network as a module of lightning that keeps its losses; optimizer: the class, with its options."""
    import lightning as L
    import torch

    class Model(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()
            self.losses: list[float] = []

        def training_step(self, batch: Any, index: int) -> Any:
            loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> Any:
            return optimizer(self.parameters(), **options)

    return Model()
