"""Random inputs for benchmarks: declared parameters and tensors in, random values and tensors for a seed out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mindtorch_v2 as torch

_DISTRIBUTIONS = ("loguniform", "uniform")
_TRIES = 1000
_SEEDS = 2**63 - 1


class ParameterAlias:
    """The value of a parameter that takes the value of another one."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A random number between two bounds, or one of several values with their probabilities."""

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name = name
        self._minval = minval
        self._maxval = maxval
        self._distribution = distribution
        self.strict = strict
        if isinstance(distribution, dict):
            if abs(sum(distribution.values()) - 1) > 1e-6:
                raise AssertionError("Distribution is not normalized")
        elif distribution not in _DISTRIBUTIONS:
            raise AssertionError(f"Unknown distribution: {distribution}")

    @property
    def name(self) -> str:
        """The name in tensors and constraints."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """A random value."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(np.arange(len(values)), p=list(self._distribution.values()))]
        low: Any = self._minval
        high: Any = self._maxval
        if self._distribution == "loguniform":
            return int(2 ** state.uniform(low=np.log2(low), high=np.log2(high)))
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class FuzzedTensor:
    """A random tensor whose size, strides and order of dimensions depend on parameters and on the seed."""

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = None,
        cuda: bool = False,
        tensor_constructor: Callable | None = None,
    ) -> None:
        self._name = name
        self._size = size
        self._steps = steps
        self._probability_contiguous = probability_contiguous
        self._min_elements = min_elements
        self._max_elements = max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = torch.float32 if dtype is None else dtype
        self._cuda = cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: tuple[int, ...], dtype: Any, **kwargs: Any) -> Any:
        """Numbers between 0 and 1, or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(size=size, dtype=dtype, device="cpu")
        return torch.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(
        self, params: dict[str, Any], state: np.random.RandomState
    ) -> tuple[Any, dict[str, Any]]:
        size, steps, allocated = self._get_size_and_steps(params)
        constructor = self._tensor_constructor or self.default_tensor_constructor
        raw = constructor(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            raw = raw.cuda()
        dim = len(size)
        order = np.arange(dim)
        if state.rand() > self._probability_contiguous:
            while dim > 1 and np.all(order == np.arange(dim)):
                order = state.permutation(dim)
            raw = raw.permute(tuple(order.tolist())).contiguous()
            raw = raw.permute(tuple(np.argsort(order).tolist()))
        tensor = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        properties = {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return tensor, properties

    def _get_size_and_steps(self, params: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def resolved(values: tuple[str | int, ...]) -> tuple[int, ...]:
            given = [params.get(value, value) if isinstance(value, str) else value for value in values]
            return tuple((given + [1] * dim)[:dim])

        size, steps = resolved(self._size), resolved(self._steps or ())
        return size, steps, tuple(n * step for n, step in zip(size, steps))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the tensor's number of elements and bytes is within the limits."""
        size, _, allocated = self._get_size_and_steps(params)
        elements = math.prod(size)
        nbytes = math.prod(allocated) * self._dtype.itemsize
        return not (
            (self._max_elements is not None and elements > self._max_elements)
            or (self._min_elements is not None and elements < self._min_elements)
            or (self._max_allocation_bytes is not None and nbytes > self._max_allocation_bytes)
        )


class Fuzzer:
    """Draws parameters until all constraints are satisfied, and creates the tensors."""

    def __init__(
        self,
        parameters: list[FuzzedParameter | list[FuzzedParameter]],
        tensors: list[FuzzedTensor | list[FuzzedTensor]],
        constraints: list[Callable] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters, FuzzedParameter)
        self._tensors: list[FuzzedTensor] = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        shared = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if shared:
            raise ValueError(f"Duplicate names in parameters and tensors: {shared}")
        self._rejections = self._total_generated = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """Yields `n` times: the tensors, their properties, and the parameters."""
        state = np.random.RandomState(self._seed)
        torch.manual_seed(int(state.randint(low=0, high=_SEEDS, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            tensors, properties = {}, {}
            for tensor in self._tensors:
                tensors[tensor.name], properties[tensor.name] = tensor._make_tensor(params, state)
            yield tensors, properties, params

    @property
    def rejection_rate(self) -> float:
        """The fraction of drawn parameters that did not satisfy the constraints."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        for _ in range(_TRIES):
            samples = {parameter.name: parameter.sample(state) for parameter in self._parameters}
            self._total_generated += 1
            params = {
                name: samples[value.alias_to] if isinstance(value, ParameterAlias) else value
                for name, value in samples.items()
            }
            if all(check(params) for check in self._constraints) and all(
                tensor.satisfies_constraints(params) for tensor in self._tensors
            ):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(given: list[Any], kind: type) -> list[Any]:
    made: list[Any] = []
    for item in given:
        for one in item if isinstance(item, (list, tuple)) else (item,):
            if not isinstance(one, kind):
                raise ValueError(f"Unexpected type: {type(one)}")
            made.append(one)
    return made
