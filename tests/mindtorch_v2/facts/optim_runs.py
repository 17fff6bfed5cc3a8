"""Runs of optimisers and schedulers that torch was recorded with: a torch-like package in, plain lists out.

A row of OPTIMIZERS is an expression over `O` (the optim namespace) and `ps` (the parameters), and what the
parameters and gradients are like. Values come from sines, so no random numbers are needed.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

SHAPES = ((3, 4), (5,))

# fmt: off
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "O.SGD(ps, lr=0.1)": {},
    "O.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.1)": {},
    "O.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, foreach=True)": {},
    "O.SGD(ps, lr=0.1, momentum=0.9, dampening=0.5, maximize=True, fused=True)": {},
    "O.SGD(ps, lr=torch.tensor(0.1), momentum=0.9)": {},
    "O.SGD(ps, lr=torch.tensor([0.1]))": {},
    "O.SGD(ps, lr=0.1, momentum=0.8)": {"dtype": "float64"},
    "O.SGD(ps, lr=0.1, momentum=0.7, weight_decay=0.1)": {"dtype": "complex64"},
    "O.SGD(ps, lr=0.1, momentum=0.6)": {"dtype": "bfloat16"},
    "O.SGD(ps, lr=0.2)": {"sparse": True, "ops": False},
    "O.SGD(ps, lr=0.2, momentum=0.9, differentiable=True)": {"frozen": True},
    "O.Adam(ps, lr=0.01)": {},
    "O.Adam(ps, lr=0.01, weight_decay=0.1)": {},
    "O.Adam(ps, lr=0.01, betas=(0.8, 0.9), eps=1e-3, amsgrad=True, maximize=True)": {},
    "O.Adam(ps, lr=torch.tensor(0.01))": {},
    "O.Adam(ps, lr=torch.tensor(0.01), betas=(torch.tensor(0.9), torch.tensor(0.99)))": {},
    "O.Adam(ps, lr=0.02)": {"dtype": "complex64"},
    "O.Adam(ps, lr=0.03)": {"dtype": "float64"},
    "O.Adam(ps, lr=0.04)": {"dtype": "bfloat16"},
    "O.Adam(ps, lr=0.01, foreach=True)": {},
    "O.Adam(ps, lr=0.01, fused=True, amsgrad=True)": {},
    "O.Adam(ps, lr=0.01, differentiable=True, amsgrad=True)": {"frozen": True},
    "O.Adam(ps, lr=0.01, decoupled_weight_decay=True, weight_decay=0.1)": {},
    "O.AdamW(ps)": {},
    "O.AdamW(ps, lr=torch.tensor(0.1), amsgrad=True)": {},
    "O.AdamW(ps, lr=0.05, weight_decay=0.2, maximize=True)": {},
    "O.AdamW(ps, lr=0.05, differentiable=True)": {"frozen": True},
    "O.Adagrad(ps)": {},
    "O.Adagrad(ps, lr=0.1, lr_decay=0.1, weight_decay=0.1, maximize=True, initial_accumulator_value=0.5)": {},
    "O.Adagrad(ps, lr=0.1)": {"sparse": True, "ops": False},
    "O.Adagrad(ps, lr=0.3)": {"dtype": "complex64", "ops": False},  # torch makes views it does not use
    "O.Adagrad(ps, lr=torch.tensor(0.1))": {},
    "O.Adagrad(ps, lr=0.1, fused=True)": {},
    "O.Adagrad(ps, lr=0.1, differentiable=True)": {"frozen": True},
    "O.Adadelta(ps)": {},
    "O.Adadelta(ps, lr=0.5, rho=0.7, weight_decay=0.1, maximize=True)": {},
    "O.Adadelta(ps, lr=0.4)": {"dtype": "complex64"},
    "O.Adadelta(ps, lr=torch.tensor(0.3), differentiable=True)": {"frozen": True},
    "O.Adamax(ps)": {},
    "O.Adamax(ps, lr=0.1, weight_decay=0.1, maximize=True, foreach=True)": {},
    "O.Adamax(ps, lr=0.2)": {"dtype": "complex64"},
    "O.Adamax(ps, lr=torch.tensor(0.1), differentiable=True)": {"frozen": True},
    "O.NAdam(ps)": {},
    "O.NAdam(ps, lr=0.1, weight_decay=0.1, momentum_decay=0.1, maximize=True)": {},
    "O.NAdam(ps, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)": {},
    "O.NAdam(ps, lr=0.2)": {"dtype": "complex64"},
    "O.NAdam(ps, lr=torch.tensor(0.1), differentiable=True)": {"frozen": True},
    "O.RAdam(ps)": {"steps": 8},
    "O.RAdam(ps, lr=0.1, betas=(0.8, 0.99), weight_decay=0.1, maximize=True)": {"steps": 8},
    "O.RAdam(ps, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)": {"steps": 8},
    "O.RAdam(ps, lr=0.2)": {"dtype": "complex64", "steps": 8},
    "O.RAdam(ps, lr=torch.tensor(0.1), differentiable=True)": {"frozen": True, "steps": 8},
    "O.RMSprop(ps)": {},
    "O.RMSprop(ps, lr=0.1, momentum=0.9, centered=True, weight_decay=0.1, maximize=True)": {},
    "O.RMSprop(ps, lr=0.1, alpha=0.8, centered=True)": {},
    "O.RMSprop(ps, lr=0.2, momentum=0.9, centered=True)": {"dtype": "complex64"},
    "O.RMSprop(ps, lr=torch.tensor(0.1), momentum=0.9, differentiable=True)": {"frozen": True},
    "O.Rprop(ps)": {},
    "O.Rprop(ps, lr=0.1, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2), maximize=True)": {},
    "O.Rprop(ps, lr=0.2)": {"dtype": "complex64"},
    "O.Rprop(ps, lr=torch.tensor(0.1), differentiable=True)": {"frozen": True},
    "O.ASGD(ps)": {},
    "O.ASGD(ps, lr=0.1, lambd=0.1, alpha=0.5, t0=1, weight_decay=0.1, maximize=True)": {},
    "O.ASGD(ps, lr=torch.tensor(0.1), t0=2)": {},
    "O.ASGD(ps, lr=0.2, t0=2)": {"dtype": "complex64"},
    "O.SparseAdam(ps, lr=0.1)": {"sparse": True, "ops": False},
    "O.SparseAdam(ps, lr=0.1, betas=(0.8, 0.9), maximize=True)": {"sparse": True, "ops": False},
    "O.Adafactor(ps)": {},
    "O.Adafactor(ps, lr=0.1, beta2_decay=-0.5, eps=(1e-4, 1e-2), d=2, weight_decay=0.1, maximize=True)": {},
    "O.Adafactor(ps, lr=0.2)": {"dtype": "float64"},
    "O.Adafactor(ps, lr=torch.tensor(0.1), foreach=True)": {},
    "O.Muon(ps[:1], lr=0.1)": {},
    "O.Muon(ps[:1], lr=0.1, nesterov=False, weight_decay=0, adjust_lr_fn='match_rms_adamw')": {},
    "O.SGD([{'params': ps[0], 'momentum': 0.5}, {'params': ps[1:], 'lr': 0.01}], lr=0.1)": {},
    "O.Adam([{'params': ps[0], 'betas': (0.5, 0.6)}, {'params': ps[1:], 'amsgrad': True}], lr=0.1)": {},
}

LBFGS: dict[str, str] = {
    "O.LBFGS(ps, max_iter=5)": "quadratic",
    "O.LBFGS(ps, lr=0.1, history_size=3, max_iter=10)": "quartic",
    "O.LBFGS(ps, line_search_fn='strong_wolfe', max_iter=6)": "rosenbrock",
    "O.LBFGS(ps, line_search_fn='strong_wolfe', lr=5.0)": "quadratic",
    "O.LBFGS(ps, line_search_fn='strong_wolfe', history_size=2, tolerance_change=1e-3)": "quartic",
    "O.LBFGS(ps, line_search_fn='strong_wolfe', max_eval=4)": "waves",
}

SCHEDULERS = (
    "S.LambdaLR(o, lambda e: 0.9**e)",
    "S.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)])",
    "S.MultiplicativeLR(o, lambda e: 0.9 + 0.01 * e)",
    "S.StepLR(o, 2)",
    "S.StepLR(o, 3, 0.5)",
    "S.MultiStepLR(o, [1, 3, 3, 7])",
    "S.ConstantLR(o)",
    "S.ConstantLR(o, 0.5, 0)",
    "S.LinearLR(o)",
    "S.LinearLR(o, 0.1, 0.7, 4)",
    "S.ExponentialLR(o, 0.9)",
    "S.PolynomialLR(o)",
    "S.PolynomialLR(o, 6, 2.5)",
    "S.CosineAnnealingLR(o, 5)",
    "S.CosineAnnealingLR(o, 3, 0.01)",
    "S.CosineAnnealingWarmRestarts(o, 3)",
    "S.CosineAnnealingWarmRestarts(o, 2, 2, 0.01)",
    "S.CyclicLR(o, 0.01, 0.1, 4)",
    "S.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, 5, mode='triangular2')",
    "S.CyclicLR(o, 0.01, 0.1, 3, mode='exp_range', gamma=0.9)",
    "S.CyclicLR(o, 0.1, 1, 3, scale_fn=lambda x: 0.9**x, scale_mode='iterations', max_momentum=[0.7, 0.8])",
    "S.OneCycleLR(o, 0.1, 20)",
    "S.OneCycleLR(o, [0.1, 0.2], None, 4, 5, pct_start=0.4, anneal_strategy='linear', three_phase=True)",
    "S.OneCycleLR(o, 0.1, 20, cycle_momentum=False, div_factor=10, final_div_factor=100)",
    "S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [3])",
    "S.SequentialLR(o, [S.LinearLR(o, 0.1, 1, 4), S.CosineAnnealingLR(o, 5), S.StepLR(o, 2)], [4, 9])",
    "S.SequentialLR(o, [S.LinearLR(o, 0.1, 1, 4), S.CosineAnnealingWarmRestarts(o, 3)], [4])",
    "S.SequentialLR(o, [S.SequentialLR(o, [S.LinearLR(o), S.StepLR(o, 1)], [2]), S.StepLR(o, 2)], [5])",
    "S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], o)",
    "S.ChainedScheduler([S.LinearLR(o), S.CosineAnnealingLR(o, 4), S.MultiplicativeLR(o, lambda e: 0.99)])",
    "W.SWALR(o, 0.05, 3)",
    "W.SWALR(o, [0.05, 0.5], 4, 'linear')",
    "W.SWALR(o, 0.05, 0)",
)
SCHEDULER_OPTIMIZERS = (
    "O.SGD(ps, lr=0.1, momentum=0.9)",
    "O.Adam(ps, lr=0.1)",
    "O.Adam(ps, lr=torch.tensor(0.1))",
)

PLATEAUS = (
    "S.ReduceLROnPlateau(o)",
    "S.ReduceLROnPlateau(o, 'max', patience=1, factor=0.5)",
    "S.ReduceLROnPlateau(o, patience=0, threshold=0.1, threshold_mode='abs', cooldown=2)",
    "S.ReduceLROnPlateau(o, patience=0, min_lr=[0.02, 0.2], eps=1e-3)",
)
METRICS = (1.0, 0.9, 0.95, 0.9, 0.89, 0.891, float("nan"), 0.5, 0.5, 0.5, 0.49, 0.6, 0.7, 0.7, 0.7, 0.1)
# fmt: on


def _values(count: int, phase: float) -> list[float]:
    return [math.sin(1.7 * i + phase) * (1 + 0.1 * i) for i in range(count)]


def _tensor(torch: Any, shape: tuple[int, ...], phase: float, dtype: str) -> Any:
    count = math.prod(shape)
    values: list[Any] = _values(count, phase)
    if dtype == "complex64":
        values = [complex(a, b) for a, b in zip(values, _values(count, phase + 0.5))]
    return torch.tensor(values, dtype=getattr(torch, dtype)).reshape(shape)


def plain(tensor: Any) -> Any:
    """A tensor's numbers as nested lists that JSON can hold; complex numbers as pairs."""
    values = tensor.detach().tolist()
    return _pairs(values) if tensor.is_complex() else values


def _pairs(values: Any) -> Any:
    return [_pairs(value) for value in values] if isinstance(values, list) else [values.real, values.imag]


def describe(torch: Any, value: Any) -> Any:
    """A state dict as JSON can hold it: tensors with their dtype, dicts as lists of pairs in their order."""
    if isinstance(value, torch.Tensor):
        return {"tensor": str(value.dtype).split(".")[-1], "values": plain(value)}
    if isinstance(value, dict):
        return {"dict": [[key, describe(torch, item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [describe(torch, item) for item in value]}
    return value


def restore(torch: Any, value: Any) -> Any:
    """The state dict that `describe` described."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        if value["tensor"].startswith("complex"):
            return torch.view_as_complex(torch.tensor(value["values"], dtype=torch.float32))
        return torch.tensor(value["values"], dtype=getattr(torch, value["tensor"]))
    if "dict" in value:
        return {key: restore(torch, item) for key, item in value["dict"]}
    (kind, items), *_ = value.items()
    return {"list": list, "tuple": tuple}[kind](restore(torch, item) for item in items)


def parameters(torch: Any, row: dict[str, Any]) -> list[Any]:
    """The parameters a row starts with."""
    dtype = row.get("dtype", "float32")
    made = [_tensor(torch, shape, 0.3 + i, dtype) for i, shape in enumerate(SHAPES)]
    return made if row.get("frozen") else [param.requires_grad_() for param in made]


def set_gradients(torch: Any, ps: list[Any], row: dict[str, Any], step: int) -> None:
    """The gradients of one step."""
    for i, param in enumerate(ps):
        grad = _tensor(torch, tuple(param.shape), 2.0 * i + 0.9 * step, row.get("dtype", "float32"))
        if row.get("sparse"):
            kept = [0, 2] if step % 2 else [1, 2]
            grad = torch.sparse_coo_tensor([kept], grad[kept], tuple(param.shape))
        param.grad = grad


def make(torch: Any, expression: str, ps: list[Any]) -> Any:
    """The optimiser an expression stands for."""
    return eval(expression, {"torch": torch, "O": torch.optim, "ps": ps})


def trajectory(torch: Any, expression: str, row: dict[str, Any]) -> dict[str, Any]:
    """The parameters after each step, and the state dict after all of them."""
    ps = parameters(torch, row)
    optimizer = make(torch, expression, ps)
    path = []
    for step in range(row.get("steps", 5)):
        set_gradients(torch, ps, row, step)
        optimizer.step()
        path.append([plain(param) for param in ps])
    return {"path": path, "state": describe(torch, optimizer.state_dict())}


def continued(torch: Any, expression: str, row: dict[str, Any], params: Any, state: Any) -> list[Any]:
    """The parameters two steps after loading a described state dict into a new optimiser."""
    ps = parameters(torch, row)
    with torch.no_grad():
        for param, values in zip(ps, params):
            values = torch.tensor(values, dtype=torch.float64)
            param.copy_(torch.view_as_complex(values) if param.is_complex() else values)
    optimizer = make(torch, expression, ps)
    optimizer.load_state_dict(restore(torch, state))
    for step in (100, 101):
        set_gradients(torch, ps, row, step)
        optimizer.step()
    return [plain(param) for param in ps]


def quadratic(p: Any, q: Any) -> Any:
    """A bowl with its sides of different steepness."""
    return (p * p).sum() * 2 + ((q - 1) ** 2).sum() + p.sum() * q.sum() * 0.1


def quartic(p: Any, q: Any) -> Any:
    """Flat at the bottom."""
    return (p**4).sum() + ((q - 1) ** 2).sum() + p.sum() * q.sum() * 0.01


def rosenbrock(p: Any, q: Any) -> Any:
    """A bent valley."""
    x = p.reshape(-1)
    valley = (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    return valley + (10 * (q[1:] - q[:-1] ** 2) ** 2 + (1 - q[:-1]) ** 2).sum()


def waves(p: Any, q: Any) -> Any:
    """Many small valleys in a bowl."""
    return (p * 3).sin().sum() + (q * 2).cos().sum() + (p**2).sum() * 0.1 + (q**2).sum() * 0.1


def minimised(torch: Any, expression: str, function: str) -> dict[str, Any]:
    """Losses and parameters of three steps with a closure, and how often it was called."""
    ps = parameters(torch, {"dtype": "float64"})
    optimizer = make(torch, expression, ps)
    calls = 0

    def closure() -> Any:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = globals()[function](*ps)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(3)]
    return {"losses": losses, "params": [plain(param) for param in ps], "calls": calls}


def _two_groups(torch: Any) -> list[dict[str, Any]]:
    first, second = (torch.ones(2, requires_grad=True) for _ in range(2))
    return [{"params": first}, {"params": second, "lr": 0.5}]


def schedule(torch: Any, expression: str, optimizer: str, epochs: bool = False) -> list[Any]:
    """Learning rates and momenta of both groups, at the start and after each of 14 steps."""
    o = make(torch, optimizer, _two_groups(torch))
    seen = []
    for step in range(15):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if step == 0:
                s = eval(expression, {"o": o, "S": torch.optim.lr_scheduler, "W": torch.optim.swa_utils})
            else:
                o.step()
                s.step(step * 3 % 11) if epochs else s.step()
        momenta = [group["betas"][0] if "betas" in group else group["momentum"] for group in o.param_groups]
        lrs = [float(group["lr"]) for group in o.param_groups]
        seen.append([[float(lr) for lr in s.get_last_lr()], lrs, momenta])
    return seen


def plateau(torch: Any, expression: str) -> list[Any]:
    """Learning rates and counts after each metric."""
    o = make(torch, "O.SGD(ps, lr=0.1)", _two_groups(torch))
    s = eval(expression, {"o": o, "S": torch.optim.lr_scheduler})
    seen = []
    for metric in METRICS:
        s.step(metric)
        seen.append([list(s.get_last_lr()), s.num_bad_epochs, s.best, s.in_cooldown])
    return seen
