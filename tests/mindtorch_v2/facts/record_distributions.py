"""Record what torch.distributions gives, its errors and its names: run with an interpreter that has torch.

A fact is an expression over `torch` and `D` (torch.distributions) with its outcome after manual_seed(0).
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODULES = ("", ".constraints", ".transforms", ".utils", ".kl", ".constraint_registry")

A = "torch.tensor([0.3, 1.2, 2.5])"
B = "torch.tensor([0.7, 1.0, 3.5])"
L = "torch.tensor([-1.0, 0.2, 2.0])"
P = "torch.tensor([0.1, 0.5, 0.8])"
K = "torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])"
KL = "torch.tensor([[-1.0, 0.2, 0.7], [0.5, 0.25, 2.25]])"
M = "torch.tensor([[2.0, 0.5], [0.5, 1.0]])"
T = "torch.tensor([[1.5, 0.0], [0.4, 0.8]])"

# A constructor, values inside its support, and the parameters to differentiate by.
CASES: list[tuple[str, str, tuple[str, ...]]] = [
    (f"D.Normal({L}, {B})", A, (L, B)),
    ("D.Normal(0.5, 2.0)", A, ()),
    (f"D.LogNormal({L}, {B})", A, (L, B)),
    (f"D.HalfNormal({B})", A, (B,)),
    (f"D.HalfCauchy({B})", A, (B,)),
    (f"D.Cauchy({L}, {B})", A, (L, B)),
    (f"D.Laplace({L}, {B})", A, (L, B)),
    (f"D.Gumbel({L}, {B})", A, (L, B)),
    (f"D.Uniform({L}, {L} + {B})", f"{L} + 0.3", (B,)),
    (f"D.Exponential({B})", A, (B,)),
    (f"D.Gamma({A}, {B})", P, (A, B)),
    (f"D.InverseGamma({A}, {B})", P, (A, B)),
    (f"D.InverseGamma({A} + 2, {B})", P, (B,)),
    (f"D.Chi2({A})", B, (A,)),
    (f"D.Beta({A}, {B})", P, (A, B)),
    ("D.Beta(2.0, 3.0)", P, ()),
    (f"D.Dirichlet({K} * 3)", K, (K,)),
    (f"D.Dirichlet({K})", K, (K,)),
    (f"D.StudentT({A}, {L}, {B})", L, (L, B)),
    (f"D.StudentT({A})", L, (A,)),
    (f"D.FisherSnedecor({A} + 2, {B} + 2)", P, (A, B)),
    (f"D.Weibull({A}, {B})", P, (A, B)),
    (f"D.Pareto({A}, {B})", f"{A} + {P}", (A, B)),
    (f"D.Kumaraswamy({A}, {B})", P, (A, B)),
    (f"D.Kumaraswamy({A} + 1, {B} + 1)", P, ()),
    (f"D.GeneralizedPareto({L}, {B}, torch.tensor([-0.4, 0.0, 0.6]))", f"{L} + 0.5", (L, B)),
    (f"D.ContinuousBernoulli({P})", P, (P,)),
    (f"D.ContinuousBernoulli(logits={L})", P, (L,)),
    (f"D.VonMises({L}, {B})", L, ()),
    (f"D.Bernoulli({P})", "torch.tensor([0.0, 1.0, 1.0])", ()),
    (f"D.Bernoulli(logits={L})", "torch.tensor([0.0, 1.0, 1.0])", ()),
    (f"D.Geometric({P})", "torch.tensor([0.0, 3.0, 1.0])", ()),
    (f"D.Geometric(logits={L})", "torch.tensor([0.0, 3.0, 1.0])", ()),
    (f"D.Binomial(5, {P})", "torch.tensor([0.0, 3.0, 5.0])", ()),
    (f"D.Binomial(torch.tensor([5, 2, 40]), logits={L})", "torch.tensor([0.0, 2.0, 5.0])", ()),
    (f"D.NegativeBinomial({A}, {P})", "torch.tensor([0.0, 3.0, 5.0])", ()),
    (f"D.NegativeBinomial(4, logits={L})", "torch.tensor([0.0, 3.0, 5.0])", ()),
    (f"D.Poisson({B} * 5)", "torch.tensor([0.0, 3.0, 5.0])", ()),
    (f"D.Categorical({K})", "torch.tensor([2, 0])", ()),
    (f"D.Categorical(logits={KL})", "torch.tensor([2, 0])", ()),
    (f"D.OneHotCategorical({K})", "torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])", ()),
    (f"D.OneHotCategoricalStraightThrough(logits={KL})", "torch.eye(3)[:2]", (KL,)),
    (f"D.Multinomial(6, {K})", "torch.tensor([[1.0, 2.0, 3.0], [0.0, 6.0, 0.0]])", ()),
    (f"D.RelaxedBernoulli(torch.tensor(0.7), {P})", P, (P,)),
    (f"D.RelaxedBernoulli(torch.tensor(0.7), logits={L})", P, (L,)),
    (f"D.RelaxedOneHotCategorical(torch.tensor(0.7), {K})", K, (K,)),
    (f"D.RelaxedOneHotCategorical(torch.tensor(0.7), logits={KL})", K, (KL,)),
    (f"D.LogisticNormal({L}, {B})", "torch.tensor([0.1, 0.2, 0.3, 0.4])", (L, B)),
    (f"D.MultivariateNormal(torch.tensor([0.5, -1.0]), {M})", "torch.tensor([0.1, 0.2])", (M,)),
    (f"D.MultivariateNormal(torch.tensor([0.5, -1.0]), precision_matrix={M})", "torch.tensor([0.1, 0.2])", (M,)),
    (f"D.MultivariateNormal(torch.ones(3, 2), scale_tril={T})", "torch.tensor([0.1, 0.2])", (T,)),
    (
        "D.LowRankMultivariateNormal(torch.ones(3), torch.tensor([[1.0, 0.3], [0.2, -2.0], [0.5, 0.5]]), "
        f"{B})",
        L,
        (B,),
    ),
    (f"D.LKJCholesky(3, {B})", "D.LKJCholesky(3, 1.0).sample((3,))", ()),
    (f"D.Wishart(torch.tensor(4.5), {M})", M, (M,)),
    (f"D.Wishart(torch.tensor([4.5, 3.0]), scale_tril={T})", M, ()),
    (f"D.Independent(D.Normal({L}, {B}), 1)", A, (L, B)),
    (f"D.MixtureSameFamily(D.Categorical({P}), D.Normal({L}, {B}))", A, ()),
    (
        f"D.MixtureSameFamily(D.Categorical({K}), D.Independent(D.Normal({KL}.unsqueeze(-1).repeat(1, 1, 2), 1.0), 1))",
        "torch.tensor([[0.1, 0.2], [0.3, 0.4]])",
        (),
    ),
    (f"D.TransformedDistribution(D.Normal({L}, {B}), [D.ExpTransform(), D.AffineTransform(1.0, -2.0)])",
     "torch.tensor([-0.5, -1.0, 0.4])", (L, B)),
    (f"D.TransformedDistribution(D.Uniform(0.0, {B}), D.SigmoidTransform().inv)", "-" + A, ()),
]  # fmt: skip

METHODS = (
    "{d}.mean", "{d}.variance", "{d}.stddev", "{d}.mode", "{d}.entropy()", "{d}.log_prob({v})", "{d}.cdf({v})",
    "{d}.icdf(torch.tensor(0.3))", "{d}.sample()", "{d}.sample((2, 2))", "{d}.enumerate_support()", "repr({d})",
    "{d}.expand((2,) + tuple({d}.batch_shape)).sample((2,))",
    "{d}.expand((2,) + tuple({d}.batch_shape)).log_prob({v})",
    "tuple({d}.batch_shape) + (0,) + tuple({d}.event_shape)", "repr({d}.support)", "{d}.has_rsample",
)  # fmt: skip

REAL = ("x", "torch.tensor([[-1.3, 0.2, 2.0], [0.7, -0.4, 0.1]])")
MATRIX = ("x", "torch.tensor([[0.3, 7.0], [-0.6, -0.2]])")
TRANSFORM_RESULTS = (
    "t(x)",
    "t.inv(t(x))",
    "t.log_abs_det_jacobian(x, t(x))",
    "tuple(t.forward_shape(x.shape))",
)
TRANSFORMS: list[tuple[str, tuple[str, str]]] = [
    ("D.ExpTransform()", REAL),
    ("D.SigmoidTransform()", REAL),
    ("D.SoftplusTransform()", REAL),
    ("D.TanhTransform()", REAL),
    ("D.AffineTransform(torch.tensor([1.0, 2.0, 3.0]), -2.0)", REAL),
    ("D.AffineTransform(0.5, torch.tensor([1.0, 2.0, 3.0]), event_dim=1)", REAL),
    ("D.ComposeTransform([D.ExpTransform(), D.PowerTransform(torch.tensor(1.5))])", REAL),
    ("D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.StickBreakingTransform()])", REAL),
    ("D.IndependentTransform(D.ExpTransform(), 1)", REAL),
    ("D.StickBreakingTransform()", REAL),
    ("D.CorrCholeskyTransform()", REAL),
    ("D.ReshapeTransform((3,), (3, 1))", REAL),
    ("D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=0)", REAL),
    ("D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=-1, lengths=[1, 2])", REAL),
    ("D.CumulativeDistributionTransform(D.Normal(0.5, 2.0))", REAL),
    ("D.AbsTransform()", REAL),
    ("D.SoftmaxTransform()", REAL),
    ("D.LowerCholeskyTransform()", MATRIX),
    ("D.PositiveDefiniteTransform()", MATRIX),
    ("D.biject_to(D.constraints.interval(-1.0, 3.0))", REAL),
    ("D.transform_to(D.constraints.less_than(2.0))", REAL),
]

PAIR_MEMBERS = [
    f"D.Bernoulli({P})", f"D.Beta({A}, {B})", f"D.Binomial(5, {P})", f"D.Binomial(5, {P}.flip(0))",
    f"D.Categorical({K})", f"D.Categorical(logits={KL})", f"D.Cauchy({L}, {B})", f"D.ContinuousBernoulli({P})",
    f"D.Dirichlet({K})", f"D.Exponential({B})", f"D.Gamma({A}, {B})", f"D.Geometric({P})", f"D.Gumbel({L}, {A})",
    f"D.HalfNormal({A})", f"D.Laplace({L}, {A})", f"D.Normal({A}, {B})", f"D.OneHotCategorical({K})",
    f"D.Pareto({A}, {B} + 2)", f"D.Poisson({B})", f"D.Uniform({L}, {L} + {B})", f"D.Uniform({P} / 2, {P})",
    f"D.LogNormal({L}, {A})", f"D.LogNormal({L}, {B})", f"D.Independent(D.Normal({L}, {B}), 1)",
    f"D.MultivariateNormal(torch.ones(2), {M})", f"D.MultivariateNormal(torch.zeros(2), scale_tril={T})",
    "D.LowRankMultivariateNormal(torch.ones(2), torch.tensor([[1.0], [0.3]]), torch.tensor([0.5, 2.0]))",
    f"D.LowRankMultivariateNormal(torch.zeros(3, 2), {T}, torch.tensor([1.5, 1.0]))", f"D.Chi2({A})",
    f"D.Weibull({A}, {B})", f"D.Wishart(torch.tensor(4.5), {M})", f"D.Wishart(torch.tensor(3.5), {M} * 2)",
]  # fmt: skip


def expressions() -> list[str]:
    """Every expression a fact is recorded for."""
    found = []
    for made, value, parameters in CASES:
        found += [method.format(d=made, v=value) for method in METHODS]
        for parameter in parameters:
            inner = made.replace(parameter, "w")
            for result in ("rsample((2,))", f"log_prob({value})", "entropy()"):
                found.append(f"gradient(lambda w: {inner}.{result}, {parameter})")
    for transform, (name, x) in TRANSFORMS:
        for result in (
            "t(x)",
            "t.inv(t(x))",
            "t.log_abs_det_jacobian(x, t(x))",
            "tuple(t.forward_shape(x.shape))",
        ):
            found.append(f"(lambda t, {name}: {result})({transform}, {x})")
    found += [f"D.kl_divergence({p}, {q})" for p in PAIR_MEMBERS for q in PAIR_MEMBERS]
    return found


def evaluate(expression: str, torch: Any, distributions: Any) -> Any:
    """The outcome of an expression as JSON: numbers, text, or the type and text of an error."""

    def gradient(function: Any, parameter: Any) -> Any:
        leaf = parameter.clone().requires_grad_()
        result = function(leaf)
        weights = torch.arange(1.0, 1.0 + result.numel()).reshape(result.shape)
        return torch.autograd.grad((result * weights).sum(), leaf)[0]

    torch.manual_seed(0)
    space = {"torch": torch, "D": distributions, "gradient": gradient}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(expression, space)
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error).replace("mindtorch_v2", "torch")}
    if isinstance(result, torch.Tensor):
        return {
            "dtype": str(result.dtype).split(".")[-1],
            "shape": list(result.shape),
            "values": flat(result),
        }
    return {"plain": list(result) if isinstance(result, tuple) else result}


def flat(tensor: Any) -> list[Any]:
    """The elements, to nine digits; NaN and infinities as text, because JSON has none."""
    return [plain_number(value) for value in tensor.detach().reshape(-1).tolist()]


def plain_number(value: Any) -> Any:
    if isinstance(value, int):
        return value
    return float(f"{value:.9g}") if math.isfinite(value) else str(value)


def main() -> None:
    """Write distributions.json.gz, distribution_errors.json and distribution_names.json."""
    import torch

    facts = {e: evaluate(e, torch, torch.distributions) for e in expressions()}
    with gzip.GzipFile(HERE / "distributions.json.gz", "wb", mtime=0) as handle:
        handle.write(json.dumps(facts, indent=0).encode())
    errors = (HERE / "distribution_errors.txt").read_text().splitlines()
    recorded = {e: evaluate(e, torch, torch.distributions) for e in errors}
    (HERE / "distribution_errors.json").write_text(json.dumps(recorded, indent=0) + "\n")
    modules = [importlib.import_module("torch.distributions" + suffix) for suffix in MODULES]
    names = {module.__name__: sorted(module.__all__) for module in modules}
    (HERE / "distribution_names.json").write_text(json.dumps(names, indent=0) + "\n")
    print(f"{len(facts)} facts, {len(recorded)} errors, torch {torch.__version__}")


if __name__ == "__main__":
    main()
