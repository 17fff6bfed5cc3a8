"""Random numbers are torch's, draw for draw: values, layouts, errors, and the generator's state after it."""

from __future__ import annotations

import base64
import copy
import os
import pickle
import threading
import time
from fractions import Fraction
from types import ModuleType
from typing import Any

import fact_files
import numpy as np
import pytest
import random_rows
from forked import ends_well
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import _rejection, _sampling

RECORDED: dict[str, Any] = fact_files.read("random.json.gz")
GROUP = 25
GROUPS = [list(RECORDED)[i : i + GROUP] for i in range(0, len(RECORDED), GROUP)]


def _numbers(kept: list[str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(kept[1]), kept[0])


def _assert_same(ours: Any, theirs: Any, exact: bool, where: str) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for a, b in zip(ours, theirs):
            _assert_same(a, b, exact, where)
        return
    if not isinstance(theirs, dict) or "kept" not in theirs or exact:
        assert ours == theirs, where
        return
    for key in ("dtype", "shape", "stride", "grad_fn"):
        assert ours[key] == theirs[key], f"{where}: {key}"
    a, b = _numbers(ours["kept"]), _numbers(theirs["kept"])
    loose = 3e-6 if a.dtype.itemsize < 8 or "orthogonal" in where else 1e-12
    np.testing.assert_allclose(a, b, rtol=loose, atol=loose, err_msg=where)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_a_row_gives_what_torch_gave(group: list[str]) -> None:
    for row in group:
        fact = RECORDED[row]
        found = random_rows.evaluate(row, torch)
        _assert_same(found["result"], fact["result"], fact["exact"], row)
        assert found["warnings"] == fact["warnings"], row
        if "error" not in (fact["result"] if isinstance(fact["result"], dict) else {}):
            assert found["words"] == fact["words"], f"{row}: the generator is elsewhere afterwards"
            assert found["normal"] == pytest.approx(fact["normal"], rel=1e-12), row


def test_the_recorded_rows_are_the_rows_of_the_table() -> None:
    assert list(RECORDED) == list(dict.fromkeys(random_rows.rows()))


def test_state_bytes_go_to_torch_and_back(torch_reference: ModuleType) -> None:
    torch.manual_seed(11)
    torch.randn(5)
    reference = torch_reference.Generator()
    reference.set_state(torch_reference.from_numpy(torch.get_rng_state().numpy()))
    assert torch.randn(40).tolist() == torch_reference.randn(40, generator=reference).tolist()
    torch.set_rng_state(torch.from_numpy(reference.get_state().numpy()))
    assert torch.randn(3).tolist() == torch_reference.randn(3, generator=reference).tolist()


def test_the_state_of_a_used_up_block_of_words_differs_from_a_fresh_one() -> None:
    generator = torch.Generator().manual_seed(9)
    fresh = generator.get_state()
    torch.rand(624, generator=generator)
    used = generator.get_state()
    assert fresh[16:24].tolist() == [0] * 8
    assert used[16:24].tolist() == [112, 2, 0, 0, 0, 0, 0, 0]
    generator.set_state(fresh)
    assert torch.equal(generator.get_state(), fresh)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copied_generator_continues_alike_and_apart(copied: Any) -> None:
    generator = torch.Generator().manual_seed(5)
    torch.randn(3, generator=generator)
    other = copied(generator)
    assert other is not generator
    assert other.initial_seed() == 5
    assert torch.equal(torch.randn(7, generator=other), torch.randn(7, generator=generator))


def test_clone_state_gives_a_generator_of_its_own() -> None:
    generator = torch.Generator().manual_seed(5)
    clone = generator.clone_state()
    assert torch.rand(3, generator=clone).tolist() == torch.rand(3, generator=generator).tolist()
    assert generator.device == torch.device("cpu")


def test_fork_rng_leaves_the_generator_as_it_was() -> None:
    torch.manual_seed(1)
    torch.randn(3)
    before = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.randn(100)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(enabled=False):
        torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)


def test_a_seed_of_the_operating_system_starts_another_stream() -> None:
    first, second = torch.seed(), torch.seed()
    assert first != second
    assert torch.initial_seed() == second


def test_ints_of_any_thread_come_from_one_default_generator() -> None:
    torch.manual_seed(2)
    alone = torch.randint(0, 1000, (8,)).tolist()
    torch.manual_seed(2)
    found: list[int] = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: found.extend(torch.randint(0, 1000, (4,)).tolist()))
        thread.start()
        thread.join()
    assert found == alone


@settings(max_examples=60)
@given(st.integers(2, 90), st.integers(0, 2**32 - 1))
def test_swaps_worked_out_at_once_are_the_swaps_one_after_another(n: int, seed: int) -> None:
    partners = np.random.default_rng(seed).integers(np.arange(n - 1), n)
    order = list(range(n))
    for i, j in enumerate(partners.tolist()):
        order[i], order[j] = order[j], order[i]
    assert _sampling._swaps(partners, n).tolist() == order


@settings(max_examples=60)
@given(st.integers(2, 90), st.integers(0, 2**32 - 1))
def test_the_shuffle_of_the_very_large_is_an_inside_out_shuffle(n: int, seed: int) -> None:
    draws = np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)
    order = [0] * n
    for i, draw in enumerate(draws.tolist()):
        order[i], order[draw % (i + 1)] = order[draw % (i + 1)], i
    assert _sampling._inside_out(n, draws).tolist() == order


_NUMBER = st.floats(-1e100, 1e100).filter(lambda v: v == 0 or abs(v) > 1e-100)


@settings(max_examples=300)
@given(_NUMBER, _NUMBER, _NUMBER)
def test_a_fused_product_and_sum_is_rounded_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    assert _sampling.fma64(np.array([a]), b, c)[0] == float(exact)


def test_equal_and_unequal_parameters_draw_alike() -> None:
    """What is made at once for equal parameters is what the walk makes one by one."""
    one, other = torch.Generator().manual_seed(4), torch.Generator().manual_seed(4)
    for rate in (0.4, 3.0, 12.0):
        at_once = _rejection.poisson(one, np.full(200, rate))
        walk = _rejection._Uniforms(other, 400 if rate >= 10 else 200)
        assert at_once.tolist() == [_rejection._poisson_one(walk, rate) for _ in range(200)]
        assert walk.at == len(walk.values), "as many uniforms were drawn as were used"


def test_gamma_and_dirichlet_gradients_follow_the_quantile() -> None:
    """Moving alpha and the number together keeps the distribution function where it was."""
    from scipy import special

    alpha, x = np.array([0.2, 0.9, 3.0, 40.0]), np.array([0.1, 1.5, 2.0, 45.0])
    slope = torch._standard_gamma_grad(torch.tensor(alpha), torch.tensor(x)).numpy()
    step = 1e-6
    moved = special.gammainc(alpha + step, x + slope * step)
    np.testing.assert_allclose(moved, special.gammainc(alpha, x), rtol=1e-9)
    a, total, at = np.array([0.5, 2.0]), np.array([1.5, 7.0]), np.array([0.3, 0.4])
    slope = torch._dirichlet_grad(torch.tensor(at), torch.tensor(a), torch.tensor(total)).numpy() * (1 - at)
    moved = special.betainc(a + step, total - a, at + slope * step)
    np.testing.assert_allclose(moved, special.betainc(a, total - a, at), rtol=1e-9)


def _names(function: Any) -> list[str]:
    """The ops that a profile of a call shows, indented by depth."""
    with torch.profiler.profile(record_shapes=True) as prof:
        function()
    depths: dict[int, int] = {}
    for event in prof.events():
        depths[id(event)] = depths[id(event.cpu_parent)] + 1 if event.cpu_parent else 0
    return ["  " * depths[id(event)] + event.name.removeprefix("aten::") for event in prof.events()]


@pytest.mark.parametrize(
    ("function", "ops"),
    [
        (lambda: torch.rand(3, 4), ["rand", "empty", "uniform_"]),
        (lambda: torch.randn(3, 4), ["randn", "empty", "normal_"]),
        (lambda: torch.randint(5, (3,)), ["randint", "empty", "random_"]),
        (lambda: torch.randperm(5), ["randperm", "empty", "randperm", "scalar_tensor", "resize_", "resize_"]),
        (lambda: torch.normal(0.0, 1.0, (3,)), ["normal", "empty", "normal_"]),
    ],
    ids=["rand", "randn", "randint", "randperm", "normal"],
)
@pytest.mark.parametrize("shapes", [False, True])
def test_a_profile_shows_the_ops_inside_a_factory(function: Any, ops: list[str], shapes: bool) -> None:
    with torch.profiler.profile(record_shapes=shapes) as prof:
        function()
    assert [event.name for event in prof.events()] == [f"aten::{name}" for name in ops]
    with torch.profiler.profile(profile_memory=True) as prof:
        drawn = function()
    by_name = {event.name: event.cpu_memory_usage for event in prof.events()}
    assert by_name["aten::empty"] == drawn.nbytes


def test_recorded_dropout_shows_the_ops_torch_shows() -> None:
    x, images = torch.full((3, 4), 0.5), torch.ones(2, 3, 4, 4)
    like = ["  empty_like", "    empty_strided", "  bernoulli_"]
    maps = ["  new_empty", "    empty", "  bernoulli_"]
    assert _names(lambda: F.dropout(x, 0.5, False)) == ["dropout"]
    cast = ["    to", "      _to_copy", "        empty_strided", "        copy_"]  # of a number
    scaled = ["  div_", *cast]
    assert _names(lambda: F.dropout(x)) == ["dropout", *like, *scaled, "  mul"]
    assert _names(lambda: F.dropout(x, 0.5, True, True)) == ["dropout_", *like, *scaled, "  mul_"]
    assert _names(lambda: F.dropout(x, 1.0)) == ["dropout", "  zeros", "    empty", "    zero_", "  mul"]
    assert _names(lambda: F.dropout2d(images)) == ["feature_dropout", *maps, *scaled, "  mul"]
    times = ["  mul_", "    mul", *["  " + name for name in cast]]
    alpha = ["  add", *cast, *times, "  add_", *cast, *times, "  mul", "  add_"]
    assert _names(lambda: F.alpha_dropout(x, 0.3, True)) == ["alpha_dropout", *like, *alpha]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_can_draw_although_another_thread_drew_when_it_was_forked() -> None:
    torch.manual_seed(3)
    expected = float(torch.rand(()))
    torch.manual_seed(3)
    if torch.default_generator._bits.lock is None:
        pytest.skip("the compiled engine has no lock: it draws while it holds the interpreter's")
    drawing = threading.Event()

    def draw() -> None:
        with torch.default_generator._bits.lock:
            drawing.set()
            time.sleep(0.2)

    thread = threading.Thread(target=draw)
    thread.start()
    drawing.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if float(torch.rand(())) == expected else 1)
    thread.join()
    ended_well = ends_well(child)
    assert ended_well
    assert float(torch.rand(())) == expected
