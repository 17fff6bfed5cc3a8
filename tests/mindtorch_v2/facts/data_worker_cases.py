"""Cases of torch.utils.data with worker processes: order, seeds, exceptions, deaths, persistence."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from typing import Any

import numpy as np


def _loader(torch: Any, get: Any, batch_size: Any = 1, n: int = 4, **options: Any) -> Any:
    class Made(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return n

        def __getitem__(self, i: int) -> Any:
            return get(i)

    options.setdefault("num_workers", 1)
    return torch.utils.data.DataLoader(Made(), batch_size, **options)


def _ends(call: Any) -> str:
    """The error of a call, without the lines of the traceback that tell of files."""
    try:
        result = call()
    except Exception as error:
        lines = str(error).splitlines()
        kept = [line for line in lines if not line.startswith("  ")]
        return f"{type(error).__name__}: " + " | ".join(re.sub(r"\d{2,}", "N", line) for line in kept)
    return f"returned {result}"


def workers_have_torchs_seeds(torch: Any, show: Any) -> None:
    def draw(i: int) -> str:
        info = torch.utils.data.get_worker_info()
        seeds = info.id, info.num_workers, info.seed, torch.initial_seed(), info.worker_method
        return repr((*seeds, random.random(), float(np.random.rand()), torch.rand(1).item()))  # noqa: NPY002  (what workers seed)

    show(list(_loader(torch, draw, 2, num_workers=2)))
    show(list(_loader(torch, draw, 2, generator=torch.Generator().manual_seed(7))))


def the_main_process_draws_as_without_workers(torch: Any, show: Any) -> None:
    for options in ({}, {"shuffle": True}, {"shuffle": True, "persistent_workers": True}):
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(range(4), num_workers=2, **options)
        show(list(loader), torch.rand(1).item(), list(loader), torch.rand(1).item())
        generator = torch.Generator().manual_seed(1)
        loader = torch.utils.data.DataLoader(range(4), num_workers=1, generator=generator, **options)
        show(list(loader), torch.rand(1, generator=generator).item())


def batches_come_in_order(torch: Any, show: Any) -> None:
    show(list(_loader(torch, float, 3, n=10, num_workers=2)), list(_loader(torch, lambda i: i, None)))
    show(list(_loader(torch, lambda i: (i, str(i), {"a": [i]}), 2, n=3)), list(_loader(torch, int, n=0)))
    loader = _loader(torch, int, 2, num_workers=2, prefetch_factor=1)
    first, second = iter(loader), iter(loader)
    show(next(first), next(second), list(first), list(second), len(first), type(first).__name__)
    show(first._profile_name, first._shutdown, [worker.is_alive() for worker in first._workers])
    show(sorted(int(batch) for batch in _loader(torch, int, in_order=False, num_workers=2)))
    show.raises(lambda: iter(_loader(torch, int, prefetch_factor=0)))


def persistent_workers_are_used_again(torch: Any, show: Any) -> None:
    loader = _loader(torch, lambda i: (i, os.getpid()), None, num_workers=2, persistent_workers=True)
    first = iter(loader)
    pids = {pid for _, pid in first}
    again = iter(loader)
    show(first is again, {pid for _, pid in again} == pids, len(pids))
    next(iter(loader))
    show([i for i, _ in loader], {pid for _, pid in loader} == pids)


def iterable_datasets_are_read_by_every_worker(torch: Any, show: Any) -> None:
    data = torch.utils.data

    class Count(data.IterableDataset):
        def __iter__(self) -> Any:
            info = data.get_worker_info()
            return iter([(info.id, i) for i in range(info.id + 2)])

        def __repr__(self) -> str:
            return "Count"

        def __len__(self) -> int:
            return 2

    show(
        list(data.DataLoader(Count(), 2, num_workers=2)), list(data.DataLoader(Count(), None, num_workers=2))
    )
    loader = data.DataLoader(Count(), None, num_workers=2, persistent_workers=True)
    show(list(loader), list(loader), len(loader))
    show(show.warns(lambda: list(loader)))


def exceptions_come_back(torch: Any, show: Any) -> None:
    class Pair(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(a, b)

    def failing(error: Exception) -> Any:
        def get(i: int) -> int:
            if i == 1:
                raise error
            return i

        return get

    for error in (
        ValueError("bad"), KeyError("k"), KeyError("two\nlines"), RuntimeError("two\nlines"), IndexError("i"),
        NotImplementedError(), StopIteration("s"),
    ):  # fmt: skip
        show(_ends(lambda error=error: list(_loader(torch, failing(error), 2))))
    iterator = iter(_loader(torch, failing(ValueError("v"))))
    show([_ends(lambda: next(iterator)) for _ in range(5)])

    def refuse(worker_id: int) -> None:
        raise ValueError(f"worker {worker_id}")

    show(_ends(lambda: list(_loader(torch, int, worker_init_fn=refuse))))


def a_dead_worker_is_an_error(torch: Any, show: Any) -> None:
    for die in (lambda: os._exit(3), lambda: sys.exit(4), lambda: os.kill(os.getpid(), signal.SIGTERM)):

        def get(i: int, die: Any = die) -> int:
            if i == 2:
                die()
            return i

        # Two workers: with one, torch may tell of the signal instead.
        show(_ends(lambda get=get: list(_loader(torch, get, num_workers=2))))
