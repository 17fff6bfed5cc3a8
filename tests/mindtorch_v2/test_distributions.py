"""torch.distributions against facts recorded from torch: samples, densities, moments, gradients, errors."""

from __future__ import annotations

import importlib
import math
import pickle
import warnings
from collections import defaultdict
from typing import Any

import fact_files
import pytest
import record_distributions as recorder

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D

facts: dict[str, Any] = fact_files.read("distributions.json.gz")

# What torch does wrong: its first check for singular Wishart samples is inverted, and breaks the gradient.
WRONG_IN_TORCH = {
    f"gradient(lambda w: D.Wishart(torch.tensor(4.5), w).rsample((2,)), {recorder.M})",
}


def group(expression: str) -> str:
    """The distribution or transform an expression is about."""
    text = expression.removeprefix("gradient(lambda w: ").removeprefix("repr(").removeprefix("tuple(")
    if "kl_divergence" in text:
        return "kl " + text.split("D.")[2].split("(")[0]
    return text.split("D.", 1)[1].split("(")[0]


groups: dict[str, list[str]] = defaultdict(list)
for _expression in facts:
    if _expression not in WRONG_IN_TORCH:
        groups[group(_expression)].append(_expression)


def tolerance(expression: str) -> float:
    """Relative: gradients of gamma samples are approximations, and some variances cancel in float32."""
    return 2e-3 if "rsample" in expression or "ContinuousBernoulli" in expression else 1e-4


def same(expression: str, expected: dict[str, Any], found: dict[str, Any]) -> bool:
    if "values" not in expected or "values" not in found:
        return expected == found
    if (expected["shape"], expected["dtype"]) != (found["shape"], found["dtype"]):
        return False
    return all(
        a == b
        if isinstance(a, str) or isinstance(b, str)
        else math.isclose(a, b, rel_tol=tolerance(expression), abs_tol=2e-5)
        for a, b in zip(expected["values"], found["values"], strict=True)
    )


@pytest.mark.parametrize("subject", sorted(groups))
def test_results_are_those_recorded_from_torch(subject: str) -> None:
    different = []
    for expression in groups[subject]:
        found = recorder.evaluate(expression, torch, D)
        if not same(expression, facts[expression], found):
            different.append(f"{expression}\n  torch {facts[expression]}\n  here  {found}")
    assert not different, "\n".join(different)


ERRORS = fact_files.read("distribution_errors.json")


@pytest.mark.parametrize("expression", sorted(ERRORS))
def test_bad_arguments_raise_what_torch_raises(expression: str) -> None:
    assert recorder.evaluate(expression, torch, D) == ERRORS[expression]


def test_every_public_name_of_torch_is_there() -> None:
    recorded = fact_files.read("distribution_names.json")
    missing = {
        module: [name for name in names if not hasattr(importlib.import_module(module), name)]
        for module, names in ((m.replace("torch", "mindtorch_v2", 1), n) for m, n in recorded.items())
    }
    assert {module: names for module, names in missing.items() if names} == {}


def test_importing_the_package_does_not_import_distributions(run_python: Any) -> None:
    run_python("import mindtorch_v2, sys; assert not any('distributions' in name for name in sys.modules)")


def test_gradients_of_lazy_parameters_flow_even_when_first_read_without_gradients() -> None:
    probs = torch.tensor([0.2, 0.7], requires_grad=True)
    distribution = D.Bernoulli(probs)
    with torch.no_grad():
        assert distribution.logits.shape == (2,)
    distribution.logits.sum().backward()
    assert torch.allclose(probs.grad, 1 / (probs * (1 - probs)).detach())


def test_a_transform_with_a_cache_gives_back_the_same_objects() -> None:
    transform = D.ExpTransform(cache_size=1)
    x = torch.ones(2)
    y = transform(x)
    assert transform(x) is y
    assert transform.inv(y) is x
    assert transform.inv.inv is transform


def test_distributions_and_transforms_survive_pickling() -> None:
    chain = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)])
    made = D.TransformedDistribution(D.Normal(torch.zeros(2), 1.0), [chain])
    chain.inv  # noqa: B018  (made and kept: a file must not need it)
    again = pickle.loads(pickle.dumps(made))
    value = torch.tensor([1.0, 2.0])
    assert torch.equal(again.log_prob(value), made.log_prob(value))


def test_a_registered_kl_rule_is_used_for_subclasses() -> None:
    class Mine(D.Normal):
        pass

    p, q = Mine(0.0, 1.0), D.Normal(1.0, 1.0)
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5)

    @D.register_kl(Mine, D.Normal)
    def rule(p: Any, q: Any) -> Any:
        return torch.tensor(7.0)

    try:
        assert D.kl_divergence(p, q).item() == 7.0
    finally:
        D.kl._KL_REGISTRY.pop((Mine, D.Normal))
        D.kl._KL_MEMOIZE.clear()


def test_a_wishart_sample_that_is_regular_gives_no_warning() -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample = D.Wishart(torch.tensor(4.5), torch.eye(2)).sample((3,))
    assert D.constraints.positive_definite.check(sample).all()


@pytest.mark.parametrize(
    "transform",
    [
        D.ExpTransform(),
        D.SigmoidTransform(),
        D.SoftplusTransform(),
        D.TanhTransform(),
        D.PowerTransform(torch.tensor(2.0, dtype=torch.float64)),
        D.StickBreakingTransform(),
        D.CorrCholeskyTransform(),
    ],
    ids=repr,
)
def test_log_abs_det_jacobian_is_that_of_the_jacobian(transform: Any) -> None:
    x = torch.tensor([0.3, 0.9, 1.4], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(transform, x)
    if isinstance(transform, D.StickBreakingTransform):
        jacobian = jacobian[:-1]
    elif isinstance(transform, D.CorrCholeskyTransform):
        jacobian = torch.stack([jacobian[1, 0], jacobian[2, 0], jacobian[2, 1]])
    expected = torch.linalg.slogdet(jacobian).logabsdet
    found = transform.log_abs_det_jacobian(x, transform(x)).sum()
    assert torch.allclose(found, expected)
