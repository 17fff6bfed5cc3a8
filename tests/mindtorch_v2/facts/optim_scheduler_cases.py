"""Schedulers: state dicts, order of calls, warnings and messages, case by case."""

from __future__ import annotations

import copy
from typing import Any


def _optimizer(torch: Any, n_groups: int = 1, name: str = "SGD", lr: Any = 0.1, **options: Any) -> Any:
    groups = [{"params": torch.nn.Parameter(torch.ones(2))} for _ in range(n_groups)]
    return getattr(torch.optim, name)(groups, lr=lr, **options)


class _Halves:
    def __init__(self) -> None:
        self.a = 3

    def __call__(self, epoch: int) -> float:
        return 0.5


def _makers(S: Any) -> dict[str, Any]:
    return {
        "LambdaLR": lambda o: S.LambdaLR(o, lambda e: 0.9**e),
        "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda e: 0.9),
        "StepLR": lambda o: S.StepLR(o, 2),
        "MultiStepLR": lambda o: S.MultiStepLR(o, [1, 3, 3]),
        "ConstantLR": S.ConstantLR,
        "LinearLR": S.LinearLR,
        "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9),
        "PolynomialLR": S.PolynomialLR,
        "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 5),
        "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2),
        "CyclicLR": lambda o: S.CyclicLR(o, 0.01, 0.1),
        "OneCycleLR": lambda o: S.OneCycleLR(o, 0.1, 10),
        "SequentialLR": lambda o: S.SequentialLR(o, [S.ConstantLR(o), S.ExponentialLR(o, 0.9)], [2]),
        "ChainedScheduler": lambda o: S.ChainedScheduler([S.ConstantLR(o), S.ExponentialLR(o, 0.9)]),
    }


def state_dicts(torch: Any, show: Any) -> None:
    for name, make in _makers(torch.optim.lr_scheduler).items():
        optimizer = _optimizer(torch, momentum=0.9)
        scheduler = make(optimizer)
        show(name, scheduler.state_dict(), scheduler.get_last_lr())
        for _ in range(3):
            optimizer.step()
            scheduler.step()
        state_dict, groups = copy.deepcopy(scheduler.state_dict()), optimizer.state_dict()
        show(state_dict)
        other = _optimizer(torch, momentum=0.9)
        resumed = make(other)
        other.load_state_dict(groups)
        resumed.load_state_dict(state_dict)
        other.step()
        resumed.step()
        optimizer.step()
        scheduler.step()
        show(resumed.get_last_lr(), resumed.get_last_lr() == scheduler.get_last_lr())


def state_of_functions(torch: Any, show: Any) -> None:
    S = torch.optim.lr_scheduler
    for kind in (S.LambdaLR, S.MultiplicativeLR):
        scheduler = kind(_optimizer(torch, 2), [_Halves(), lambda e: 1])
        state_dict = scheduler.state_dict()
        show(state_dict)
        state_dict["lr_lambdas"][0] = {"a": 9}
        scheduler.load_state_dict(state_dict)
        show(scheduler.lr_lambdas[0].a)
        show.raises(lambda kind=kind: kind(_optimizer(torch, 2), [lambda e: 1]))
    show(S.CyclicLR(_optimizer(torch, momentum=0.9), 0.1, 0.2, scale_fn=_Halves()).state_dict())


def order_of_calls(torch: Any, show: Any) -> None:
    S = torch.optim.lr_scheduler
    optimizer = _optimizer(torch)
    scheduler = S.StepLR(optimizer, 2)
    show.warns(scheduler.step)
    show.warns(scheduler.step)
    optimizer = _optimizer(torch)
    scheduler = S.StepLR(optimizer, 2)
    optimizer.step()
    show.warns(scheduler.step)
    optimizer = _optimizer(torch)
    scheduler = S.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    show.warns(scheduler.step)
    copied = copy.deepcopy(S.StepLR(_optimizer(torch), 2))
    show.warns(copied.step)
    show.warns(lambda: scheduler.step(5))
    show(scheduler.get_last_lr(), scheduler.last_epoch)


def asking_for_lr(torch: Any, show: Any) -> None:
    for name, make in _makers(torch.optim.lr_scheduler).items():
        scheduler = make(_optimizer(torch, momentum=0.9))
        show(name)
        show.raises(lambda scheduler=scheduler: show.warns(scheduler.get_lr))


def resuming(torch: Any, show: Any) -> None:
    S = torch.optim.lr_scheduler
    show.raises(lambda: S.StepLR(_optimizer(torch), 2, last_epoch=3))
    optimizer = _optimizer(torch)
    scheduler = S.StepLR(optimizer, 2)
    optimizer.step()
    scheduler.step()
    show(S.StepLR(optimizer, 2, last_epoch=1).state_dict())
    show(S.CosineAnnealingLR(optimizer, 4, last_epoch=2).state_dict())


def wrong_arguments(torch: Any, show: Any) -> None:
    S, W = torch.optim.lr_scheduler, torch.optim.swa_utils
    one, two, plain = _optimizer(torch), _optimizer(torch, 2, momentum=0.9), _optimizer(torch, name="Adagrad")
    other = S.ExponentialLR(_optimizer(torch), 0.9)
    rows = (
        lambda: S.StepLR(5, 2),
        lambda: S.ReduceLROnPlateau(5),
        lambda: S.LRScheduler(one),
        lambda: S.ConstantLR(one, 2),
        lambda: S.LinearLR(one, 0),
        lambda: S.LinearLR(one, end_factor=2),
        lambda: S.CosineAnnealingWarmRestarts(one, 0),
        lambda: S.CosineAnnealingWarmRestarts(one, 1.5),
        lambda: S.CosineAnnealingWarmRestarts(one, 2, 0),
        lambda: S.CosineAnnealingWarmRestarts(one, 2, eta_min="a"),
        lambda: S.CosineAnnealingWarmRestarts(one, 2).step(-1),
        lambda: S.CyclicLR(two, 0.1, 0.2, mode="x"),
        lambda: S.CyclicLR(plain, 0.1, 0.2),
        lambda: S.CyclicLR(two, [0.1], 0.2),
        lambda: S.CyclicLR(two, 0.1, [0.2]),
        lambda: S.OneCycleLR(two, 0.1),
        lambda: S.OneCycleLR(two, 0.1, 0),
        lambda: S.OneCycleLR(two, 0.1, epochs=-2, steps_per_epoch=2),
        lambda: S.OneCycleLR(two, 0.1, epochs=2, steps_per_epoch=0.5),
        lambda: S.OneCycleLR(two, 0.1, 10, pct_start=1),
        lambda: S.OneCycleLR(two, 0.1, 10, anneal_strategy="x"),
        lambda: S.OneCycleLR(plain, 0.1, 10),
        lambda: S.OneCycleLR(two, [0.1], 10),
        lambda: S.OneCycleLR(two, 0.1, 10, max_momentum=[0.1]),
        lambda: S.SequentialLR(one, [], []),
        lambda: S.SequentialLR(one, [S.ExponentialLR(one, 0.9)], [2]),
        lambda: S.SequentialLR(one, [S.ExponentialLR(one, 0.9), other], [2]),
        lambda: S.SequentialLR(one, [S.ExponentialLR(one, 0.9), S.ReduceLROnPlateau(one)], [2]),
        lambda: S.SequentialLR(one, [S.ExponentialLR(one, 0.9), object()], [2]),
        lambda: S.ChainedScheduler([]),
        lambda: S.ChainedScheduler([S.ExponentialLR(one, 0.9), other]),
        lambda: S.ChainedScheduler([S.ExponentialLR(one, 0.9), S.ReduceLROnPlateau(one)]),
        lambda: S.ReduceLROnPlateau(one, "x"),
        lambda: S.ReduceLROnPlateau(one, factor=1.0),
        lambda: S.ReduceLROnPlateau(one, threshold_mode="x"),
        lambda: S.ReduceLROnPlateau(two, min_lr=[1]),
        lambda: S.ReduceLROnPlateau(one).get_lr(),
        lambda: W.SWALR(one, 0.05, anneal_strategy="x"),
        lambda: W.SWALR(one, 0.05, anneal_epochs=-1),
        lambda: W.SWALR(two, [0.05]),
    )
    for row in rows:
        show.raises(row)


def too_many_steps(torch: Any, show: Any) -> None:
    optimizer = _optimizer(torch, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 2)
    for _ in range(4):
        optimizer.step()
        show.raises(scheduler.step)


def groups_added_later(torch: Any, show: Any) -> None:
    S = torch.optim.lr_scheduler
    for make in (
        lambda o: S.ExponentialLR(o, 0.9),
        lambda o: S.LambdaLR(o, lambda e: 0.9),
        lambda o: S.ReduceLROnPlateau(o, patience=0),
        lambda o: S.ReduceLROnPlateau(o, patience=0, min_lr=[0.1]),
    ):
        optimizer = _optimizer(torch)
        scheduler = make(optimizer)
        optimizer.add_param_group({"params": torch.nn.Parameter(torch.ones(3)), "lr": 1.0})
        optimizer.step()
        metric = (1.0,) if isinstance(scheduler, S.ReduceLROnPlateau) else ()
        for _ in range(2):
            show.raises(scheduler.step, *metric)
        show([group["lr"] for group in optimizer.param_groups])


def plateaus(torch: Any, show: Any) -> None:
    S = torch.optim.lr_scheduler
    scheduler = S.ReduceLROnPlateau(_optimizer(torch, 2), patience=0, min_lr=(0, 0.1))
    scheduler.step(1.0)
    show.warns(lambda: scheduler.step(torch.tensor(1.0), epoch=7))
    show(scheduler.state_dict(), scheduler.in_cooldown)
    other = S.ReduceLROnPlateau(_optimizer(torch, 2), "max", patience=3)
    other.load_state_dict(scheduler.state_dict())
    show(other.state_dict())


def tensor_learning_rates(torch: Any, show: Any) -> None:
    lr = torch.tensor(0.1)
    optimizer = _optimizer(torch, lr=lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    scheduler.step()
    group = optimizer.param_groups[0]
    show(lr, group["lr"] is lr, group["initial_lr"], scheduler.get_last_lr(), scheduler.base_lrs)


def own_schedulers(torch: Any, show: Any) -> None:
    class Halving(torch.optim.lr_scheduler._LRScheduler):
        def get_lr(self) -> list[Any]:
            return [group["lr"] * 0.5 for group in self.optimizer.param_groups]

    optimizer = _optimizer(torch)
    scheduler = Halving(optimizer)
    show(optimizer.param_groups[0]["lr"], isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler))
    optimizer.step()
    scheduler.step()
    show(scheduler.state_dict())
