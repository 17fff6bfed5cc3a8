"""Optimizer: groups, state dicts, hooks, closures, copies, messages and averages, case by case."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any


def _param(torch: Any, *shape: int) -> Any:
    return torch.nn.Parameter(torch.ones(*shape or (2,)))


def _optimizer(torch: Any, name: str = "SGD", **options: Any) -> Any:
    param = _param(torch)
    param.grad = torch.ones(2)
    return getattr(torch.optim, name)([param], **options)


def _base(torch: Any) -> Any:
    return importlib.import_module(torch.__name__ + ".optim.optimizer")


# Values each option must not have, and some it may.
_OPTIONS: dict[str, tuple[Any, ...]] = {
    "lr": (-1, 0, "a"),
    "momentum": (-1,),
    "weight_decay": (-1,),
    "rho": (-1, 2, 1),
    "betas": ((-1, 0.9), (0.9, 1), (0.9,), (0, 0)),
    "alpha": (-1,),
    "lr_decay": (-1,),
    "initial_accumulator_value": (-1,),
    "etas": ((0, 1.2), (0.5, 1)),
    "momentum_decay": (-1,),
    "beta2_decay": (0.5,),
    "d": (0.5,),
    "nesterov": (True,),
    "adjust_lr_fn": ("x",),
    "fused": ("with_foreach", "with_differentiable"),
}
_NAMES = (
    "Adafactor Adadelta Adagrad Adam Adamax AdamW ASGD LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam"
).split()


def wrong_options(torch: Any, show: Any) -> None:
    import inspect

    for name in _NAMES:
        kind = getattr(torch.optim, name)
        known = inspect.signature(kind).parameters
        for option, values in _OPTIONS.items():
            for value in values if option in known else ():
                options = {option: value}
                if option == "fused":
                    options = {"fused": True, value.removeprefix("with_"): True}
                show(name, options)
                show.raises(
                    lambda kind=kind, given=options: type(kind([_param(torch, 2, 2)], **given)).__name__
                )


def tensor_options(torch: Any, show: Any) -> None:
    one, two = torch.tensor([0.1]), torch.tensor([0.1, 0.2])
    for name in _NAMES:
        kind = getattr(torch.optim, name)
        show.raises(lambda kind=kind: kind([_param(torch, 2, 2)], lr=two))
        show.raises(lambda kind=kind: kind([_param(torch, 2, 2)], lr=one).defaults["lr"])
    show.raises(lambda: torch.optim.Adam([_param(torch)], lr=one, foreach=True))
    show.raises(lambda: torch.optim.Adam([_param(torch)], betas=(one, 0.9)))
    show.raises(lambda: torch.optim.Adam([_param(torch)], betas=(one, one), foreach=True))
    show.raises(lambda: torch.optim.Adam([_param(torch)], betas=(one, one)).defaults["betas"])


def wrong_parameters(torch: Any, show: Any) -> None:
    SGD, param = torch.optim.SGD, _param(torch)
    rows = (
        param,
        [],
        [1],
        ["a"],
        None,
        3,
        [param * 2],
        [{"params": {param}}],
        {"params": [param]},
        [{"params": param}, param],
        [{"params": param}, {"params": param}],
        [{"lr": 1}],
        [("a", param), _param(torch)],
        [_param(torch), ("a", param)],
        [{"params": [("a", param)]}, {"params": [_param(torch)]}],
        [{"params": [param]}, {"params": [("a", _param(torch))]}],
        [("a", 3)],
    )
    for row in rows:
        show.raises(lambda row=row: SGD(row))
    show.warns(lambda: SGD([param, param]))
    show.raises(lambda: SGD([param]).add_param_group([param]))
    show.raises(lambda: torch.optim.Muon([_param(torch)]))
    show.raises(lambda: torch.optim.LBFGS([{"params": param}, {"params": _param(torch)}]))


def groups(torch: Any, show: Any) -> None:
    optimizer = torch.optim.SGD([{"params": _param(torch), "extra": 3}], lr=0.1)
    optimizer.add_param_group({"params": _param(torch, 3), "lr": 7})
    optimizer.add_param_group({"params": iter([_param(torch, 1)]), "momentum": 0.5})
    for group in optimizer.param_groups:
        show({key: value for key, value in group.items() if key != "params"})
        show([param.shape for param in group["params"]])
    show(optimizer)
    show(torch.optim.Adam([("w", _param(torch)), ("b", _param(torch))]))
    show(torch.optim.SGD([{"params": _param(torch), "lr": torch.tensor(0.3)}]))


def defaults_of_all(torch: Any, show: Any) -> None:
    for name in _NAMES:
        optimizer = getattr(torch.optim, name)([_param(torch, 2, 2)])
        show(name, optimizer.defaults)
        show(list(optimizer.param_groups[0]), sorted(optimizer.__getstate__()))
        show(dict(optimizer.state_dict()["state"]))


def required_options(torch: Any, show: Any) -> None:
    class Mine(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: Any = _base(torch).required) -> None:
            super().__init__(params, {"lr": lr, "other": 3})

    show.raises(lambda: Mine([_param(torch)]))
    show.raises(lambda: Mine([{"params": _param(torch)}, {"params": _param(torch), "lr": 3}]))
    mine = Mine([{"params": _param(torch), "lr": 2}])
    show(mine.defaults, mine.param_groups[0]["lr"])
    show.raises(mine.step)


def user_optimizers(torch: Any, show: Any) -> None:
    class Mine(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        state = self.state[param]
                        state["n"] = state.get("n", 0) + 1
                        param.add_(param.grad, alpha=-group["lr"])
            return loss

    param = _param(torch)
    param.grad = torch.ones(2)
    mine = Mine([param])
    calls: list[str] = []
    mine.register_step_post_hook(lambda *_: calls.append("post"))
    show(mine.step(), mine.step(lambda: 5), param, mine.state_dict(), calls)
    scheduler = torch.optim.lr_scheduler.StepLR(mine, 1)
    mine.step()
    scheduler.step()
    show(mine.param_groups[0]["lr"], copy.deepcopy(mine).defaults)


def step_hooks(torch: Any, show: Any) -> None:
    base, optimizer = _base(torch), _optimizer(torch)
    calls: list[Any] = []

    def noting(name: str) -> Any:
        return lambda o, args, kwargs: calls.append((name, len(args), sorted(kwargs)))

    handles = [
        optimizer.register_step_pre_hook(noting("pre")),
        optimizer.register_step_post_hook(noting("post")),
        base.register_optimizer_step_pre_hook(noting("global pre")),
        base.register_optimizer_step_post_hook(noting("global post")),
    ]
    show(optimizer.step(), optimizer.step(closure=lambda: 5), optimizer.step(lambda: 6))
    show(calls)
    for handle in handles:
        handle.remove()
    optimizer.step()
    show(len(calls))
    with_closure = optimizer.register_step_pre_hook(lambda o, a, k: (a, {"closure": lambda: 77}))
    show(optimizer.step())
    with_closure.remove()
    for result in (5, (1, 2, 3)):
        handle = optimizer.register_step_pre_hook(lambda o, a, k, result=result: result)
        try:
            optimizer.step()
        except RuntimeError as error:
            show(str(error).split(" must return ")[1])
        handle.remove()

    class Mine(torch.optim.Adam):
        def step(self, closure: Any = None) -> Any:
            calls.append("mine")
            return super().step(closure)

    mine = Mine([_param(torch)])
    mine.register_step_post_hook(lambda *_: calls.append("after mine"))
    mine.step()
    show(calls[-3:])


def state_dict_hooks(torch: Any, show: Any) -> None:
    optimizer = _optimizer(torch)
    optimizer.register_state_dict_pre_hook(lambda o: show("second"))
    optimizer.register_state_dict_pre_hook(lambda o: show("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, d: {"x": 1, **d})
    optimizer.register_state_dict_post_hook(lambda o, d: show("post", list(d)), prepend=True)
    state_dict = optimizer.state_dict()
    show(list(state_dict))
    optimizer.register_load_state_dict_pre_hook(lambda o, d: show("load", list(d)))
    optimizer.register_load_state_dict_pre_hook(
        lambda o, d: {key: value for key, value in d.items() if key != "x"}, prepend=True
    )
    optimizer.register_load_state_dict_post_hook(lambda o: show("loaded"))
    optimizer.load_state_dict(state_dict)


def loading(torch: Any, show: Any) -> None:
    SGD, Adam = torch.optim.SGD, torch.optim.Adam
    optimizer = _optimizer(torch, momentum=0.9)
    optimizer.step()
    show.raises(lambda: optimizer.load_state_dict({}))
    show.raises(lambda: optimizer.load_state_dict(SGD([_param(torch), _param(torch)]).state_dict()))
    two = SGD([{"params": _param(torch)}, {"params": _param(torch)}])
    show.raises(lambda: optimizer.load_state_dict(two.state_dict()))

    saved = _optimizer(torch, "Adam")
    saved.step()
    state_dict = saved.state_dict()
    state_dict["state"][0]["exp_avg"] = state_dict["state"][0]["exp_avg"].double()
    state_dict["state"][0]["more"] = [torch.ones(2, dtype=torch.float64), {"a": torch.ones(1).long()}, 3]
    state_dict["state"]["elsewhere"] = 7
    state_dict["param_groups"][0]["added"] = 5
    loaded = Adam([_param(torch)])
    loaded.load_state_dict(state_dict)
    show(loaded.state_dict())
    named = Adam([("w", _param(torch))])
    show(named.state_dict())
    named.load_state_dict(Adam([_param(torch)]).state_dict())
    show(named.param_groups[0]["param_names"])
    half = Adam([torch.nn.Parameter(torch.ones(2).half())])
    half.load_state_dict(state_dict)
    state = half.state[half.param_groups[0]["params"][0]]
    show({key: getattr(value, "dtype", None) for key, value in state.items()})


def old_state_dicts(torch: Any, show: Any) -> None:
    for name in _NAMES:
        optimizer = getattr(torch.optim, name)([_param(torch, 2, 2)])
        state_dict = optimizer.state_dict()
        for group in state_dict["param_groups"]:
            for key in list(group):
                if key != "params":
                    group.pop(key)
        state_dict["state"] = {0: {"step": 3, "mu_product": 0.5, "eta": 0.01, "mu": 1}}
        optimizer.load_state_dict(state_dict)
        show(name, optimizer.state_dict())


def copies(torch: Any, show: Any) -> None:
    optimizer = _optimizer(torch, "Adam", lr=0.1)
    optimizer.step()
    for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        param = copied.param_groups[0]["params"][0]
        show(copied, param, copied.state_dict(), next(iter(copied.state)) is param)
        param.grad = torch.ones(2)
        copied.step()
        show(param, optimizer.param_groups[0]["params"][0])


def zeroing(torch: Any, show: Any) -> None:
    optimizer = _optimizer(torch)
    param = optimizer.param_groups[0]["params"][0]
    grad = param.grad
    optimizer.zero_grad(set_to_none=False)
    show(param.grad, grad is param.grad)
    param.grad = torch.ones(2, requires_grad=True) * 2
    optimizer.zero_grad(False)
    show(param.grad, param.grad.requires_grad, param.grad.grad_fn)
    optimizer.zero_grad()
    show(param.grad)


def closures_and_modes(torch: Any, show: Any) -> None:
    optimizer = _optimizer(torch)
    with torch.no_grad():
        show(optimizer.step(torch.is_grad_enabled), torch.is_grad_enabled())
    show.raises(lambda: torch.optim.LBFGS([_param(torch)]).step())
    frozen = torch.zeros(2)
    frozen.grad = torch.ones(2)
    torch.optim.SGD([frozen], lr=1.0).step()
    show(frozen)
    weight = torch.ones(2, requires_grad=True)
    moved = weight.clone()
    differentiable = torch.optim.SGD([moved], lr=0.1, momentum=0.9, differentiable=True)
    moved.grad = weight * 2
    differentiable.step()
    moved.sum().backward()
    show(moved.detach(), weight.grad)


def refusals_of_a_step(torch: Any, show: Any) -> None:
    for name in _NAMES:
        if name in ("LBFGS", "Adagrad", "SGD", "Adafactor", "Muon", "SparseAdam"):
            continue
        param = torch.ones(2)
        for options in ({"capturable": True}, {"foreach": True, "differentiable": True}):
            param.grad = torch.ones(2)
            show(name, options)
            show.raises(getattr(torch.optim, name)([param], **options).step)
    for options in ({}, {"fused": True}):
        for name in ("Adam", "SGD", "Adagrad"):
            optimizer = _optimizer(torch, name, **options)
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(0.0)
            show.raises(optimizer.step)
            show(optimizer.param_groups[0]["params"][0])
    optimizer = _optimizer(torch, "Adam", fused=True)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(1.0)
    optimizer.step()
    show(optimizer.state_dict()["state"], optimizer.param_groups[0]["params"])
    complex_param = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    complex_param.grad = torch.ones(2, dtype=torch.complex64)
    for name in ("Adam", "SGD", "Adagrad", "Adafactor"):
        options = {} if name == "Adafactor" else {"fused": True}
        show.raises(getattr(torch.optim, name)([complex_param], **options).step)
    adam = importlib.import_module(torch.__name__ + ".optim.adam").adam
    options = {
        "amsgrad": False,
        "beta1": 0.9,
        "beta2": 0.9,
        "lr": 1,
        "weight_decay": 0,
        "eps": 1,
        "maximize": False,
    }
    show.raises(lambda: adam(*([[torch.ones(2)]] * 4), [], [1], **options))


def sparse_gradients(torch: Any, show: Any) -> None:
    param = _param(torch, 3, 2)
    for name in _NAMES:
        if name == "LBFGS":
            continue
        param.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (3, 2))
        show(name)
        show.raises(getattr(torch.optim, name)([param]).step)
    param.grad = torch.ones(3, 2)
    show.raises(torch.optim.SparseAdam([param]).step)


def swapping_in(torch: Any, show: Any) -> None:
    swap = torch.optim.swap_in_optimizer_params_and_state
    optimizer = _optimizer(torch, "Adam")
    own = optimizer.param_groups[0]["params"][0]
    show.raises(lambda: swap(optimizer, {"a": own}, optimizer.state_dict()).__enter__())
    optimizer.step()
    state_dict = copy.deepcopy(optimizer.state_dict())
    other = torch.zeros(2, requires_grad=True)
    other.grad = torch.ones(2)
    with swap(optimizer, {"a": other}, state_dict):
        optimizer.param_groups[0]["lr"] = 5
        optimizer.step()
        show(optimizer.param_groups[0]["params"][0] is other)
    show(own, other, state_dict["state"][0], optimizer.param_groups[0]["lr"], optimizer.state[own])

    def entered(**changes: Any) -> Any:
        return lambda: swap(optimizer, {"a": other}, {**state_dict, **changes}).__enter__()

    group = state_dict["param_groups"][0]
    for changes in (
        {"state": []},
        {"state": {0: 5}},
        {"state": {7: {}}},
        {"param_groups": {}},
        {"param_groups": []},
        {"param_groups": [5]},
        {"param_groups": [{**group, "params": ["a"]}]},
        {"param_groups": [{**group, "params": [0, 1]}]},
        {"param_groups": [{**group, "more": 1}]},
    ):
        show.raises(entered(**changes))
    show.raises(lambda: swap(optimizer, {}, state_dict).__enter__())


def averaged_models(torch: Any, show: Any) -> None:
    swa = torch.optim.swa_utils
    model = torch.nn.Linear(2, 1)
    for options in (
        {},
        {"avg_fn": swa.get_ema_avg_fn(0.9)},
        {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
        {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
        {"avg_fn": swa.get_swa_avg_fn(), "use_buffers": True},
    ):
        averaged = swa.AveragedModel(model, **options)
        for value in (1.0, 2.0, 6.0):
            with torch.no_grad():
                for param in model.parameters():
                    param.fill_(value)
            averaged.update_parameters(model)
        show(averaged, averaged.n_averaged, averaged(torch.ones(1, 2)).detach(), list(averaged.state_dict()))
    show.raises(lambda: swa.AveragedModel(model, avg_fn=print, multi_avg_fn=print))
    show.raises(lambda: swa.get_ema_avg_fn(2))
    show.raises(lambda: swa.get_ema_multi_avg_fn(-1))


def batch_norm_statistics(torch: Any, show: Any) -> None:
    swa = torch.optim.swa_utils
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=0.3)).eval()
    data = [torch.tensor([[1.0, 2.0], [3.0, 6.0]]), torch.tensor([[5.0, 0.0], [7.0, 2.0]])]
    swa.update_bn(data, model)
    norm = model[0]
    show(norm.running_mean, norm.running_var, norm.num_batches_tracked, norm.momentum, model.training)
    swa.update_bn([(batch, 1) for batch in data], model, device="cpu")
    show(norm.running_mean)
    swa.update_bn(["never read"], torch.nn.Linear(1, 1))
