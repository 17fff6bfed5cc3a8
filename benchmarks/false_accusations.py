"""How often noise alone accuses a rank: jobs of equal ranks in; the share of jobs with an accused rank out.

    python benchmarks/false_accusations.py [--jobs 2000] [--seed 0]

All ranks of a job take the same time but for noise, so each rank that `differences` names is innocent. A job
has five phases, as real ones do: one accusation in any of them is a false verdict. The threshold is that of
`mindtorch-prof fleet`: 3 % of the step. The last lines show the rule for ops: forty ops, tested together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mindtorch_prof.fleet.evidence import differences, without_spikes
from mindtorch_prof.fleet.verdict import THRESHOLD

Times = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Times]

PHASES, OPS = 5, 40
STEPS, RANKS = (2, 3, 4, 5, 6, 8), (2, 3, 4, 5, 6, 7, 8)
PHASE_NS = 2e6  # the median time of a phase, before noise


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> Times:
    """Times that vary by a tenth, on either side."""
    return 1 + 0.1 * random.standard_normal(shape)


def skewed(random: np.random.Generator, shape: tuple[int, ...]) -> Times:
    """A shortest time and a long tail above it."""
    return 0.7 + random.exponential(0.4, shape)


def spiky(random: np.random.Generator, shape: tuple[int, ...]) -> Times:
    """Steady times, a tenth of them hit by another process for several times as long."""
    steady = 1 + 0.02 * random.standard_normal(shape)
    return steady + (random.random(shape) < 0.1) * random.exponential(4.0, shape)


NOISES: dict[str, Noise] = {"normal": normal, "skewed": skewed, "spiky": spiky}


def accused(noise: Noise, ranks: int, steps: int, columns: int, jobs: int, seed: int) -> float:
    """The share of clean jobs in which some rank is accused. columns: phases, or ops if more than those."""
    random = np.random.default_rng([seed, ranks, steps, columns])
    per_column = PHASE_NS * PHASES / columns
    of_ops = columns > PHASES
    named = 0
    for _ in range(jobs):
        values = per_column * noise(random, (ranks, steps, columns))
        step = float(np.median(values.sum(axis=2)))
        kept = values if of_ops else without_spikes(values.astype(np.int64))  # as the verdict does
        named += bool(differences(kept, THRESHOLD * step, of_ops=of_ops))
    return named / jobs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2000, help="simulated jobs per figure")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("clean jobs in which a rank is accused, percent; one column per number of ranks")
    print(f"{'':24}" + "".join(f"{ranks:>7}" for ranks in RANKS) + f"{'most':>7}")
    for columns, title in ((PHASES, "phases"), (OPS, "ops")):
        for steps in STEPS:
            for name, noise in NOISES.items():
                shares = [
                    100 * accused(noise, ranks, steps, columns, options.jobs, options.seed) for ranks in RANKS
                ]
                row = "".join(f"{share:7.2f}" for share in (*shares, max(shares)))
                print(f"{title:7}{steps:2} steps {name:8}" + row, flush=True)


if __name__ == "__main__":
    main()
