"""torch.utils.benchmark: measurements, random tasks, counts of instructions, rounding, all as torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import benchmark
from mindtorch_v2.utils.benchmark.utils.common import trim_sigfig


def test_a_seed_gives_torchs_sizes_and_values():
    fuzzer = benchmark.Fuzzer(
        parameters=[benchmark.FuzzedParameter("n", minval=1, maxval=16, distribution="loguniform")],
        tensors=[benchmark.FuzzedTensor("x", size=("n",))],
        seed=0,
    )
    (first, said, params), (second, _, _) = fuzzer.take(2)
    assert params == {"n": 7}
    torch.testing.assert_close(first["x"][:3], torch.tensor([0.7821399, 0.0535990, 0.9887869]))
    torch.testing.assert_close(second["x"][:2], torch.tensor([0.7166466, 0.5960912]))
    assert said["x"]["numel"] == 7
    assert said["x"]["dtype"] == "torch.float32"


def test_steps_and_orders_are_torchs():
    whole = benchmark.FuzzedParameter
    fuzzer = benchmark.Fuzzer(
        [
            whole("a", 2, 9, "uniform"),
            whole("b", 2, 9, "uniform"),
            [whole("s", 1, 3, "uniform"), whole("d", 1, 2, "uniform")],
        ],
        [
            benchmark.FuzzedTensor("x", size=("a", "b"), steps=("s", "s"), dim_parameter="d"),
            benchmark.FuzzedTensor("y", size=("a", 3), dtype=torch.int64, probability_contiguous=0.0),
            benchmark.FuzzedTensor("z", size=("b", "a", 2), probability_contiguous=0.0),
        ],
        seed=0,
    )
    made = [
        {name: (tuple(t.shape), t.stride()) for name, t in tensors.items()}
        for tensors, _, _ in fuzzer.take(2)
    ]
    assert made == [
        {"x": ((7, 2), (2, 28)), "y": ((7, 3), (1, 7)), "z": ((2, 7, 2), (2, 4, 1))},
        {"x": ((3, 7), (28, 2)), "y": ((3, 3), (1, 3)), "z": ((7, 3, 2), (1, 14, 7))},
    ]


def test_what_does_not_fit_is_drawn_again():
    tensor = benchmark.FuzzedTensor("x", size=("a", "a"), min_elements=100, max_elements=4000)
    fuzzer = benchmark.Fuzzer([benchmark.FuzzedParameter("a", 2, 90, "uniform")], [tensor], seed=0)
    assert [params["a"] for _, _, params in fuzzer.take(4)] == [11, 38, 14, 41]
    assert fuzzer.rejection_rate == pytest.approx(5 / 9)
    never = benchmark.Fuzzer(
        [benchmark.FuzzedParameter("a", 1, 2, "uniform")], [], [lambda params: False], seed=0
    )
    with pytest.raises(ValueError, match="Failed to generate a set of valid parameters"):
        next(never.take(1))


def test_values_have_probabilities_and_may_name_other_parameters():
    chosen = benchmark.FuzzedParameter("c", distribution={5: 0.5, benchmark.ParameterAlias("a"): 0.5})
    fuzzer = benchmark.Fuzzer([benchmark.FuzzedParameter("a", 7, 9, "uniform"), chosen], [], seed=1)
    drawn = [params for _, _, params in fuzzer.take(30)]
    assert all(params["c"] in (5, params["a"]) for params in drawn)
    assert {params["c"] for params in drawn} == {5, 7, 8, 9}
    with pytest.raises(AssertionError, match="Distribution is not normalized"):
        benchmark.FuzzedParameter("c", distribution={1: 0.3})
    with pytest.raises(ValueError, match="Duplicate names in parameters and tensors"):
        benchmark.Fuzzer(
            [benchmark.FuzzedParameter("a", 1, 2, "uniform")], [benchmark.FuzzedTensor("a", (1,))]
        )


def _counts(**counts):
    return benchmark.FunctionCounts(
        tuple(benchmark.FunctionCount(count, name) for name, count in counts.items()), inclusive=False
    )


def test_counts_are_added_compared_and_shown():
    a, b = _counts(f=50, g=7), _counts(f=20, h=7)
    assert list(a - b) == [(30, "f"), (7, "g"), (-7, "h")]
    assert list(a + b) == [(70, "f"), (7, "h"), (7, "g")]
    assert list(a.transform(lambda name: "all")) == [(57, "all")]
    assert (a.filter(lambda name: name == "g").sum(), len(a[:1])) == (7, 1)
    assert repr(a).splitlines()[1:] == ["  50  f", "   7  g", "", "Total: 57"]
    many = benchmark.FunctionCounts(tuple(benchmark.FunctionCount(i, f"f{i}" * 30) for i in range(20)), True)
    lines = repr(many).splitlines()
    assert (len(lines), lines[10], len(lines[12])) == (20, " ...", 80)


def test_names_of_instruction_counts_do_not_tell_where_things_lie():
    counted = {
        "/home/u/build/aten/src/x.cpp:f [/usr/lib/x.so]": 9,
        "/build/Objects/dictobject.c:lookdict_unicode": 3,
    }
    counts, none = _counts(**counted), _counts()
    stats = benchmark.CallgrindStats(
        benchmark.TaskSpec("a", "b"), 10, False, none, none, counts, counts, None
    )
    assert [name for _, name in stats.as_standardized().stats()] == [
        "build/aten/src/x.cpp:f",
        "Objects/dictobject.c:lookdict_unicode",
    ]
    assert (stats.counts(), stats.counts(denoise=True)) == (12, 9)
    assert not list(stats.delta(stats))
    text = repr(stats).splitlines()
    assert text[3:5] == [f"{'All':>30}{'':>10}Noisy symbols removed", f"    Instructions: {12:>12}{9:>27}"]
    assert text[-3] == "Warning: PyTorch was not built with debug symbols."


def test_numbers_are_rounded_as_torchs_tensors_round_them():
    assert [trim_sigfig(12345.678, n) for n in range(1, 7)] == [
        10000.0, 12000.0, 12300.0, 12350.0, 12346.0, 12345.7001953125,
    ]  # fmt: skip


def test_measurements_of_one_task_are_merged_into_runs_of_one():
    spec = benchmark.TaskSpec("s", "t")
    (merged,) = benchmark.Measurement.merge(
        [benchmark.Measurement(10, [1.0, 2.0], spec), benchmark.Measurement(5, [1.0], spec)]
    )
    assert (merged.number_per_run, list(merged.times)) == (1, [0.1, 0.2, 0.2])


def test_a_statement_is_measured() -> None:
    timer = benchmark.Timer("torch.add(x, 1)", "x = torch.ones(2)", num_threads=1, label="add")
    once = timer.timeit(5)
    assert (once.number_per_run, len(once.raw_times), once.label) == (5, 1, "add")
    seen: list[int] = []
    many = timer.blocked_autorange(lambda number, taken: seen.append(number), min_run_time=0.01)
    assert seen == [many.number_per_run] * len(many.raw_times)
    assert sum(many.raw_times) >= 0.01
    adaptive = timer.adaptive_autorange(min_run_time=0.001, max_run_time=0.02)
    assert adaptive.median > 0
    assert benchmark.Timer("own", globals={"own": 1}).timeit(1).number_per_run == 1
    assert benchmark.Timer("\n    for i in range(3):\n        pass\n").timeit(1).stmt.startswith("for")


def test_what_needs_a_compiler_refuses() -> None:
    with pytest.raises(NotImplementedError, match="no compiler"):
        benchmark.Timer("x + y;", language="c++")
    with pytest.raises(NotImplementedError, match="valgrind"):
        benchmark.Timer("x").collect_callgrind()
