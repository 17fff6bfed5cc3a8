"""Workloads of packages for probability, differential equations and geometry."""

from __future__ import annotations

from typing import Any

from ._programs import numbers

__all__ = ["botorch", "geoopt", "gpytorch", "nflows", "normflows", "pyro", "torchdiffeq", "torchsde"]


def pyro() -> dict[str, Any]:
    import pyro
    import pyro.distributions as dist
    import torch
    from pyro.infer import SVI, Trace_ELBO
    from pyro.optim import Adam

    pyro.set_rng_seed(0)
    pyro.clear_param_store()
    observed = torch.tensor([1.0, 2.0, 1.5])

    def model() -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 3):
            pyro.sample("x", dist.Normal(mean, 1.0), obs=observed)

    def guide() -> None:
        pyro.sample("mean", dist.Normal(pyro.param("location", torch.tensor(0.0)), 1.0))

    svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
    return {
        "losses": [svi.step() for _ in range(4)],
        "location": pyro.param("location").item(),
        "type": repr(torch.Tensor),
    }


def gpytorch() -> dict[str, Any]:
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = (
                gpytorch.means.ConstantMean(),
                gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x = torch.linspace(0, 1, 8)
    y = torch.sin(6 * x)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = -marginal(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return {"losses": losses, "mean": numbers(model(torch.tensor([0.3, 0.7])).mean)}


def botorch() -> dict[str, Any]:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP

    torch.manual_seed(0)
    x = torch.rand(6, 2, dtype=torch.float64)
    y = x.sum(-1, keepdim=True).sin()
    model = SingleTaskGP(x, y)
    return {
        "improvement": numbers(
            LogExpectedImprovement(model, best_f=y.max())(torch.rand(3, 1, 2, dtype=torch.float64))
        )
    }


def torchdiffeq() -> dict[str, Any]:
    import torch
    from torchdiffeq import odeint, odeint_adjoint

    class Decay(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rate = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self, t: Any, y: Any) -> Any:
            return -self.rate * y

    decay, times = Decay(), torch.linspace(0, 1, 4)
    odeint_adjoint(decay, torch.ones(2), times)[-1].sum().backward()
    return {"path": numbers(odeint(decay, torch.ones(2), times)), "gradient": decay.rate.grad.item()}


def torchsde() -> dict[str, Any]:
    import torch
    from torchsde import BrownianInterval, sdeint

    class Noise(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def f(self, t: Any, y: Any) -> Any:
            return -y

        def g(self, t: Any, y: Any) -> Any:
            return 0.1 * y

    path = BrownianInterval(t0=0.0, t1=1.0, size=(2, 1), entropy=3, levy_area_approximation="space-time")
    return {"path": numbers(sdeint(Noise(), torch.ones(2, 1), torch.linspace(0, 1, 3), bm=path, dt=0.1))}


def nflows() -> dict[str, Any]:
    import torch
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform

    torch.manual_seed(0)
    flow = Flow(MaskedAffineAutoregressiveTransform(2, 8), StandardNormal([2]))
    loss = -flow.log_prob(torch.randn(5, 2)).mean()
    loss.backward()
    return {"loss": loss.item()}


def normflows() -> dict[str, Any]:
    import normflows
    import torch

    torch.manual_seed(0)
    base = normflows.distributions.DiagGaussian(2)
    model = normflows.NormalizingFlow(
        base, [normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 8, 2], init_zeros=False))]
    )
    return {"loss": model.forward_kld(torch.randn(5, 2)).item()}


def geoopt() -> dict[str, Any]:
    import geoopt
    import torch

    torch.manual_seed(0)
    ball = geoopt.PoincareBall()
    point = geoopt.ManifoldParameter(ball.projx(torch.randn(3, 2) * 0.1), manifold=ball)
    optimizer = geoopt.optim.RiemannianAdam([point], lr=0.1)
    loss = ball.dist(point, torch.tensor([0.2, 0.3])).sum()
    loss.backward()
    optimizer.step()
    return {"loss": loss.item(), "point": numbers(point)}
