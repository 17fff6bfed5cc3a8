"""Recording changes no result: every row and every op gives the same with a profiler and without.

Compared are values to the last bit, shapes, strides, offsets, dtypes, versions, views, nodes of the graph,
gradients, random numbers, warnings and errors, also of arguments that an op refuses. There is no list of
exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import profiled_rows
import pytest
import registry_calls

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch

AT_ONCE = 200  # rows in one recording: fewer recordings take less time, longer ones more memory

# results of memory that is not initialised: nobody knows their values, all else is compared
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}


@cache
def calls() -> dict[str, Callable[[], str]]:
    """By name a function that runs a row, or an op of the registry, and describes what it gives."""
    rows = dict(profiled_rows.calls())
    for op in list(_dispatch.BY_UID):
        make = registry_calls.accepted_arguments(op)
        if make is not None:
            describe = (
                registry_calls.described_layout if op.name in UNINITIALISED else registry_calls.described_call
            )
            run = partial(describe, op, make)
            rows[f"op: {op.full_name} {op.uid}"] = partial(profiled_rows._text, run)
        for number, refused in enumerate(registry_calls.refused_arguments(op, 3)):
            run = partial(registry_calls.described_refusal, op, refused)
            rows[f"refused: {op.full_name} {op.uid} {number}"] = partial(profiled_rows._text, run)
    for code in registry_calls.ROWS:
        rows[f"op: {code}"] = partial(profiled_rows._text, registry_calls.described_row, code)
    return rows


@cache
def outcome() -> tuple[dict[str, tuple[str, str]], set[tuple[str, str]]]:
    """What differs under a profiler, with what it gives without one and with it; and all ops that ran."""
    differing, ops = {}, set()
    names = list(calls())
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        plain = [calls()[name]() for name in some]
        with torch.profiler.profile(
            record_shapes=True, profile_memory=True, with_stack=True, with_flops=True, with_modules=True
        ) as prof:
            profiled = [calls()[name]() for name in some]
        differing.update(
            {
                name: (first_time, with_profiler)
                for name, first_time, with_profiler in zip(some, plain, profiled, strict=True)
                # a warning that is shown once per process is not shown the second time
                if first_time != with_profiler and calls()[name]() != with_profiler
            }
        )
        trace = prof.as_recorded().trace
        ops |= {(trace.names[i], trace.overloads[i]) for i in np.unique(trace.name).tolist()}
    return differing, ops


def test_everything_gives_the_same_with_a_profiler_and_without() -> None:
    differing, _ = outcome()
    assert not differing, "\n\n".join(
        f"{name}\n  without: {plain[:500]}\n  with:    {profiled[:500]}"
        for name, (plain, profiled) in differing.items()
    )


def test_every_op_of_the_registry_is_compared() -> None:
    _, ran = outcome()
    never = {
        op.full_name
        for op in _dispatch.BY_UID
        if op.namespace in ("aten", "mindtorch")  # not those that other tests define
        and (op.qualified_name, op.overload) not in ran
    }
    assert never == set()


@pytest.mark.parametrize(
    "flag", ["record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"]
)
def test_a_training_run_gives_the_same_with_each_flag(flag: str) -> None:
    def losses() -> list[bytes]:
        torch.manual_seed(3)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout(0.3),
            torch.nn.Flatten(), torch.nn.Linear(4 * 6 * 6, 5),
        )  # fmt: skip
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        values = []
        for _ in range(3):
            loss = torch.nn.functional.cross_entropy(
                model(torch.randn(8, 1, 8, 8)), torch.randint(0, 5, (8,))
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values += [
                loss.detach().numpy().tobytes(),
                *[p.detach().numpy().tobytes() for p in model.parameters()],
            ]
        return values

    plain = losses()
    with torch.profiler.profile(**{flag: True}):
        profiled = losses()
    assert profiled == plain


def _result_or_error(call: Callable[[], Any]) -> str:
    try:
        result = call()
    except Exception as error:
        return repr(error)
    return f"{type(result).__name__} {getattr(result, 'shape', result)}"


ALL_FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}


CODE = """
torch.isfinite('text')
F.one_hot(None)
torch.relu(torch.tensor([True]))
torch.ones(2, 3, 4).t()
torch.add(x, 'text', out=x)
torch.add(x, torch.ones(4), out=x)
torch.add(x.long(), 0.5, out=x.long())
torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (1,)).values()
x.to_sparse(3)
x.numpy().shape
m + m
m.exp()
m @ m.t()
m.sum()
m.add_(1)
torch.cat([m, m])
torch.add(m, m, out=m)
m.to('cpu')
m.tolist()
m.numpy()
m.max(0)
F.dropout(m)
F.linear(m, m)
repr(m)
torch.zeros_like(m)
""".split("\n")[1:-1]


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("flags", [{}, {"profile_memory": True}, ALL_FLAGS], ids=["plain", "memory", "all"])
def test_errors_and_meta_tensors_are_the_same_with_a_profiler_and_without(code: str, flags: dict) -> None:
    names = {"torch": torch, "F": torch.nn.functional}
    names |= {"x": torch.ones(2, 3), "m": torch.ones(2, 3, device="meta")}
    expected = _result_or_error(lambda: eval(code, names))
    with torch.profiler.profile(**flags):
        profiled = _result_or_error(lambda: eval(code, names))
    assert profiled == expected
