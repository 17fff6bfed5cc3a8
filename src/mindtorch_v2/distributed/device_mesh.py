"""torch.distributed.device_mesh: the ranks of a job as an array, with a process group along each dimension."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from . import distributed_c10d as c10d

__all__ = ["init_device_mesh", "DeviceMesh"]


class DeviceMesh:
    """An array of ranks. `mesh["name"]` is the part of it along one named dimension that this process is in."""

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        _init_backend: bool = True,
        _groups: list[Any] | None = None,
    ) -> None:
        if device_type != "cpu":
            raise RuntimeError(f"DeviceMesh: this library computes on the CPU, not on {device_type!r}")
        self.device_type = device_type
        self.mesh = torch.as_tensor(mesh, dtype=torch.int32)
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._groups = _groups if _groups is not None else self._form_groups()

    def _form_groups(self) -> list[Any]:
        """A group along each dimension; all processes form all groups, in the same order."""
        if not c10d.is_initialized():
            c10d.init_process_group("gloo")
        if self.mesh.ndim == 1 and self.mesh.numel() == c10d.get_world_size():
            return [c10d._get_default_group()]
        own = []
        for dim in range(self.mesh.ndim):
            rows = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            group, _ = c10d.new_subgroups_by_enumeration(rows)
            own.append(group)
        return own

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        """The array's number of dimensions."""
        return self.mesh.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, along one dimension or in all."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(
                    f"Invalid mesh_dim_name {mesh_dim}. Valid mesh_dim_names are {self.mesh_dim_names}"
                )
            return self.mesh_dim_names.index(mesh_dim)  # type: ignore[union-attr]
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group along a dimension."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """This process' rank in the job."""
        return c10d.get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process' rank along a dimension."""
        return c10d.get_rank(self.get_group(mesh_dim))

    def get_coordinate(self) -> list[int] | None:
        """This process' place in the array."""
        places = (self.mesh == self.get_rank()).nonzero().tolist()
        return places[0] if places else None

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else mesh_dim_names
        dims = [self._dim(name) for name in names]
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError("This process is not part of the mesh")
        index = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        return DeviceMesh(
            self.device_type,
            self.mesh[index],
            mesh_dim_names=tuple(names),
            _groups=[self._groups[d] for d in dims],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self.mesh.tolist() == other.mesh.tolist() and self.mesh_dim_names == other.mesh_dim_names

    def __hash__(self) -> int:
        return hash((self.device_type, tuple(self.mesh.flatten().tolist()), self.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        if self.mesh_dim_names:
            dims = ", ".join(f"{n}={s}" for n, s in zip(self.mesh_dim_names, self.shape))
            return f"DeviceMesh(({dims}), '{self.device_type}')"
        return f"DeviceMesh({self.mesh.tolist()}, '{self.device_type}')"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """All ranks of the job as an array of this shape."""
    if backend_override:
        raise NotImplementedError(
            "init_device_mesh: backend_override is not supported; this library has gloo"
        )
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(
            "Each mesh_dim_name must be unique.",
            f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}",
        )
    if mesh_dim_names is not None and len(mesh_shape) != len(mesh_dim_names):
        raise RuntimeError("mesh_shape and mesh_dim_names should have same length!")
    if not c10d.is_initialized():
        c10d.init_process_group("gloo")
    n_ranks = math.prod(mesh_shape)
    if n_ranks > c10d.get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {c10d.get_world_size()}, but found {n_ranks} ranks!"
        )
    mesh = torch.arange(n_ranks, dtype=torch.int32).view(mesh_shape)
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
