"""torch.func shows what torch was recorded to show."""

from __future__ import annotations

from typing import Any

import pytest
import recorded_cases

import mindtorch_v2 as torch


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("func_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_vmap_maps_over_containers_that_have_a_batch_of_their_own() -> None:
    class Pair:
        """Two tensors with a common batch; functorch asks such classes for the dimension by this method."""

        def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
            self.first, self.second = first, second

        def _add_batch_dim(self, *, in_dim: int, vmap_level: int) -> None:
            raise AssertionError("examples are taken one by one")

        def dim(self) -> int:
            return self.first.dim()

        def size(self, dim: int) -> int:
            return self.first.size(dim)

        def unbind(self, dim: int) -> list[Pair]:
            return [Pair(*parts) for parts in zip(self.first.unbind(dim), self.second.unbind(dim))]

    pair = Pair(torch.arange(3.0), torch.ones(3))
    assert torch.vmap(lambda p, x: p.first + p.second * x)(pair, torch.tensor([1.0, 2.0, 3.0])).tolist() == [
        1.0,
        3.0,
        5.0,
    ]


def test_vmap_gives_each_example_its_own_copy_of_a_container_that_is_not_mapped() -> None:
    """A function may write its result into it, as modules of tensordict do."""

    class Entries:
        def __init__(self, entries: dict[str, torch.Tensor]) -> None:
            self.entries = entries

        def _add_batch_dim(self, *, in_dim: int, vmap_level: int) -> None:
            raise AssertionError("it is not mapped")

        def clone(self, recurse: bool = True) -> Entries:
            assert not recurse
            return Entries(dict(self.entries))

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Entries:
            assert func is torch.stack
            rows = [row.entries for row in args[0]]
            return Entries({name: torch.stack([row[name] for row in rows]) for name in rows[0]})

    def write(entries: Entries, factor: torch.Tensor) -> Entries:
        entries.entries["x"] = entries.entries["x"] * factor
        return entries

    given = Entries({"x": torch.tensor(3.0)})
    result = torch.vmap(write, (None, 0))(given, torch.tensor([1.0, 2.0]))
    assert result.entries["x"].tolist() == [3.0, 6.0]
    assert given.entries["x"].item() == 3.0


def test_transforms_return_no_history_where_gradients_are_disabled() -> None:
    weight = torch.ones(3, requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * x * weight).sum()

    def results() -> list[torch.Tensor]:
        output, product = torch.func.vjp(function, weight)
        value, tangent = torch.func.jvp(function, (weight,), (torch.ones(3),))
        rows = [torch.func.grad(function)(weight), torch.func.jacrev(function)(weight)]
        rows += [
            torch.func.hessian(function)(weight),
            torch.func.linearize(function, weight)[1](torch.ones(3)),
        ]
        return [output, *product(torch.tensor(1.0)), value, tangent, *rows]

    assert all(result.requires_grad for result in results())
    with torch.no_grad():
        assert not any(result.requires_grad for result in results())


def test_the_function_of_vmap_may_differentiate_one_graph_for_every_example() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x.pow(2)
    (rows,) = torch.func.vmap(lambda row: torch.autograd.grad(y, x, row))(torch.eye(3))
    assert rows.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()  # it was freed after the last example
