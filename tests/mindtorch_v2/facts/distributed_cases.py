"""torch.distributed in one process: groups, collectives, stores and what is refused."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from free_ports import free_port


def without_a_group(torch: Any, show: Any) -> None:
    dist = torch.distributed
    show(
        dist.is_available(),
        dist.is_initialized(),
        dist.is_gloo_available(),
        dist.is_nccl_available(),
        dist.group.WORLD,
    )
    for call in (
        dist.get_rank,
        dist.get_world_size,
        dist.get_backend,
        dist.barrier,
        dist.new_group,
        dist.destroy_process_group,
    ):
        show.raises(call)
    show.raises(dist.all_reduce, torch.ones(1))
    show.raises(torch.nn.parallel.DistributedDataParallel, torch.nn.Linear(1, 1))
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        os.environ.pop(name, None)
    show.raises(dist.init_process_group, "gloo")
    show.raises(dist.init_process_group, "gloo", rank=0, world_size=1)
    show.raises(dist.init_process_group, "gloo", init_method="tcp://127.0.0.1:1")
    show.raises(dist.init_process_group, "gloo", init_method="foo://bar", rank=0, world_size=1)


def one_process(torch: Any, show: Any) -> None:
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
    try:
        _collectives(torch, show)
    finally:
        dist.destroy_process_group()
    show(dist.is_initialized())


def _collectives(torch: Any, show: Any) -> None:
    dist = torch.distributed
    show.raises(dist.init_process_group, "gloo", init_method="tcp://127.0.0.1:1", rank=0, world_size=1)
    show(
        dist.is_initialized(),
        dist.get_rank(),
        dist.get_world_size(),
        dist.get_backend(),
        dist.get_process_group_ranks(dist.group.WORLD),
    )
    t, other = torch.arange(3.0), [torch.zeros(3)]
    show(dist.all_reduce(t), t)
    work = dist.all_reduce(t, async_op=True)
    show(work.wait(), work.is_completed(), work.get_future().wait())
    for bad in (3, [t]):
        show.raises(dist.all_reduce, bad)
    show(dist.all_gather(other, t), other)
    show.raises(dist.all_gather, [], t)
    show.raises(dist.all_gather, [torch.zeros(2)], t)
    show.raises(dist.all_gather, [torch.zeros(3, dtype=torch.int32)], t)
    show(
        dist.broadcast(t, 0),
        dist.reduce(t, 0),
        dist.gather(t, other, 0),
        dist.scatter(t, [torch.ones(3)], 0),
        t,
    )
    for call, arguments in (
        (dist.broadcast, (t, 1)), (dist.broadcast, (t,)), (dist.reduce, (t, 3)), (dist.gather, (t, None, 0)), (dist.scatter, (t, None, 0)),
        (dist.send, (t, 0)),
    ):  # fmt: skip
        show.raises(call, *arguments)
    show(
        dist.reduce_scatter(t, [torch.full((3,), 2.0)]), t, dist.all_to_all(other, [t]), other, dist.barrier()
    )
    objects: list[Any] = [None]
    dist.all_gather_object(objects, {"a": 1})
    show(objects)
    dist.broadcast_object_list(objects, 0)
    dist.gather_object(5, objects, 0)
    show(objects)
    dist.scatter_object_list(objects, [7], 0)
    show(objects)
    group = dist.new_group([0])
    show(
        group.size(),
        group.rank(),
        dist.get_rank(group),
        dist.get_group_rank(group, 0),
        dist.get_global_rank(group, 0),
    )
    module = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    show(list(module.state_dict()), module)
    module(torch.ones(1, 2)).sum().backward()
    show(module.module.weight.grad)
    with module.no_sync():
        module(torch.ones(1, 2)).sum().backward()
    show(module.module.weight.grad)
    show.raises(torch.nn.parallel.DistributedDataParallel, torch.nn.ReLU())
    sampler = torch.utils.data.distributed.DistributedSampler(list(range(5)), shuffle=False)
    show(list(sampler), len(sampler))
    mesh = dist.init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
    show(mesh.size(), mesh.get_local_rank(), mesh.mesh.tolist(), mesh.mesh_dim_names)


def stores(torch: Any, show: Any) -> None:
    dist = torch.distributed
    store = dist.HashStore()
    store.set("a", "b")
    show(
        store.get("a"),
        store.add("n", 2),
        store.add("n", 3),
        store.get("n"),
        store.num_keys(),
        store.check(["a"]),
        store.timeout,
    )
    show(store.delete_key("a"), store.check(["a"]))
    store.set_timeout(timedelta(seconds=0.05))
    try:
        store.get("missing")
    except Exception as error:
        show(type(error).__name__)
    limit = timedelta(seconds=300)
    server = dist.TCPStore("127.0.0.1", 0, 1, True, timeout=limit)
    client = dist.TCPStore("127.0.0.1", server.port, 1, False, timeout=limit, wait_for_workers=False)
    client.set("k", b"v")
    show(server.get("k"), server.multi_get(["k", "k"]), server.host)
    server.append("k", "w")
    show(
        client.get("k"),
        client.compare_set("k", "vw", "new"),
        client.compare_set("k", "vw", "newer"),
        client.check(["k", "zz"]),
    )
    prefixed = dist.PrefixStore("pre", server)
    prefixed.set("x", "1")
    show(client.get("pre/x"), prefixed.get("x"), prefixed.add("count", 4))
