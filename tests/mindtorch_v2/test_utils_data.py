"""torch.utils.data: datasets, samplers, collating and the loader, with real worker processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_prof.trace import USER_SCOPE
from mindtorch_v2 import _dispatch
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset, IterDataPipe, TensorDataset
from mindtorch_v2.utils.data._utils import transport


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("data_cases", "data_worker_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


# what Python raises for an object that it cannot pickle: the first until 3.13, then the second
UNPICKLABLE = (AttributeError, pickle.PicklingError)


class Squares(Dataset[Any]):
    """Squares, made by a function that tests can replace; pickled by name."""

    def __init__(self, n: int = 6) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return torch.tensor(i * i)


class Calls(Dataset[Any]):
    """Calls a function with each index."""

    def __init__(self, function: Any, n: int = 4) -> None:
        self.function, self.n = function, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return self.function(i)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_can_be_started_afresh(method: str) -> None:
    # a dataset of the package: a fresh process cannot import this test's module
    squares = torch.utils.data.TensorDataset(torch.arange(6) ** 2)
    loader = DataLoader(squares, 2, num_workers=1, multiprocessing_context=method)
    assert [batch.tolist() for (batch,) in loader] == [[0, 1], [4, 9], [16, 25]]


def test_a_dataset_that_cannot_be_pickled_is_explained_when_workers_start_afresh() -> None:
    with pytest.warns(UserWarning, match="Got pickle error"), pytest.raises(UNPICKLABLE, match="pickle"):
        iter(DataLoader(Calls(lambda i: i), num_workers=1, multiprocessing_context="spawn"))


def test_a_result_that_cannot_be_pickled_is_an_error_and_no_hang() -> None:
    loader = DataLoader(Calls(lambda i: lambda: i), None, num_workers=1, collate_fn=lambda item: item)
    with pytest.raises(UNPICKLABLE, match="in DataLoader worker process 0"):
        next(iter(loader))


def test_an_exception_class_that_only_the_worker_knows_becomes_a_runtime_error() -> None:
    def fail(i: int) -> None:
        class Local(Exception):
            pass

        raise Local("here")

    with pytest.raises(
        RuntimeError, match=r"Caught Local in DataLoader worker process 0\.(.|\n)*Local: here"
    ):
        next(iter(DataLoader(Calls(fail), num_workers=1)))


def test_a_killed_worker_names_its_signal_as_the_cause() -> None:
    loader = DataLoader(Calls(lambda i: os.kill(os.getpid(), signal.SIGKILL)), num_workers=1)
    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"
    ) as caught:
        next(iter(loader))
    assert "is killed by signal: Killed" in str(caught.value.__cause__)


def test_after_a_death_the_iterator_is_at_its_end_and_the_loader_can_begin_again(tmp_path: Path) -> None:
    died = tmp_path / "died"

    def die_once(i: int) -> int:
        if i == 1 and not died.exists():
            died.touch()
            os._exit(1)
        return i

    loader = DataLoader(Calls(die_once), num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(iterator)
    assert list(iterator) == []
    assert [int(batch) for batch in loader] == [0, 1, 2, 3]


def test_waiting_longer_than_the_timeout_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mindtorch_v2.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.2
    )  # so long it may finish
    loader = DataLoader(Calls(lambda i: time.sleep(60)), num_workers=1, timeout=0.3)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.3 seconds"):
        next(iter(loader))


def test_out_of_order_a_slow_worker_holds_up_nobody() -> None:
    another_is_here = multiprocessing.Event()

    def slow_first(i: int) -> int:
        if i == 0:
            another_is_here.wait(60)
        return i

    batches = iter(DataLoader(Calls(slow_first, 6), num_workers=2, in_order=False))
    order = [int(next(batches))]
    another_is_here.set()
    order += [int(batch) for batch in batches]
    assert sorted(order) == list(range(6))
    assert order[0] != 0


def test_workers_end_with_the_iterator() -> None:
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    next(iterator)
    workers = iterator._workers
    assert all(worker.is_alive() for worker in workers)
    del iterator
    assert not any(worker.is_alive() for worker in workers)


def test_workers_do_not_record() -> None:
    loader = DataLoader(Calls(lambda i: float(_dispatch.recorder is None)), num_workers=1)
    iterator = iter(())
    _dispatch.recorder = _dispatch.Hook(lambda op, *arguments: op.run(*arguments))
    try:
        iterator = iter(loader)
    finally:
        _dispatch.recorder = None
    assert [float(batch) for batch in iterator] == [1.0] * 4


def test_a_profile_shows_each_batch_as_an_annotation() -> None:
    with torch.profiler.profile() as prof:
        next(iter(DataLoader(Squares())))
    shown = [(event.name, event.scope) for event in prof.events() if "#" in event.name]
    assert shown == [("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", USER_SCOPE)]


def test_iterators_inherited_by_a_worker_do_not_act_for_their_parent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    held = iter(DataLoader(Squares(), num_workers=1))
    next(held)
    assert len(list(DataLoader(Squares(), 2, num_workers=2))) == 3
    assert [int(batch) for batch in held] == [1, 4, 9, 16, 25]
    assert capfd.readouterr().err == ""


def test_loaders_work_from_several_threads() -> None:
    results: dict[int, list[int]] = {}

    def run(k: int) -> None:
        results[k] = [int(batch) for batch in DataLoader(Squares(), num_workers=1)]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [results[k] for k in range(3)] == [[0, 1, 4, 9, 16, 25]] * 3


def test_batches_that_are_kept_cost_no_file_descriptors() -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("counts descriptors in /proc")
    before = len(list(folder.iterdir()))
    big = Calls(lambda i: torch.full((100_000,), float(i)), 8)
    kept = list(DataLoader(big, None, num_workers=2))
    assert [float(tensor[-1]) for tensor in kept] == list(range(8))
    assert len(list(folder.iterdir())) <= before


def test_a_program_may_end_in_the_middle_of_an_epoch() -> None:
    program = """
        import time
        import mindtorch_v2 as torch
        from mindtorch_v2.utils.data import DataLoader
        loader = DataLoader(range(1000), num_workers=2, persistent_workers=True)
        iterator = iter(loader)
        next(iterator)
        print(*(worker.pid for worker in iterator._workers))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stderr == ""
    for pid in map(int, done.stdout.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_end_when_their_parent_is_killed() -> None:
    program = """
        import os
        import mindtorch_v2 as torch
        from mindtorch_v2.utils.data import DataLoader
        iterator = iter(DataLoader(range(1000), num_workers=2))
        next(iterator)
        print(*(worker.pid for worker in iterator._workers), flush=True)
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in done.stdout.split()]
    deadline = time.monotonic() + 300
    while any(_lives(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_lives(pid) for pid in pids)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(60_000).reshape(200, 300),
        lambda: torch.arange(60_000).reshape(200, 300).t(),
        lambda: torch.ones(2, 3, 4).permute(2, 0, 1),
        lambda: torch.arange(20)[::3],
        lambda: torch.ones(3).expand(4, 3),
        lambda: torch.tensor(3.5),
        lambda: torch.empty(0, 3),
        lambda: torch.ones(300_000, dtype=torch.bfloat16),
        lambda: torch.tensor([True, False]),
        lambda: torch.tensor([1 + 2j]),
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.nn.Parameter(torch.ones(2)),
    ],
)
def test_tensors_travel_as_they_are(make: Any) -> None:
    from multiprocessing import Pipe

    sent = make()
    here, there = Pipe()
    thread = threading.Thread(target=transport.send, args=(there, [sent, "beside", sent]))
    thread.start()
    got, text, same = transport.decode(transport.receive(here))
    thread.join()
    assert type(got) is type(sent)
    assert got is same
    assert text == "beside"
    assert (got.dtype, got.shape, got.requires_grad) == (sent.dtype, sent.shape, sent.requires_grad)
    assert torch.equal(got, sent)
    got.detach().zero_()


def test_dense_tensors_keep_their_order_in_memory() -> None:
    (tensor,) = DataLoader(Calls(lambda i: torch.ones(2, 3, 4).permute(2, 0, 1), 1), None, num_workers=1)
    assert tensor.stride() == (1, 12, 4)


def test_a_tensor_with_history_refuses_to_travel() -> None:
    from multiprocessing import Pipe

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        transport.send(Pipe()[1], torch.ones(2, requires_grad=True) * 2)


def test_a_timeout_that_the_program_sets_for_sockets_does_not_disturb() -> None:
    import socket

    socket.setdefaulttimeout(5)
    try:
        batches = list(DataLoader(Calls(lambda i: torch.ones(100_000)), None, num_workers=1))
    finally:
        socket.setdefaulttimeout(None)
    assert [batch.sum().item() for batch in batches] == [100_000.0] * 4


def test_arrays_in_a_batch_can_be_written_to() -> None:
    for n in (10, 100_000):
        (array,) = DataLoader(
            Calls(lambda i, n=n: np.zeros(n), 1), None, num_workers=1, collate_fn=lambda a: a
        )
        array += 1
        assert array.sum() == n


def test_the_usual_import_paths_lead_to_the_same_things() -> None:
    from mindtorch_v2.utils.data import default_collate, default_convert
    from mindtorch_v2.utils.data._utils.collate import default_collate as third
    from mindtorch_v2.utils.data._utils.worker import WorkerInfo, get_worker_info
    from mindtorch_v2.utils.data.dataloader import default_collate as second
    from mindtorch_v2.utils.data.dataset import TensorDataset as Again
    from mindtorch_v2.utils.data.distributed import DistributedSampler
    from mindtorch_v2.utils.data.sampler import Sampler

    assert default_collate is second is third
    assert torch.utils.data.default_convert is default_convert
    assert Again is TensorDataset
    assert issubclass(DistributedSampler, Sampler)
    assert get_worker_info() is None
    assert WorkerInfo(0, 1, 2, []).worker_method == "multiprocessing"


def test_pipes_check_what_they_declare() -> None:
    from mindtorch_v2.utils.data import argument_validation, runtime_validation
    from mindtorch_v2.utils.data import runtime_validation_disabled as unchecked

    class Numbers(IterDataPipe[int]):
        def __init__(self, content: Any) -> None:
            self.content = content
            self.resets = 0

        def reset(self) -> None:
            self.resets += 1

        @runtime_validation
        def __iter__(self) -> Any:
            yield from self.content

    class Over(IterDataPipe):
        @argument_validation
        def __init__(self, source: IterDataPipe) -> None:
            self.source = source

    pipe = Numbers([1, 2])
    assert (list(pipe), list(pipe), pipe.resets) == ([1, 2], [1, 2], 2)
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of <class 'int'>"):
        list(Numbers([1, "a"]))
    with unchecked():
        assert list(Numbers([1, "a"])) == [1, "a"]
    assert Over(pipe).source is pipe
    with pytest.raises(
        TypeError, match="Expected argument 'source' as a IterDataPipe, but found <class 'int'>"
    ):
        Over(3)


def test_iterable_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()
