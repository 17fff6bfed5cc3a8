"""Random arguments of fused loops in, an error of Python or a result out: no access outside of arrays.

    .ci/sanitize -- tests/fuzz_fused.py --seconds 120 [--seed 0]

Arguments are of the right kind most of the time, so that loops run: arrays of all layouts and of sizes that
do or do not fit together, read-only ones, indices that point outside, settings of pools that are odd or
huge.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mindtorch_v2 import _tensor_slots
from mindtorch_v2._ops import _core

LOOPS = Path(_core.__file__).with_name("_fused.pyi")
LAYOUTS = Path(_tensor_slots.__file__).with_name("_slots.pyi")
INTEGERS = (0, 1, 1, 2, 2, 3, 4, 5, 16, 17, -1, -3, 1000, 2**62, 2**70)


def signatures(stub: Path) -> dict[str, list[str]]:
    """The kinds of the arguments of each function whose first argument is an array or an engine."""
    found = re.findall(r"^def (\w+)\((.*?)\) ->", stub.read_text(), re.MULTILINE | re.DOTALL)
    kinds = {name: re.findall(r"\w+: ([\w| ]+)", arguments) for name, arguments in found}
    return {name: kind for name, kind in kinds.items() if kind and "_Array" in kind[0]}


class Arguments:
    """Random arguments. Sizes of one call are few, so that arrays often fit together."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.start_call()

    def start_call(self) -> None:
        choose = self._random.choice
        self._sizes = [choose((0, 1, 2, 3, 4, 8, 16)) for _ in range(3)]
        self._shape = tuple(choose(self._sizes) for _ in range(choose((0, 1, 2, 2, 3, 3, 4, 5))))
        self._dtype = choose((np.float32, np.float32, np.float64))
        self._dims = choose((1, 2, 2, 3))
        if self._random.random() < 0.1:  # large enough to be copied in tiles
            self._shape = choose(((130, 140), (3, 70, 90), (2, 33, 5, 64)))

    def array(self) -> Any:
        choose = self._random.choice
        shape = self._shape
        if self._random.random() < 0.4:
            shape = tuple(choose(self._sizes) for _ in range(choose((0, 1, 1, 2, 3, 4, 5))))
        dtype = choose((self._dtype,) * 5 + (np.int64,) * 4 + (np.bool_, np.int32, np.uint32, np.float16))
        if dtype is np.uint32 and choose((True, False)):
            words = np.random.default_rng(0).integers(0, 2**32, 625, np.uint32)
            words[-1] = choose((0, 600, 624, 625, 2**32 - 1))
            return words
        values = np.random.default_rng(self._random.getrandbits(32)).integers(-2, 6, shape) * choose(
            (1, 1, 1, 2**40)
        )
        array = np.asarray(values).astype(dtype)
        kind = self._random.random()
        if kind < 0.1 and array.ndim:
            array = array[..., ::-1]
        elif kind < 0.2 and array.ndim > 1:
            array = array.T
        elif kind < 0.25:
            array = np.broadcast_to(array, (2, *array.shape))
        elif kind < 0.3:
            array.flags.writeable = False
        return array

    def of_kind(self, kind: str) -> Any:
        choose = self._random.choice
        if self._random.random() < 0.03:
            return choose((None, "text", 1.5, (), [1, 2], np.zeros(3)))
        if "None" in kind and choose((True, False)):
            return None
        if "_Array" in kind:
            return self.array()
        if "_Ints" in kind:
            if choose((True, False)):
                return self._shape
            return tuple(choose(INTEGERS) for _ in range(self._dims))
        if "bool" in kind:
            return choose((True, False))
        if "int" in kind:
            return choose(INTEGERS)
        return choose((0.0, 1.0, -0.5, float("nan"), float("inf"), 1e300))


def run(seconds: float, seed: int) -> int:
    """Call random loops for some seconds; the number of calls that gave a result."""
    arguments = Arguments(seed)
    loops = [(_core._fused, *item) for item in sorted(signatures(LOOPS).items())]
    loops += [(_tensor_slots._compiled, *item) for item in sorted(signatures(LAYOUTS).items())]
    chooser = random.Random(seed)
    calls = results = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        module, name, kinds = chooser.choice(loops)
        loop: Callable[..., Any] = getattr(module, name)
        arguments.start_call()
        given = [arguments.of_kind(kind) for kind in kinds]
        if name in ("draws", "units", "double_units") and isinstance(given[1], int) and given[1] > 10**6:
            continue  # would be memory, not an error
        calls += 1
        try:
            results += loop(*given) is not None
        except (TypeError, ValueError, OverflowError, MemoryError):
            pass
    print(f"{calls} calls, {results} of them gave a result")
    return results


def main() -> None:
    """Fuzz, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    np.seterr(all="ignore")
    run(options.seconds, options.seed)


if __name__ == "__main__":
    main()
