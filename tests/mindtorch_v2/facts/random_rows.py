"""Rows of random draws: an expression in, what it gave out. Shared by the recorder (real torch) and the tests (ours).

A row is evaluated right after `torch.manual_seed(SEED)`. `exact` rows must agree bit for bit everywhere; the others
go through the C library's log, cos or tan and may differ in the last bits on another machine."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import warnings
from types import ModuleType
from typing import Any

import numpy as np

SEED = 3
KEPT = 48  # elements of a result that are recorded one by one
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIZES = (0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 40, 1000, 20011)
LAYOUTS = (
    "torch.zeros(4, 30, dtype=torch.{}).t()",
    "torch.zeros(3, 4, 5, dtype=torch.{}).permute(2, 0, 1)",
    "torch.zeros(10, 6, dtype=torch.{})[:, ::2]",
    "torch.zeros(2, 3, 4, 5, dtype=torch.{}).to(memory_format=torch.channels_last)",
)
OTHERS = """
torch.rand(2, 3, generator=torch.Generator().manual_seed(7))
torch.randn(20, generator=torch.Generator().manual_seed(7))
[torch.randn(3), torch.rand(2), torch.randn(2), torch.randn(20), torch.randn(1)]
[torch.randn(1), torch.randn(40), torch.randn(1), torch.empty(9, 2)[:, 0].normal_(1, 2), torch.randn(3)]
[torch.randint(5, (7,)), torch.rand(3, dtype=torch.float64), torch.randperm(9), torch.bernoulli(torch.full((5,), 0.5))]
torch.randn(5, dtype=torch.complex64)
torch.randn(20, dtype=torch.complex128)
torch.zeros(4, dtype=torch.complex64).normal_(3, 2)
torch.rand(4, dtype=torch.complex64)
torch.randint(0, 10, (6,))
torch.randint(-5, 9, (2, 3))
torch.randint(0, 2**28 - 1, (4,))
torch.randint(0, 2**28, (4,))
torch.randint(-(2**31), 2**31, (4,))
torch.randint(-(2**63), 2**63 - 1, (4,))
torch.randint(high=5, size=(3,), generator=torch.Generator().manual_seed(1))
torch.zeros(4, dtype=torch.int64).random_(-(2**63), None)
torch.zeros(4).random_(2**24 + 1, 2**24 + 9)
torch.zeros(4, dtype=torch.float16).random_(2050, 2060)
torch.zeros(4, dtype=torch.bfloat16).random_(257, 300)
torch.zeros(4, dtype=torch.float64).random_(2**53 + 3, 2**53 + 11)
torch.randperm(0)
torch.randperm(1)
torch.randperm(13)
torch.randperm(512)
torch.randperm(513)
torch.randperm(3000, dtype=torch.int32)
torch.randperm(60000)
torch.randperm(20, generator=torch.Generator().manual_seed(1))
torch.rand(3, out=torch.empty(5, dtype=torch.float64)[:3])
torch.randn(2, 2, out=torch.empty(0))
torch.normal(0.0, 2.0, (3,), out=torch.empty(3, dtype=torch.float64))
torch.normal(1.0, 2.0, (20,))
torch.normal(torch.full((20,), 1.0), 2.0)
torch.normal(1.0, torch.full((20,), 3.0))
torch.normal(torch.zeros(3, 1), torch.ones(4))
torch.normal(torch.full((3,), 1.0, dtype=torch.float16), torch.full((3,), 2.0))
torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.05]), 1)
torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.05]), 6)
torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.05]).expand(3, 6), 2)
torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.05]).expand(3, 6), 40, True)
torch.multinomial(torch.rand(2, 500, dtype=torch.float64), 30, True)
torch.multinomial(torch.tensor([0.1, 0.2, 0.3], dtype=torch.float16), 9, True)
torch.poisson(torch.linspace(0, 30, 50))
torch.poisson(torch.full((300,), 0.5))
torch.poisson(torch.full((300,), 9.9))
torch.poisson(torch.full((300,), 12.0, dtype=torch.float64))
torch.binomial(torch.full((300,), 5.0), torch.full((300,), 0.3))
torch.binomial(torch.full((300,), 100.0), torch.full((300,), 0.7))
torch.binomial(torch.full((300,), 1e6), torch.full((300,), 0.3))
torch.binomial(torch.arange(50.0), torch.linspace(0, 1, 50))
torch._standard_gamma(torch.full((300,), 0.3))
torch._standard_gamma(torch.full((300,), 2.0, dtype=torch.float64))
torch._standard_gamma(torch.linspace(0, 9, 50))
torch._sample_dirichlet(torch.full((20, 4), 0.7))
torch.zeros(3, 2).bernoulli_(torch.tensor([0.3, 0.9]))
torch.bernoulli(torch.full((8,), 0.5), 0.1)
torch.rand_like(torch.zeros(2, 2), dtype=torch.float64)
torch.randint_like(torch.zeros(2, 2), 2, 5)
F.dropout(torch.arange(40.0).reshape(5, 8), 0.3)
F.dropout(torch.arange(40.0).reshape(5, 8).t(), 0.5)
F.dropout(torch.arange(40.0).reshape(5, 8).half(), 0.3)
F.dropout(torch.arange(40.0).reshape(5, 8), 1.0)
F.dropout(torch.arange(40.0), 0.3, True, True)
F.dropout1d(torch.ones(2, 3, 4), 0.4)
F.dropout2d(torch.ones(2, 3, 4, 4), 0.4)
F.dropout3d(torch.ones(2, 3, 2, 2, 2), 0.4)
F.alpha_dropout(torch.arange(40.0), 0.3, True)
F.feature_alpha_dropout(torch.ones(2, 3, 4, 4), 0.3, True)
list(torch.native_dropout(torch.arange(30.0), 0.3, True))
list(torch.native_dropout(torch.arange(30.0), 0.3, False))
F.rrelu(torch.randn(30), training=True)
GRAD(lambda x: F.dropout(x, 0.3))
GRAD(lambda x: torch.native_dropout(x, 0.3, True)[0])
GRAD(lambda x: F.alpha_dropout(x, 0.3, True))
GRAD(lambda x: x.mul(1).uniform_())
GRAD(lambda x: torch.bernoulli(x))
GRAD(lambda x: torch.normal(x, 2.0))
X().mul(1).uniform_()
X().mul(1).normal_()
X().mul(1).random_(1, 5)
X().mul(1).random_(5)
X().mul(1).random_()
X().mul(1).exponential_()
X().mul(1).geometric_(0.5)
X().mul(1).cauchy_()
X().mul(1).log_normal_()
X().mul(1).bernoulli_()
X().mul(1).bernoulli_(X())
torch.bernoulli(X())
torch.normal(X(), 1.0)
torch.normal(X(), X())
torch.normal(0.0, X())
torch.poisson(X())
torch.zeros(3).uniform_(3, 1)
torch.zeros(3).uniform_(float("nan"), 1)
torch.zeros(3).uniform_(0, float("inf"))
torch.zeros(3).uniform_(-3e38, 3e38)
torch.zeros(3, dtype=torch.int64).uniform_()
torch.zeros(3, dtype=torch.int64).normal_()
torch.zeros(3).normal_(0, -1)
torch.zeros(3).exponential_(0)
torch.zeros(3, dtype=torch.int64).exponential_()
torch.zeros(3).geometric_(1)
torch.zeros(3).cauchy_(0, 0)
torch.zeros(3, dtype=torch.int64).cauchy_()
torch.zeros(3).log_normal_(0, 0)
torch.zeros(3).bernoulli_(1.5)
torch.zeros(3).bernoulli_("a")
torch.zeros(3).bernoulli_(torch.full((2,), 1.0))
torch.bernoulli(torch.tensor([1.5]))
torch.bernoulli(torch.tensor([1]))
torch.zeros(3).random_(0)
torch.zeros(3, dtype=torch.uint8).random_(0, 257)
torch.zeros(3, dtype=torch.uint8).random_(-1, 5)
torch.zeros(3, dtype=torch.float16).random_(65510, 65514)
torch.zeros(3, dtype=torch.float16).random_(2049, None)
torch.zeros(3).random_(0, 5, generator=3)
torch.randint(2.5, (2,))
torch.randint(0, 5, (2,), dtype=torch.complex64)
torch.randperm(-1)
torch.randperm(300, dtype=torch.uint8)
torch.randperm(3000, dtype=torch.float16)
torch.randperm(5, dtype=torch.bool)
torch.randperm(5.5)
torch.rand(2, dtype=torch.int64)
torch.rand((2, -1))
torch.normal(1, 2)
torch.normal(torch.zeros(3), -torch.ones(3))
torch.normal(torch.zeros(3), torch.ones(2))
torch.multinomial(torch.rand(3), 4)
torch.multinomial(torch.tensor([-1.0, 2]), 1)
torch.multinomial(torch.tensor([0.0, 0]), 1)
torch.multinomial(torch.tensor([-1.0, 2]), 2, True)
torch.multinomial(torch.tensor([0.0, 0]), 2, True)
torch.multinomial(torch.tensor([1, 2]), 1)
torch.multinomial(torch.rand(2, 2, 2), 1)
torch.multinomial(torch.rand(3), 0)
torch.poisson(torch.tensor([-1.0]))
torch.poisson(torch.tensor([1]))
torch.binomial(torch.full((3,), 3.0), torch.full((3,), 0.5, dtype=torch.float64))
torch.dropout(torch.ones(3), 1.5, True)
torch.feature_dropout(torch.ones(3), 0.3, True)
F.dropout(torch.ones(3), -0.1)
torch.zeros(4).expand(3, 4).uniform_()
torch.Generator("meta")
torch.Generator().manual_seed(2**64)
torch.Generator().manual_seed(1.5)
torch.Generator().manual_seed(-1).initial_seed()
torch.Generator().initial_seed()
torch.Generator().get_state()
torch.Generator().set_state(torch.zeros(3))
torch.Generator().set_state(torch.zeros(3, dtype=torch.uint8))
torch.Generator().set_state(torch.zeros(5056, dtype=torch.uint8))
torch.Generator().set_state(None)
torch.Generator().graphsafe_get_state()
torch.Generator().get_offset()
torch.manual_seed(1.7).initial_seed()
torch.manual_seed(-3).initial_seed()
torch.manual_seed("x")
torch.set_rng_state("a")
""".strip().splitlines()
INITS = (
    "uniform_({}, -1, 2)",
    "normal_({}, 1, 2)",
    "trunc_normal_({})",
    "trunc_normal_({}, 0, 1, -0.3, 0.4)",
    "trunc_normal_({}, 0, 1, 1, 2)",
    "xavier_uniform_({}, 0.3)",
    "xavier_normal_({})",
    "kaiming_uniform_({}, 5**0.5)",
    "kaiming_normal_({}, mode='fan_out', nonlinearity='relu')",
    "orthogonal_({}, 1.5)",
    "sparse_({}, 0.4)",
    "dirac_({})",
    "eye_({})",
)
OTHER_INITS = """
calculate_gain("leaky_relu", 0.2)
calculate_gain("tanh")
calculate_gain("leaky_relu", True)
calculate_gain("foo")
uniform(torch.zeros(2))
xavier_uniform_(torch.zeros(3))
kaiming_uniform_(torch.zeros(0, 3))
kaiming_uniform_(torch.zeros(3, 3), mode="foo")
orthogonal_(torch.zeros(3))
sparse_(torch.zeros(3), 0.1)
dirac_(torch.zeros(3, 1, 3), 2)
dirac_(torch.zeros(4, 2, 3), 2)
eye_(torch.zeros(2))
trunc_normal_(torch.zeros(3), 10, 1, -2, 2)
uniform_(torch.nn.Parameter(torch.zeros(2)))
""".strip().splitlines()
_NORMAL = re.compile(r"randn|normal")
_LIBM = re.compile(
    r"exponential|cauchy|gamma|dirichlet|trunc|orthogonal|multinomial|geometric|poisson|binomial"
)


def _is_exact(row: str) -> bool:
    """Whether no function of the C library decides a bit of the result."""
    if _LIBM.search(row):
        return False
    return not _NORMAL.search(row) or (
        "float64" not in row and row.startswith("torch.randn(") and ")(" not in row
    )


def rows() -> list[str]:
    """All expressions."""
    found = []
    for dtype in FLOATS:
        for n in SIZES:
            made = f"torch.zeros({n}, dtype=torch.{dtype})"
            found += [f"torch.rand({n}, dtype=torch.{dtype})", f"torch.randn({n}, dtype=torch.{dtype})"]
            found += [f"{made}.uniform_(-0.3, 0.77)", f"{made}.normal_(-0.3, 0.77)"]
            if n in (3, 40):
                found += [f"{made}.{fill}" for fill in (
                    "exponential_(3.3)", "cauchy_(0.2, 3.3)", "log_normal_(0.2, 1.3)", "geometric_(0.2)",
                    "bernoulli_(0.3)", "random_()", "random_(7)", "random_(2, 9)", "random_(1, None)")]  # fmt: skip
                found.append(f"torch.bernoulli(torch.full(({n},), 0.3, dtype=torch.{dtype}))")
        for layout in LAYOUTS:
            x = layout.format(dtype)
            found += [
                f"{x}.{fill}" for fill in ("uniform_(1, 2)", "normal_(1, 2)", "bernoulli_(0.3)", "random_(5)")
            ]
            found += [f"torch.rand_like({x})", f"torch.randn_like({x})", f"torch.bernoulli({x})"]
    for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64"):
        made = f"torch.zeros(6, dtype=torch.{dtype})"
        found += [
            f"{made}.{fill}" for fill in ("random_()", "random_(1, None)", "random_(2)", "bernoulli_(0.4)")
        ]
        found += [f"{made}.geometric_(0.3)", f"torch.randint(0, 2, (6,), dtype=torch.{dtype})"]
    for word in (0, 0xFFFFFFFF):
        for dtype in FLOATS:
            made = f"torch.zeros({{}}, dtype=torch.{dtype})"
            fills = ("uniform_()", "uniform_(-0.1, 0.1)", "normal_()", "exponential_()", "bernoulli_(1.0)",
                     "bernoulli_(0.0)", "geometric_(0.3)")  # fmt: skip
            found += [f"ALL({word}) and {made.format(n)}.{fill}" for fill in fills for n in (3, 20)]
    for shape in ("(3, 4)", "(20, 7)", "(7, 20)", "(4, 3, 3, 3)", "(7, 20, dtype=torch.float64)"):
        found += [f"torch.nn.init.{init.format('torch.zeros' + shape)}" for init in INITS]
    return found + OTHERS + [f"torch.nn.init.{init}" for init in OTHER_INITS]


def _untempered(word: int) -> int:
    """The state word that MT19937 gives out as `word`."""
    word ^= word >> 18
    word ^= word << 15 & 0xEFC60000
    found = word
    for _ in range(7):
        found = word ^ (found << 7 & 0x9D2C5680)
    word = found & 0xFFFFFFFF
    found = word
    for _ in range(3):
        found = word ^ found >> 11
    return found & 0xFFFFFFFF


def _state_of_one_word(torch: ModuleType, word: int) -> bool:
    """Let the default generator give out `word` again and again."""
    state = bytearray(torch.manual_seed(0).get_state().numpy().tobytes())
    struct.pack_into("<iiQ", state, 8, 624, 1, 1)
    struct.pack_into("<624Q", state, 24, *[_untempered(word)] * 624)
    torch.set_rng_state(torch.tensor(list(state), dtype=torch.uint8))
    return True


def _shown(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shown(v) for v in value]
    if not hasattr(value, "stride"):
        return type(value).__name__ if type(value).__name__ == "Generator" else value
    tensor = value.detach()
    dtype = str(tensor.dtype)
    array = np.ascontiguousarray((tensor.float() if dtype == "torch.bfloat16" else tensor).numpy())
    flat = array.reshape(-1)
    kept = flat if flat.size <= KEPT else flat[np.linspace(0, flat.size - 1, KEPT).astype(int)]
    return {
        "dtype": dtype,
        "shape": list(value.shape),
        "stride": list(value.stride()) if value.numel() > 1 else None,
        "grad_fn": type(value.grad_fn).__name__,
        "kept": [flat.dtype.str, base64.b64encode(kept.tobytes()).decode()],
        "hash": hashlib.sha256(array.tobytes()).hexdigest()[:16],
    }


def evaluate(row: str, torch: ModuleType) -> dict[str, Any]:
    """What a row gives: its result or error, its warnings, and the generator's state after it."""

    def x() -> Any:
        return torch.full((3, 4), 0.5, requires_grad=True)

    def grad(function: Any) -> Any:
        leaf = x()
        weight = torch.arange(12.0).reshape(3, 4)
        return torch.autograd.grad((function(leaf) * weight).sum(), leaf)[0]

    names = {
        "torch": torch, "F": torch.nn.functional, "X": x, "GRAD": grad,
        "ALL": lambda word: _state_of_one_word(torch, word),
    }  # fmt: skip
    torch.manual_seed(SEED)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        try:
            result = _shown(eval(row, names))
        except Exception as error:
            result = {"error": type(error).__name__, "text": str(error)}
    state = torch.get_rng_state().numpy().tobytes()
    return {
        "exact": _is_exact(row),
        "result": result,
        "warnings": sorted({str(w.message).split(" (Triggered")[0] for w in caught}),
        "words": hashlib.sha256(state[:5016]).hexdigest()[:16],
        "normal": struct.unpack_from("<d", state, 5024)[0],
    }
