"""Workloads of packages for inference, Gaussian processes, flows, geometry and differential equations: fitted models."""

from __future__ import annotations

from typing import Any

from ._programs import data, network, numbers, train

__all__ = [
    "botorch_optimize", "geoopt_manifolds", "gpytorch_variational", "higher_maml", "nflows_spline", "normflows_glow", "pyro_mcmc", "pyro_vae",
    "pytorch_optimizer_many", "pytorch_warmup", "schedulefree_sgd", "torch_optimizer_many", "torchdiffeq_solvers", "torchsde_adjoint",
    "lion_options", "prodigy_options", "dadapt_lion", "adabelief_options", "rotary_options", "entmax_losses",
]  # fmt: skip


def pyro_mcmc() -> dict[str, Any]:
    import pyro
    import pyro.distributions as dist
    import torch
    from pyro.infer import MCMC, NUTS, Predictive

    pyro.set_rng_seed(0)

    def model(observed: Any) -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        scale = pyro.sample("scale", dist.HalfNormal(1.0))
        with pyro.plate("data", 3):
            pyro.sample("x", dist.Normal(mean, scale), obs=observed)

    mcmc = MCMC(NUTS(model, max_tree_depth=3), num_samples=4, warmup_steps=4, disable_progbar=True)
    mcmc.run(torch.tensor([1.0, 2.0, 1.5]))
    samples = mcmc.get_samples()
    predicted = Predictive(model, samples)(None)
    return {
        "mean": numbers(samples["mean"]),
        "scale": numbers(samples["scale"]),
        "predicted": list(predicted["x"].shape),
    }


def pyro_vae() -> dict[str, Any]:
    import pyro
    import pyro.distributions as dist
    import torch
    from pyro.infer import SVI, JitTrace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO, config_enumerate  # noqa: F401
    from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal
    from pyro.nn import PyroModule, PyroSample
    from pyro.optim import ClippedAdam

    pyro.set_rng_seed(0)
    pyro.clear_param_store()
    inputs = data()[0][:, :2]
    targets = inputs.sum(-1)

    class Regression(PyroModule):
        def __init__(self) -> None:
            super().__init__()
            self.linear = PyroModule[torch.nn.Linear](2, 1)
            self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 2]).to_event(2))

        def forward(self, x: Any, y: Any = None) -> Any:
            mean = self.linear(x).squeeze(-1)
            with pyro.plate("data", len(x)):
                pyro.sample("y", dist.Normal(mean, 0.5), obs=y)
            return mean

    results = {}
    for guide in (AutoDiagonalNormal, AutoMultivariateNormal):
        pyro.clear_param_store()
        pyro.set_rng_seed(1)
        model = Regression()
        svi = SVI(model, guide(model), ClippedAdam({"lr": 0.05}), TraceMeanField_ELBO())
        results[guide.__name__] = [svi.step(inputs, targets) for _ in range(3)]

    @config_enumerate
    def mixture(values: Any) -> None:
        weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
        means = pyro.param("means", torch.tensor([-1.0, 1.0]))
        with pyro.plate("rows", len(values)):
            component = pyro.sample("component", dist.Categorical(weights))
            pyro.sample("value", dist.Normal(means[component], 1.0), obs=values)

    pyro.clear_param_store()
    svi = SVI(mixture, lambda values: None, ClippedAdam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
    results["mixture"] = [svi.step(targets) for _ in range(3)]
    return results


def gpytorch_variational() -> dict[str, Any]:
    import gpytorch
    import torch

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points: Any) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self, points, distribution, learn_inducing_locations=True
                )
            )
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    torch.manual_seed(0)
    x = torch.linspace(0, 1, 20).unsqueeze(-1)
    y = torch.sin(6 * x).squeeze(-1)
    model, likelihood = Model(x[::4].clone()), gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=20)
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        prediction = likelihood(model(torch.tensor([[0.3], [0.7]])))
        low, high = prediction.confidence_region()
    return {"losses": losses, "mean": numbers(prediction.mean), "low": numbers(low), "high": numbers(high)}


def botorch_optimize() -> dict[str, Any]:
    import torch
    from botorch.acquisition import UpperConfidenceBound, qExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    x = torch.rand(8, 2, dtype=torch.float64)
    y = 1 - (x - 0.5).norm(dim=-1, keepdim=True)
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    candidate, value = optimize_acqf(UpperConfidenceBound(model, 0.1), bounds, 1, 3, 16)
    sampler = SobolQMCNormalSampler(torch.Size([16]), seed=1)
    improvement = qExpectedImprovement(model, y.max(), sampler)(
        torch.full((1, 2, 2), 0.4, dtype=torch.float64)
    )
    return {
        "candidate": [round(v, 2) for v in numbers(candidate)],
        "value": round(value.item(), 3),
        "improvement": round(improvement.item(), 4),
    }


def nflows_spline() -> dict[str, Any]:
    import torch
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.nn.nets import ResidualNet
    from nflows.transforms import (
        CompositeTransform,
        LULinear,
        MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
        PiecewiseRationalQuadraticCouplingTransform,
        RandomPermutation,
    )  # fmt: skip

    torch.manual_seed(0)
    flow = Flow(
        CompositeTransform(
            [
                RandomPermutation(2), LULinear(2), MaskedPiecewiseRationalQuadraticAutoregressiveTransform(2, 8, num_bins=4, tails="linear", tail_bound=3.0),
                PiecewiseRationalQuadraticCouplingTransform(
                    torch.tensor([0, 1]), lambda i, o: ResidualNet(i, o, hidden_features=8, num_blocks=1), num_bins=4, tails="linear", tail_bound=3.0
                ),
            ]
        ),
        StandardNormal([2]),
    )  # fmt: skip
    optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = -flow.log_prob(torch.randn(16, 2)).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        sample = flow.sample(3)
    return {"losses": losses, "sample": numbers(sample)}


def normflows_glow() -> dict[str, Any]:
    import normflows
    import torch

    torch.manual_seed(0)
    flows = []
    for _ in range(2):
        flows += [
            normflows.flows.MaskedAffineAutoregressive(2, 8),
            normflows.flows.LULinearPermute(2),
            normflows.flows.ActNorm(2),
        ]
    model = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2, trainable=False), flows)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model.forward_kld(torch.randn(16, 2))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    sample, log_prob = model.sample(3)
    return {"losses": losses, "sample": numbers(sample), "log_prob": numbers(log_prob)}


def geoopt_manifolds() -> dict[str, Any]:
    import geoopt
    import torch

    torch.manual_seed(0)
    results = {}
    target = torch.randn(4, 2)
    for manifold, start in (
        (geoopt.Stiefel(), torch.linalg.qr(torch.randn(4, 2))[0]), (geoopt.Sphere(), torch.nn.functional.normalize(torch.randn(4, 2), dim=-1)),
        (geoopt.Lorentz(), geoopt.Lorentz().expmap0(torch.cat([torch.zeros(4, 1), torch.randn(4, 2) * 0.1], 1))),
    ):  # fmt: skip
        point = geoopt.ManifoldParameter(start, manifold=manifold)
        optimizer = geoopt.optim.RiemannianSGD([point], lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (point[..., :2] - target).square().sum()
            loss.backward()
            optimizer.step()
        results[type(manifold).__name__] = [loss.item(), *numbers(point)]
    return results


def torchdiffeq_solvers() -> dict[str, Any]:
    import torch
    from torchdiffeq import odeint, odeint_adjoint, odeint_event

    torch.manual_seed(0)
    model = network()
    field = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    times = torch.linspace(0, 1, 4)
    results = {"model": sum(p.numel() for p in model.parameters())}
    for method in (
        "dopri5",
        "dopri8",
        "bosh3",
        "euler",
        "rk4",
        "midpoint",
        "explicit_adams",
        "implicit_adams",
        "adaptive_heun",
    ):
        path = odeint(
            lambda t, y: field(y),
            torch.ones(3, 2),
            times,
            method=method,
            options={} if method != "euler" else {"step_size": 0.1},
        )
        results[method] = numbers(path[-1])

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = field

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y)

    start = torch.ones(3, 2, requires_grad=True)
    odeint_adjoint(Field(), start, times, method="dopri5")[-1].square().sum().backward()
    moment, _state = odeint_event(
        lambda t, y: torch.ones_like(y), torch.zeros(1), torch.tensor(0.0), event_fn=lambda t, y: y - 0.5
    )
    return {
        **results,
        "gradient": numbers(start.grad),
        "weights": field[0].weight.grad.norm().item(),
        "moment": moment.item(),
    }


def torchsde_adjoint() -> dict[str, Any]:
    import torch
    from torchsde import BrownianInterval, sdeint, sdeint_adjoint

    class Noise(torch.nn.Module):
        noise_type, sde_type = "general", "stratonovich"

        def __init__(self) -> None:
            super().__init__()
            self.drift, self.diffusion = torch.nn.Linear(2, 2), torch.nn.Linear(2, 4)

        def f(self, t: Any, y: Any) -> Any:
            return self.drift(y)

        def g(self, t: Any, y: Any) -> Any:
            return self.diffusion(y).view(-1, 2, 2) * 0.1

    torch.manual_seed(0)
    sde, start = Noise(), torch.ones(3, 2, requires_grad=True)
    path = BrownianInterval(t0=0.0, t1=1.0, size=(3, 2), entropy=5)
    times = torch.linspace(0, 1, 3)
    sdeint_adjoint(sde, start, times, bm=path, dt=0.25, method="midpoint")[-1].square().sum().backward()
    return {
        "gradient": numbers(start.grad),
        "path": numbers(sdeint(sde, start, times, bm=path, dt=0.25, method="heun")),
    }


def higher_maml() -> dict[str, Any]:
    import higher
    import torch

    model = network()
    inputs, targets = data()
    meta = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        meta.zero_grad()
        inner = torch.optim.Adam(model.parameters(), lr=0.05)
        with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (copy, optimizer):
            for _ in range(2):
                optimizer.step(torch.nn.functional.cross_entropy(copy(inputs[:16]), targets[:16]))
            loss = torch.nn.functional.cross_entropy(copy(inputs[16:]), targets[16:])
            loss.backward()
        meta.step()
        losses.append(loss.item())
    return {"losses": losses, "weights": [p.norm().item() for p in model.parameters()]}


def _with(kinds: dict[str, Any]) -> dict[str, Any]:
    """The losses of each optimizer on the same network."""
    import torch

    results = {}
    for name, make in kinds.items():
        torch.manual_seed(0)
        model = network()
        optimizer = make(model.parameters())
        if hasattr(optimizer, "train"):
            optimizer.train()
        results[name] = train(model, optimizer)
    return results


def torch_optimizer_many() -> dict[str, Any]:
    import torch_optimizer as package

    names = (
        "AdaBound",
        "AdaMod",
        "AccSGD",
        "AggMo",
        "Apollo",
        "Lamb",
        "MADGRAD",
        "NovoGrad",
        "PID",
        "QHAdam",
        "QHM",
        "Ranger",
        "RangerQH",
        "SGDW",
        "SGDP",
        "AdamP",
        "SWATS",
        "Shampoo",
        "A2GradUni",
        "Adahessian",
    )
    kinds = {
        name: (lambda p, name=name: getattr(package, name)(p, lr=0.01))
        for name in names
        if name not in ("A2GradUni", "Adahessian")
    }
    kinds["A2GradUni"] = package.A2GradUni
    kinds["Lookahead"] = lambda p: package.Lookahead(package.Yogi(p, lr=0.01), k=2)
    return _with(kinds)


def pytorch_optimizer_many() -> dict[str, Any]:
    import pytorch_optimizer as package

    names = (
        "AdamP",
        "Lion",
        "MADGRAD",
        "DiffGrad",
        "Adan",
        "Tiger",
        "CAME",
        "Ranger21",
        "StableAdamW",
        "AdEMAMix",
        "Muon",
        "ADOPT",
        "NovoGrad",
        "Shampoo",
    )
    kinds = {}
    for name in names:
        kind = getattr(package, name, None)
        if kind is None or name == "Muon":
            continue
        extra = {"num_iterations": 10} if name == "Ranger21" else {}
        kinds[name] = lambda p, kind=kind, extra=extra: kind(p, lr=0.01, **extra)
    kinds["Lookahead"] = lambda p: package.Lookahead(package.AdamP(p, lr=0.01), k=2)
    return _with(kinds)


def schedulefree_sgd() -> dict[str, Any]:
    from schedulefree import RAdamScheduleFree, SGDScheduleFree

    return _with(
        {
            "sgd": lambda p: SGDScheduleFree(p, lr=0.1, warmup_steps=2), "radam": lambda p: RAdamScheduleFree(p, lr=0.01),
            "plain": lambda p: SGDScheduleFree(p, lr=0.1, foreach=False),
        }
    )  # fmt: skip


def lion_options() -> dict[str, Any]:
    from lion_pytorch import Lion

    return _with(
        {
            "betas": lambda p: Lion(p, lr=0.01, betas=(0.95, 0.98)), "decoupled": lambda p: Lion(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
        }
    )  # fmt: skip


def prodigy_options() -> dict[str, Any]:
    from prodigyopt import Prodigy

    return _with(
        {
            "safeguard": lambda p: Prodigy(p, safeguard_warmup=True, use_bias_correction=True, weight_decay=0.01), "beta": lambda p: Prodigy(p, beta3=0.9, slice_p=2),
        }
    )  # fmt: skip


def dadapt_lion() -> dict[str, Any]:
    import dadaptation as package

    return _with(
        {
            "adagrad": lambda p: package.DAdaptAdaGrad(p, lr=1.0), "sgd": lambda p: package.DAdaptSGD(p, lr=1.0, momentum=0.9),
            "lion": lambda p: package.DAdaptLion(p, lr=1.0), "adan": lambda p: package.DAdaptAdan(p, lr=1.0),
        }
    )  # fmt: skip


def adabelief_options() -> dict[str, Any]:
    from adabelief_pytorch import AdaBelief

    return _with(
        {
            "rectified": lambda p: AdaBelief(p, lr=0.01, rectify=True, weight_decouple=True, weight_decay=0.1, print_change_log=False),
            "amsgrad": lambda p: AdaBelief(p, lr=0.01, rectify=False, amsgrad=True, print_change_log=False),
        }
    )  # fmt: skip


def pytorch_warmup() -> dict[str, Any]:
    import pytorch_warmup as warmup
    import torch

    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
    damping = warmup.UntunedLinearWarmup(optimizer)
    inputs, targets = data()
    losses, rates = [], []
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        with damping.dampening():
            schedule.step()
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
    return {"losses": losses, "rates": rates}


def rotary_options() -> dict[str, Any]:
    import torch
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    torch.manual_seed(0)
    rotary = RotaryEmbedding(dim=4, use_xpos=True)
    queries, keys = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    rotated, other = rotary.rotate_queries_and_keys(queries, keys)
    pixels = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=8)
    axial = pixels.get_axial_freqs(3, 3)
    return {
        "queries": numbers(rotated[0, 0]), "keys": numbers(other[0, 0]), "axial": list(axial.shape),
        "applied": numbers(apply_rotary_emb(axial, torch.ones(1, 3, 3, 8))[0, 1]),
    }  # fmt: skip


def entmax_losses() -> dict[str, Any]:
    import torch
    from entmax import Entmax15Loss, EntmaxBisectLoss, SparsemaxLoss, entmax_bisect, normmax_bisect

    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(1), requires_grad=True)
    targets = torch.tensor([0, 3, 2])
    alpha = torch.tensor(1.33, requires_grad=True)
    results = {}
    for loss in (SparsemaxLoss(), Entmax15Loss(), EntmaxBisectLoss(alpha=1.3)):
        value = loss(scores, targets)
        results[type(loss).__name__] = [value.item(), torch.autograd.grad(value, scores)[0].norm().item()]
    entmax_bisect(scores, alpha).square().sum().backward()
    return {**results, "alpha": alpha.grad.item(), "normmax": numbers(normmax_bisect(scores, alpha=2))}
