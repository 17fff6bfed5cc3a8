"""Programs for several processes: each gets its rank, the number of processes, a port and a folder."""

from __future__ import annotations

import os
import time
import traceback
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import distributed as dist
from mindtorch_v2.distributed import checkpoint
from mindtorch_v2.nn.parallel import DistributedDataParallel

_LIMIT = timedelta(seconds=300)  # for a machine that stands still for a while; only failures use it up


def _join(rank: int, world_size: int, port: int) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", _LIMIT, rank=rank, world_size=world_size)


def collectives(rank: int, world_size: int, port: int, folder: str) -> None:
    """Every collective, with values from closed formulas."""
    _join(rank, world_size, port)
    n, total = world_size, world_size * (world_size - 1) // 2
    expected = {
        "SUM": total + n,
        "PRODUCT": np.prod(np.arange(1, n + 1)),
        "MIN": 1,
        "MAX": n,
        "AVG": (total + n) / n,
    }
    for op, value in expected.items():
        t = torch.full((3,), rank + 1.0)
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        assert t.tolist() == [value] * 3, (op, t)
    large = torch.arange(50_001.0) * (rank + 1)
    dist.all_reduce(large)
    assert torch.equal(large, torch.arange(50_001.0) * (total + n))
    parts = [torch.zeros(2) for _ in range(n)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    assert [p.tolist() for p in parts] == [[float(r)] * 2 for r in range(n)]
    dist.gather(
        torch.tensor([rank]), received := [torch.tensor([0]) for _ in range(n)] if rank == 0 else None, 0
    )
    assert rank != 0 or [int(t) for t in received] == list(range(n))
    one = torch.zeros(1)
    dist.scatter(one, [torch.tensor([10.0 + r]) for r in range(n)] if rank == 1 else None, 1)
    assert one.item() == 10 + rank
    dist.reduce_scatter(one, [torch.tensor([float(r + rank)]) for r in range(n)])
    assert one.item() == n * rank + total
    dist.all_to_all(
        parts := [torch.zeros(1) for _ in range(n)], [torch.tensor([10.0 * rank + r]) for r in range(n)]
    )
    assert [p.item() for p in parts] == [10.0 * r + rank for r in range(n)]
    dist.broadcast(one := torch.tensor([float(rank)]), n - 1)
    assert one.item() == n - 1
    whole = torch.zeros(n)
    dist.all_gather_into_tensor(whole, torch.tensor([float(rank)]))
    assert whole.tolist() == [float(r) for r in range(n)]
    objects: list = [None] * n
    dist.all_gather_object(objects, {"rank": "x" * rank})
    assert objects == [{"rank": "x" * r} for r in range(n)]
    right, left = (rank + 1) % n, (rank - 1) % n
    incoming = torch.zeros(1)
    work = dist.irecv(incoming, left, tag=7)
    dist.send(torch.tensor([float(rank)]), right, tag=7)
    work.wait()
    assert incoming.item() == left
    works = [dist.all_reduce(torch.ones(5), async_op=True) for _ in range(5)]
    assert all(w.wait() for w in works)
    assert works[0].result()[0].tolist() == [float(n)] * 5
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(one := torch.ones(1), group=pair)
        assert one.item() == 2
    else:
        assert pair == dist.GroupMember.NON_GROUP_MEMBER
    dist.barrier()
    dist.destroy_process_group()


def train(rank: int, world_size: int, port: int, folder: str) -> None:
    """Two steps of data-parallel training; rank 0 writes the parameters."""
    _join(rank, world_size, port)
    torch.manual_seed(rank)  # rank 0's values count
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    start = [p.detach().clone() for p in model.parameters()]
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.0001)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
    data = torch.linspace(-1, 1, world_size * 3 * 4).reshape(world_size, 3, 4)
    for _ in range(2):
        optimizer.zero_grad()
        parallel(data[rank]).square().mean().backward()
        optimizer.step()
    np.savez(Path(folder) / f"rank{rank}.npz", *(p.detach().numpy() for p in model.parameters()))
    np.savez(Path(folder) / f"start{rank}.npz", *(p.numpy() for p in start))
    dist.destroy_process_group()


def unused_parameters(rank: int, world_size: int, port: int, folder: str) -> None:
    """A parameter that only rank 0 uses, and one that nobody does."""
    _join(rank, world_size, port)
    model = torch.nn.ModuleList([torch.nn.Linear(2, 1, bias=False) for _ in range(3)])

    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = self.parts[0](x)
            return out + self.parts[1](x) if rank == 0 else out

    parallel = DistributedDataParallel(Branches(), find_unused_parameters=True)
    for _ in range(2):
        parallel.zero_grad()
        parallel(torch.ones(1, 2)).sum().backward()
        assert model[0].weight.grad.tolist() == [[1.0, 1.0]]
        np.testing.assert_allclose(model[1].weight.grad.numpy(), [[1.0 / world_size] * 2], rtol=1e-6)
        assert model[2].weight.grad is None
    strict = DistributedDataParallel(Branches())
    strict(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="did not receive grad"):
        strict(torch.ones(1, 2))
    dist.destroy_process_group()


def _averaged_training(model: torch.nn.Module, data: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    """Three steps on the data of all ranks in this process: what data-parallel training must give."""
    for _ in range(3):
        optimizer.zero_grad()
        model(data.flatten(0, 1)).square().mean().backward()
        optimizer.step()


def _network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def sharded_optimizer(rank: int, world_size: int, port: int, folder: str) -> None:
    """ZeroRedundancyOptimizer updates as one optimizer does, keeps a share of the state, saves all of it."""
    from mindtorch_v2.distributed.optim import ZeroRedundancyOptimizer

    _join(rank, world_size, port)
    data = torch.linspace(-1, 1, world_size * 3 * 4).reshape(world_size, 3, 4)
    plain, model = _network(), _network()
    reference = torch.optim.Adam(plain.parameters(), lr=0.05)
    _averaged_training(plain, data, reference)
    parallel = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.Adam, lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        parallel(data[rank]).square().mean().backward()
        optimizer.step()
    for parameter, expected in zip(model.parameters(), plain.parameters()):
        np.testing.assert_allclose(
            parameter.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6
        )
    assert 0 < len(optimizer.optim.state) < 4
    held = torch.tensor(len(optimizer.optim.state))
    dist.all_reduce(held)
    assert held == 4
    optimizer.consolidate_state_dict(to=1)
    if rank == 1:
        saved = optimizer.state_dict()
        wanted = reference.state_dict()
        assert saved["state"].keys() == wanted["state"].keys()
        for index, state in wanted["state"].items():
            average = saved["state"][index]["exp_avg"].numpy()
            np.testing.assert_allclose(average, state["exp_avg"].numpy(), rtol=1e-4, atol=1e-6)
    else:
        with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
            optimizer.state_dict()
    loaded = [optimizer.state_dict() if rank == 1 else None]
    dist.broadcast_object_list(loaded, 1)
    other = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    other.load_state_dict(loaded[0])
    assert len(other.optim.state) == len(optimizer.optim.state)
    dist.destroy_process_group()


def communication_hooks(rank: int, world_size: int, port: int, folder: str) -> None:
    """Gradients after each hook are the average of all ranks, as exact as the dtype that the hook sends."""
    from mindtorch_v2.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks

    _join(rank, world_size, port)
    data = torch.linspace(-1, 1, world_size * 3 * 4).reshape(world_size, 3, 4)
    plain = _network()
    plain(data.flatten(0, 1)).square().mean().backward()

    def doubled(state: list, bucket: dist.GradBucket) -> torch.futures.Future:
        state.append([tuple(p.shape) for p in bucket.parameters()])
        return hooks.allreduce_hook(None, bucket).then(lambda done: done.value() * 2)

    seen: list = []
    for hook, state, factor, tolerance in (
        (hooks.allreduce_hook, None, 1, 1e-5),
        (hooks.fp16_compress_hook, None, 1, 2e-3),
        (hooks.bf16_compress_hook, None, 1, 2e-2),
        (hooks.fp16_compress_wrapper(hooks.allreduce_hook), None, 1, 2e-3),
        (hooks.bf16_compress_wrapper(hooks.allreduce_hook), None, 1, 2e-2),
        (doubled, seen, 2, 1e-5),
    ):
        model = _network()
        parallel = DistributedDataParallel(model)
        parallel.register_comm_hook(state, hook)
        with pytest.raises(RuntimeError, match="can only be called once"):
            parallel.register_comm_hook(None, hook)
        parallel(data[rank]).square().mean().backward()
        for parameter, expected in zip(model.parameters(), plain.parameters()):
            assert parameter.grad.dtype is torch.float32
            np.testing.assert_allclose(
                parameter.grad.numpy(), factor * expected.grad.numpy(), rtol=tolerance, atol=tolerance
            )
    assert sorted(shape for shapes in seen for shape in shapes) == [(2,), (2, 8), (8,), (8, 4)]
    dist.destroy_process_group()


def lost_peer(rank: int, world_size: int, port: int, folder: str) -> None:
    """Rank 1 ends without a word; a third rank never sends: the others get errors, not a hang."""
    _join(rank, world_size, port)
    if rank == 1:
        os._exit(0)
    with pytest.raises(RuntimeError, match="closed by peer"):
        dist.recv(torch.zeros(1), 1)
    dist.group.WORLD.set_timeout(timedelta(seconds=0.5))
    with pytest.raises(RuntimeError, match="timed out"):
        dist.recv(torch.zeros(1), 2 if rank == 0 else 0)
    (Path(folder) / f"done{rank}").touch()
    until = time.monotonic() + _LIMIT.total_seconds()
    while not all((Path(folder) / f"done{r}").exists() for r in (0, 2)):
        assert time.monotonic() < until, "the other rank has not come to its end"
        time.sleep(0.01)


def profiled(rank: int, world_size: int, port: int, folder: str) -> None:
    """A trace file per rank."""
    _join(rank, world_size, port)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    with torch.profiler.profile(record_shapes=True) as profile:
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            profile.step()
    profile.export_chrome_trace(str(Path(folder) / f"rank{rank}.json"))
    dist.destroy_process_group()


def saved_together(rank: int, world_size: int, port: int, folder: str) -> None:
    """A checkpoint of all ranks: what all have is written once; an error is raised on all."""
    _join(rank, world_size, port)
    path = f"{folder}/checkpoint"
    state = {"a": torch.arange(6.0), "b": torch.ones(2, 2), "c": torch.zeros(3), "rank": rank}
    own = {f"own{rank}": torch.full((2,), float(rank)), f"object{rank}": rank}
    metadata = checkpoint.save({**state, **own}, checkpoint_id=path)
    files = {index.fqn: place.relative_path for index, place in metadata.storage_data.items()}
    # the rank with the fewest bytes so far takes the next entry: 24, 16 and 12 bytes, then objects
    assert [files[name] for name in ("a", "b", "c")] == [f"__{r}_0.distcp" for r in range(3)]
    assert all(files[f"own{r}"] == files[f"object{r}"] == f"__{r}_0.distcp" for r in range(world_size))
    loaded = {"a": torch.zeros(6), "rank": None, f"own{rank}": torch.zeros(2)}
    checkpoint.load(loaded, checkpoint_id=path)
    assert loaded["a"].tolist() == list(range(6))
    assert loaded["rank"] in range(world_size)
    assert loaded[f"own{rank}"].tolist() == [rank, rank]
    with pytest.raises(checkpoint.CheckpointException) as error:
        checkpoint.load({"missing" if rank == 1 else "a": torch.zeros(6)}, checkpoint_id=path)
    assert list(error.value.failures) == [1]
    with pytest.raises(NotImplementedError, match="needs a process_group of its own"):
        checkpoint.async_save(state, checkpoint_id=f"{folder}/async")
    future = checkpoint.async_save(state, checkpoint_id=f"{folder}/async", process_group=dist.new_group())
    dist.all_reduce(total := torch.ones(1))
    assert (total.item(), sorted(future.result().state_dict_metadata)) == (
        world_size,
        ["a", "b", "c", "rank"],
    )
    dist.destroy_process_group()


PROGRAMS = (
    collectives,
    train,
    saved_together,
    unused_parameters,
    profiled,
    sharded_optimizer,
    communication_hooks,
    lost_peer,
)  # rank 1 ends in the last one


def all_programs(rank: int, world_size: int, ports: list[int], folder: str) -> None:
    """Run the programs one after the other, each with a group of its own; an error is written to a file."""
    for program, port in zip(PROGRAMS, ports):
        try:
            program(rank, world_size, port, folder)
        except Exception:
            (Path(folder) / f"{program.__name__}.{rank}.error").write_text(traceback.format_exc())
            if dist.is_initialized():
                dist.destroy_process_group()
