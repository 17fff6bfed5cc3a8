"""torch.distributed.checkpoint in one process: folders, plans, errors, and state dicts by names of parameters."""

from __future__ import annotations

import os
import pickletools
import tempfile
import warnings
from pathlib import Path
from typing import Any


def _quiet(function: Any) -> Any:
    """The function without the warning that there is no group."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return call


def _checkpoint(torch: Any) -> Any:
    import importlib

    return importlib.import_module(f"{torch.__name__}.distributed.checkpoint")


def _trained(torch: Any) -> tuple[Any, Any]:
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(float(parameter.numel())).view_as(parameter))
    optimizer = torch.optim.Adam([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.5}], lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def a_folder(torch: Any, show: Any) -> None:
    dcp = _checkpoint(torch)
    state = {
        "a": torch.arange(6.0).view(2, 3).to(torch.bfloat16),
        "view": torch.arange(8)[2:5],
        "scalar": torch.tensor(2.5),
        "nested": {1: {"x": "text"}, "empty": {}},
        "lists": [[1, 2], [3]],
        "opened": [torch.ones(1), {"y": (1, 2)}, []],
    }
    with tempfile.TemporaryDirectory() as folder:
        metadata = _quiet(dcp.save)(state, checkpoint_id=folder)
        show(sorted(os.listdir(folder)), metadata.version, metadata.planner_data)
        for name, entry in metadata.state_dict_metadata.items():
            show(name, entry)
        for index, place in metadata.storage_data.items():
            show(index, place.relative_path)
        opcodes = list(pickletools.genops((Path(folder) / ".metadata").read_bytes()))
        modules = {argument for _, argument, _ in opcodes if str(argument).startswith("torch")}
        show(opcodes[0][1], sorted(modules))
        target = {
            "a": torch.zeros(2, 3),
            "view": torch.zeros(3, dtype=torch.int64),
            "scalar": torch.zeros(()),
            "nested": {1: {"x": ""}},
            "lists": None,
            "opened": [torch.zeros(1), {"y": None}, None],
        }
        kept = target["a"]
        _quiet(dcp.load)(target, checkpoint_id=folder)
        show(target, target["a"] is kept)


def files(torch: Any, show: Any) -> None:
    dcp = _checkpoint(torch)
    state = {"a": torch.ones(3), "b": torch.ones(4), "c": 1}
    for options in ({"single_file_per_rank": False}, {"thread_count": 2}, {"sync_files": False}):
        with tempfile.TemporaryDirectory() as folder:
            metadata = _quiet(dcp.save)(state, storage_writer=dcp.FileSystemWriter(folder, **options))
            show(sorted(os.listdir(folder)))
            show(sorted((index.fqn, place.relative_path) for index, place in metadata.storage_data.items()))


def errors(torch: Any, show: Any) -> None:
    dcp = _checkpoint(torch)

    def failure(call: Any, *args: Any, **kwargs: Any) -> None:
        try:
            _quiet(call)(*args, **kwargs)
        except dcp.CheckpointException as error:
            for rank, (inner, _) in error.failures.items():
                show(type(error).__name__, rank, type(inner).__name__, str(inner).split(";")[0].split("[")[0])

    show.raises(_quiet(dcp.save), {"b": 1})
    show.raises(_quiet(dcp.load), {"b": 1})
    with tempfile.TemporaryDirectory() as folder:
        _quiet(dcp.save)({"a": torch.ones(2, 3)}, checkpoint_id=folder)
        failure(dcp.load, {"a": torch.zeros(3, 3)}, checkpoint_id=folder)
        failure(dcp.load, {"b": torch.zeros(1)}, checkpoint_id=folder)
        failure(dcp.load, {"b": 1}, checkpoint_id=folder)
        failure(dcp.load, {"b": 1}, checkpoint_id=f"{folder}/nowhere")
        failure(dcp.save, {"a": 1}, storage_writer=dcp.FileSystemWriter(folder, overwrite=False))
        partial = {"a": torch.zeros(2, 3), "b": 5}
        planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
        _quiet(dcp.load)(partial, checkpoint_id=folder, planner=planner)
        show(partial)


def objects_with_a_state_dict(torch: Any, show: Any) -> None:
    dcp = _checkpoint(torch)

    class Application:
        def __init__(self, value: float) -> None:
            self.values = torch.full((2,), value)
            self.loaded: Any = None

        def state_dict(self) -> dict[str, Any]:
            return {"values": self.values, "count": 7}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self.loaded = state_dict

    with tempfile.TemporaryDirectory() as folder:
        _quiet(dcp.save)({"application": Application(1.0)}, checkpoint_id=folder)
        other = Application(0.0)
        _quiet(dcp.load)({"application": other}, checkpoint_id=folder)
        show(other.loaded, other.values)
        metadata = _quiet(dcp.async_save)({"a": torch.ones(2)}, checkpoint_id=f"{folder}/async").result()
        show(list(metadata.state_dict_metadata), sorted(os.listdir(f"{folder}/async")))


def one_file(torch: Any, show: Any) -> None:
    import importlib

    dcp = _checkpoint(torch)
    formats = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.format_utils")
    state = {"a": torch.ones(2), "nested": {"b": [torch.zeros(1), {"c": 3}]}}
    with tempfile.TemporaryDirectory() as folder:
        _quiet(dcp.save)(state, checkpoint_id=f"{folder}/first")
        formats.dcp_to_torch_save(f"{folder}/first", f"{folder}/file.pt")
        show(torch.load(f"{folder}/file.pt"))
        formats.torch_save_to_dcp(f"{folder}/file.pt", f"{folder}/second")
        show(sorted(os.listdir(f"{folder}/second")))


def state_dicts_by_names(torch: Any, show: Any) -> None:
    import importlib

    module = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    model, optimizer = _trained(torch)
    states, optimizer_states = module.get_state_dict(model, optimizer)
    show(dict(states), optimizer_states)
    flat = module.StateDictOptions(flatten_optimizer_state_dict=True)
    show(module.get_optimizer_state_dict(model, optimizer, options=flat))
    other, fresh = torch.nn.Linear(3, 2), None
    fresh = torch.optim.Adam([{"params": [other.weight]}, {"params": [other.bias]}])
    show(module.set_state_dict(other, fresh, model_state_dict=states, optim_state_dict=optimizer_states))
    show(other.state_dict(), fresh.state_dict())
    module.set_optimizer_state_dict(
        other, fresh, module.get_optimizer_state_dict(model, optimizer, options=flat), options=flat
    )
    show(fresh.state_dict()["param_groups"])
    show.raises(module.set_model_state_dict, other, {"weight": torch.ones(2, 3)})
    lax = module.StateDictOptions(strict=False)
    show(module.set_model_state_dict(other, {"weight": torch.ones(2, 3)}, options=lax))
    other.bias.requires_grad_(False)
    show(list(module.get_model_state_dict(other, options=module.StateDictOptions(ignore_frozen_params=True))))
    unused = torch.optim.Adam(torch.nn.Linear(1, 1).parameters())
    show(unused.state_dict()["state"])
    last = torch.nn.Linear(1, 1)
    initial = torch.optim.Adam(last.parameters(), lr=0.25)
    show(
        module.get_optimizer_state_dict(last, initial)["state"],
        last.weight.grad,
        initial.param_groups[0]["lr"],
    )


def everything_in_a_folder(torch: Any, show: Any) -> None:
    import importlib

    dcp = _checkpoint(torch)
    loader, formats = (
        importlib.import_module(f"{torch.__name__}.distributed.checkpoint.{name}")
        for name in ("state_dict_loader", "format_utils")
    )
    with tempfile.TemporaryDirectory() as folder:
        _quiet(dcp.save)({"a": {"b": torch.ones(2), "c": 3}, "d": torch.zeros(1)}, checkpoint_id=folder)
        for keys in (None, {"a"}, {"a.b"}):
            state: dict[str, Any] = {}
            loader._load_state_dict(
                state,
                storage_reader=dcp.FileSystemReader(folder),
                planner=formats._EmptyStateDictLoadPlanner(keys=keys),
                no_dist=True,
            )
            show(state)
