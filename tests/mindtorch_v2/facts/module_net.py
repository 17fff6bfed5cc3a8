"""The network that the cases of nn.Module share: a torch package in, a module out."""

from __future__ import annotations

from typing import Any


def make_net(torch: Any) -> Any:
    """A small network with parameters, buffers and nesting."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(2, 3)
            self.scale = nn.Parameter(torch.ones(3))
            self.register_buffer("count", torch.zeros(1))
            self.register_buffer("hidden", torch.zeros(2), persistent=False)
            self.register_parameter("absent", None)
            self.register_buffer("nothing", None)

        def forward(self, x: Any) -> Any:
            return self.lin(x) * self.scale

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Block()
            self.last = nn.Sequential(nn.Linear(3, 1), nn.ReLU())
            self.none = None

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x))

    return Net()
