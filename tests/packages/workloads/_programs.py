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
