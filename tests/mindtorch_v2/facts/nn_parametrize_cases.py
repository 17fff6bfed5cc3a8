"""Cases of weight_norm, spectral_norm, parametrize, parametrizations and prune."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any


def _linear(torch: Any, out: int = 2, inp: int = 3) -> Any:
    lin = torch.nn.Linear(inp, out)
    with torch.no_grad():
        lin.weight.copy_(torch.arange(1.0, out * inp + 1).reshape(out, inp))
        lin.bias.fill_(0.5)
    return lin


def old_weight_norm_splits_a_weight(torch: Any, show: Any) -> None:
    nn = torch.nn
    lin = _linear(torch)
    made = show.warns(lambda: nn.utils.weight_norm(lin))
    show(made is lin, [n for n, _ in lin.named_parameters()], lin.weight_g, lin.weight_v)
    show(lin.weight, type(lin.weight).__name__, "weight" in vars(lin), len(lin._forward_pre_hooks))
    with torch.no_grad():
        lin.weight_g.mul_(2)
    show(lin(torch.ones(1, 3)), lin.weight)
    lin(torch.ones(1, 3)).sum().backward()
    show(lin.weight_g.grad, lin.weight_v.grad, list(lin.state_dict()))
    show.raises(nn.utils.weight_norm, lin)
    out = nn.utils.remove_weight_norm(lin)
    show(out is lin, [n for n, _ in lin.named_parameters()], type(lin.weight).__name__, lin.weight)
    show.raises(nn.utils.remove_weight_norm, lin)
    for dim in (None, 1, -1):
        lin = nn.utils.weight_norm(_linear(torch), dim=dim)
        show(dim, lin.weight_g, torch.allclose(lin.weight, _linear(torch).weight))
    conv = nn.utils.weight_norm(nn.Conv1d(2, 3, 2))
    show(conv.weight_g.shape, conv(torch.ones(1, 2, 4)).shape)
    rnn = nn.utils.weight_norm(_linear(torch), name="bias")
    show([n for n, _ in rnn.named_parameters()])
    show.raises(nn.utils.weight_norm, _linear(torch), "nope")


def old_spectral_norm_divides_by_the_largest_singular_value(torch: Any, show: Any) -> None:
    nn = torch.nn
    lin = nn.utils.spectral_norm(_linear(torch))
    show([n for n, _ in lin.named_parameters()], [n for n, _ in lin.named_buffers()], list(lin.state_dict()))
    show(lin.weight_u, lin.weight_v, lin.weight_orig)
    for _ in range(3):
        out = lin(torch.ones(1, 3))
    show(out, lin.weight)
    out.sum().backward()
    show(lin.weight_orig.grad)
    lin.eval()
    u = lin.weight_u.clone()
    lin(torch.ones(1, 3))
    show(torch.equal(u, lin.weight_u), lin.state_dict()._metadata)
    other = nn.utils.spectral_norm(_linear(torch))
    show(other.load_state_dict(lin.state_dict()), torch.equal(other.weight_u, lin.weight_u))
    show.raises(nn.utils.spectral_norm, lin)
    show(nn.utils.remove_spectral_norm(lin) is lin, [n for n, _ in lin.named_parameters()], lin.weight)
    show.raises(nn.utils.remove_spectral_norm, lin)
    conv = nn.utils.spectral_norm(nn.ConvTranspose1d(2, 3, 2), n_power_iterations=2)
    show(conv.weight_u.shape, conv.weight_v.shape)
    show.raises(nn.utils.spectral_norm, _linear(torch), n_power_iterations=0)
    twin = copy.deepcopy(other)
    show(torch.allclose(twin(torch.ones(1, 3)), other(torch.ones(1, 3))))


def parametrizations_compute_a_tensor_when_it_is_read(torch: Any, show: Any) -> None:
    nn = torch.nn
    P = nn.utils.parametrize

    class Symmetric(nn.Module):
        def forward(self, X: Any) -> Any:
            return X.triu() + X.triu(1).transpose(-1, -2)

        def right_inverse(self, A: Any) -> Any:
            return A.triu()

    class Twice(nn.Module):
        def forward(self, X: Any) -> Any:
            return X * 2

    lin = _linear(torch, 2, 2)
    show(P.register_parametrization(lin, "weight", Symmetric()) is lin, lin)
    show(type(lin).__name__, type(lin).__mro__[1].__name__, isinstance(lin, nn.Linear), lin.weight)
    show([n for n, _ in lin.named_parameters()], list(lin.state_dict()), P.is_parametrized(lin))
    show(P.is_parametrized(lin, "weight"), P.is_parametrized(lin, "bias"), P.is_parametrized(nn.ReLU()))
    show(P.type_before_parametrizations(lin).__name__, P.type_before_parametrizations(nn.ReLU()).__name__)
    P.register_parametrization(lin, "weight", Twice())
    show(lin.weight, lin, len(lin.parametrizations.weight), lin.parametrizations.weight.original)
    show.raises(setattr, lin, "weight", torch.ones(2, 2))
    with P.cached():
        a, b = lin.weight, lin.weight
        show(a is b)
    show(lin.weight is lin.weight)
    lin(torch.ones(1, 2)).sum().backward()
    show(lin.parametrizations.weight.original.grad)
    twin = copy.deepcopy(lin)
    show(twin, torch.equal(twin.weight, lin.weight), type(twin).__name__)
    show.raises(pickle.dumps, lin)
    show(
        P.remove_parametrizations(lin, "weight", leave_parametrized=True) is lin,
        lin,
        lin.weight,
        type(lin).__name__,
    )
    one = _linear(torch, 2, 2)
    P.register_parametrization(one, "weight", Symmetric())
    one.weight = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    show(one.weight, one.parametrizations.weight.original)
    P.remove_parametrizations(one, "weight", leave_parametrized=False)
    show(one.weight, [n for n, _ in one.named_parameters()])
    show.raises(P.remove_parametrizations, one, "weight")
    show([n for n in dir(twin) if n in ("weight", "parametrizations", "bias")])


def several_tensors_can_be_parametrized(torch: Any, show: Any) -> None:
    nn = torch.nn
    P = nn.utils.parametrize

    class Twice(nn.Module):
        def forward(self, X: Any) -> Any:
            return X * 2

    class Split(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a + b

        def right_inverse(self, X: Any) -> Any:
            return X / 2, X / 2

    lin = _linear(torch)
    P.register_parametrization(lin, "weight", Twice())
    P.register_parametrization(lin, "bias", Split())
    show(lin, lin.bias, list(lin.state_dict()))
    lin.register_buffer("scale", torch.ones(2))
    P.register_parametrization(lin, "scale", Twice())
    show(lin.scale, [n for n, _ in lin.named_buffers()])
    show.raises(P.remove_parametrizations, lin, "bias", leave_parametrized=False)
    P.remove_parametrizations(lin, "bias")
    show(lin.bias, [n for n, _ in lin.named_parameters()])
    other = _linear(torch)
    P.transfer_parametrizations_and_params(lin, other, "weight")
    show(other, [n for n, _ in other.named_parameters()], other.weight)
    third = _linear(torch)
    third.register_buffer("scale", torch.ones(2))
    P.transfer_parametrizations_and_params(lin, third)
    show(third)
    show.raises(P.transfer_parametrizations_and_params, nn.Linear(1, 1), third)


def bad_parametrizations_are_refused(torch: Any, show: Any) -> None:
    nn = torch.nn
    register = nn.utils.parametrize.register_parametrization

    def make(forward: Any, inverse: Any = None) -> Any:
        members = {"forward": lambda self, *xs: forward(*xs)}
        if inverse is not None:
            members["right_inverse"] = lambda self, x: inverse(x)
        return type("Made", (nn.Module,), members)()

    show.raises(register, _linear(torch), "nope", make(lambda x: x))
    show.raises(register, _linear(torch), "weight", make(lambda x: x[0]))
    show.raises(register, _linear(torch), "weight", make(lambda x: x.double()))
    show.raises(register, _linear(torch), "weight", make(lambda x: [x]))
    show.raises(register, _linear(torch), "weight", make(lambda x: x, lambda x: 3))
    show.raises(register, _linear(torch), "weight", make(lambda x: x, lambda x: x[0]))
    show.raises(register, _linear(torch), "weight", make(lambda x: x, lambda x: x.double()))
    show.raises(register, _linear(torch), "weight", make(lambda a, b: a, lambda x: (x, 3)))
    show.raises(register, _linear(torch), "weight", make(lambda a, b: a[0], lambda x: (x, x)))
    show.raises(register, _linear(torch), "weight", make(lambda x: x, lambda x: 1 / 0))
    lin = _linear(torch)
    register(lin, "weight", make(lambda x: x[0]), unsafe=True)
    show(lin.weight)
    show.raises(setattr, lin, "weight", torch.ones(1))
    lin = _linear(torch)
    register(lin, "weight", make(lambda x: x))
    show.raises(register, lin, "weight", make(lambda x: x.double()))
    show.raises(register, lin, "weight", make(lambda x: x, lambda x: 3))
    show.raises(lin.parametrizations.weight.right_inverse, torch.ones(2, 3))
    show.raises(nn.utils.parametrize.ParametrizationList, [], torch.ones(1))
    lin = _linear(torch)
    register(lin, "weight", make(lambda a, b: a + b, lambda x: (x, x * 0)))
    show.raises(setattr, lin, "weight", torch.ones(5))
    lin.weight = torch.ones(2, 3)
    show(lin.weight, lin.parametrizations.weight)


def the_weight_norm_parametrization_loads_old_checkpoints(torch: Any, show: Any) -> None:
    nn = torch.nn
    lin = nn.utils.parametrizations.weight_norm(_linear(torch))
    show(lin, list(lin.state_dict()), lin.weight)
    show(lin.parametrizations.weight.original0, lin.parametrizations.weight.original1)
    old = nn.utils.weight_norm(_linear(torch))
    with torch.no_grad():
        old.weight_g.mul_(3)
    show(lin.load_state_dict(old.state_dict()), lin.weight)
    lin(torch.ones(1, 3)).sum().backward()
    show(lin.parametrizations.weight.original0.grad)
    nn.utils.parametrize.remove_parametrizations(lin, "weight")
    show(lin.weight, type(lin).__name__)
    for dim in (None, 1, -1):
        made = nn.utils.parametrizations.weight_norm(_linear(torch), dim=dim)
        show(made.parametrizations.weight.original0)


def the_spectral_norm_parametrization_runs_power_iterations(torch: Any, show: Any) -> None:
    nn = torch.nn
    lin = nn.utils.parametrizations.spectral_norm(_linear(torch), n_power_iterations=5)
    show(lin, list(lin.state_dict()))
    show(lin.weight, torch.allclose(torch.linalg.matrix_norm(lin.weight, 2), torch.ones(())))
    lin.eval()
    show(torch.equal(lin.weight, lin.weight))
    lin(torch.ones(1, 3)).sum().backward()
    show(lin.parametrizations.weight.original.grad)
    show.raises(nn.utils.parametrizations.spectral_norm, _linear(torch), "nope")
    show.raises(nn.utils.parametrizations.spectral_norm, _linear(torch), n_power_iterations=0)
    show.raises(nn.utils.parametrizations.spectral_norm, _linear(torch), dim=5)
    show(nn.utils.parametrizations.spectral_norm(_linear(torch), "bias").bias)
    conv = nn.utils.parametrizations.spectral_norm(nn.ConvTranspose1d(2, 3, 2))
    show(conv.parametrizations.weight[0]._u.shape, conv.parametrizations.weight[0]._v.shape)


def the_orthogonal_parametrization_keeps_weights_orthogonal(torch: Any, show: Any) -> None:
    nn = torch.nn
    make = nn.utils.parametrizations.orthogonal
    for out, inp in ((3, 3), (4, 2), (2, 4)):
        for name in (None, "matrix_exp", "cayley", "householder"):
            lin = make(nn.Linear(inp, out), orthogonal_map=name)
            q = lin.weight if out >= inp else lin.weight.t()
            close = torch.allclose(q.t() @ q, torch.eye(min(inp, out)), atol=1e-4)
            show(out, inp, name, close, list(lin.state_dict()))
            if name != "householder" and out == inp:
                show(lin.weight, lin.parametrizations.weight.original)
            lin(torch.ones(1, inp)).sum().backward()
            show([p.grad is not None for p in lin.parameters()])
    show(make(nn.Linear(3, 3)))
    lin = make(nn.Linear(3, 3), use_trivialization=False)
    show(list(lin.state_dict()))
    lin = make(nn.Linear(2, 2))
    target = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    lin.weight = target
    show(torch.allclose(lin.weight, target, atol=1e-6))
    show.raises(setattr, lin, "weight", torch.ones(2, 2))
    show.raises(make, nn.Linear(2, 2), orthogonal_map="nope")
    show.raises(make, nn.Linear(2, 2), "nope")
    show.raises(make, nn.Linear(2, 2), "bias")


def pruning_masks_a_parameter(torch: Any, show: Any) -> None:
    prune = importlib.import_module(torch.__name__ + ".nn.utils.prune")
    lin = _linear(torch)
    out = prune.l1_unstructured(lin, "weight", amount=2)
    show(
        out is lin,
        lin.weight,
        lin.weight_mask,
        [n for n, _ in lin.named_parameters()],
        list(lin.state_dict()),
    )
    show(prune.is_pruned(lin), len(lin._forward_pre_hooks), lin.weight_orig)
    prune.l1_unstructured(lin, "weight", amount=0.5)
    show(lin.weight_mask, [type(h).__name__ for h in lin._forward_pre_hooks.values()])
    prune.ln_structured(lin, "weight", amount=1, n=2, dim=0)
    show(lin.weight_mask, lin(torch.ones(1, 3)))
    lin(torch.ones(1, 3)).sum().backward()
    show(lin.weight_orig.grad)
    show(
        prune.remove(lin, "weight") is lin,
        lin.weight,
        prune.is_pruned(lin),
        [n for n, _ in lin.named_parameters()],
    )
    show.raises(prune.remove, lin, "weight")
    torch.manual_seed(0)
    show(prune.random_unstructured(_linear(torch), "weight", amount=3).weight_mask)
    show(prune.random_unstructured(_linear(torch), "weight", amount=0.5).weight_mask)
    show(prune.random_structured(_linear(torch, 4, 3), "weight", amount=2, dim=0).weight_mask)
    show(prune.random_structured(_linear(torch, 4, 3), "weight", amount=0.34, dim=1).weight_mask)
    show(prune.identity(_linear(torch), "bias").bias_mask)
    mask = torch.tensor([[1, 0, 1], [0, 1, 1]])
    show(prune.custom_from_mask(_linear(torch), "weight", mask).weight)
    scores = -torch.arange(6.0).reshape(2, 3).abs()
    show(prune.l1_unstructured(_linear(torch), "weight", 2, importance_scores=scores).weight_mask)
    show(prune.ln_structured(_linear(torch), "weight", 0.5, 1, 1, importance_scores=scores).weight_mask)
    show(prune.ln_structured(_linear(torch), "weight", 1, float("inf"), 1).weight_mask)


def pruning_works_globally_and_checks_its_arguments(torch: Any, show: Any) -> None:
    nn = torch.nn
    prune = importlib.import_module(torch.__name__ + ".nn.utils.prune")
    a, b = _linear(torch), _linear(torch, 1, 2)
    with torch.no_grad():
        b.weight.mul_(1.1)
    show(prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3))
    show(a.weight_mask, b.weight_mask)
    a, b = _linear(torch), _linear(torch, 1, 2)
    scores = {(a, "weight"): torch.full((2, 3), 9.0)}
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, scores, amount=0.25)
    show(a.weight_mask, b.weight_mask)
    show.raises(prune.global_unstructured, 3, prune.L1Unstructured, amount=1)
    show.raises(prune.global_unstructured, [(a, "weight")], prune.L1Unstructured, 3, amount=1)
    show.raises(prune.global_unstructured, [(a, "weight")], prune.LnStructured, amount=1)
    for amount in (-1, 1.5, -0.5, 100, "x"):
        show.raises(prune.l1_unstructured, _linear(torch), "weight", amount)
    show.raises(prune.ln_structured, _linear(torch), "bias", 1, 2, 0)
    show.raises(prune.ln_structured, _linear(torch), "weight", 1, 2, 5)
    show.raises(prune.random_structured, _linear(torch), "weight", 10, 0)
    show.raises(prune.l1_unstructured, _linear(torch), "nope", 1)
    show.raises(prune.l1_unstructured, _linear(torch), "weight", 1, importance_scores=torch.ones(2))
    show.raises(prune.is_pruned, 3)
    show.raises(prune.PruningContainer, prune.L1Unstructured(amount=1))
    method = prune.L1Unstructured(amount=1)
    method._tensor_name = "weight"
    container = prune.PruningContainer(method)
    show.raises(container.add_pruning_method, 3)
    method = prune.L1Unstructured(amount=1)
    method._tensor_name = "other"
    show.raises(container.add_pruning_method, method)
    show(len(container), [type(m).__name__ for m in container], type(container[0]).__name__)
    t = torch.arange(1.0, 5.0)
    show(prune.L1Unstructured(amount=2).prune(t), prune.Identity().prune(t))
    show(prune.L1Unstructured(amount=1).prune(t, default_mask=torch.tensor([1.0, 1.0, 1.0, 0.0])))
    show.raises(prune.remove, _linear(torch), "weight")
    box = nn.Sequential(prune.identity(_linear(torch), "weight"))
    show(prune.is_pruned(box), prune.is_pruned(nn.Sequential()))
