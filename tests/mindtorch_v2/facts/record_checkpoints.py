"""Write checkpoints with real torch: `python record_checkpoints.py` fills checkpoints/.

`CONTENTS` makes the objects; tests make the same ones with this package and compare.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "checkpoints"
DTYPES = (
    "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "complex64 complex128"
)


def network(torch: Any) -> Any:
    """A small network with known weights."""
    nn = torch.nn
    model = nn.Sequential(
        OrderedDict(
            first=nn.Linear(3, 4),
            norm=nn.BatchNorm1d(4),
            act=nn.ReLU(),
            tail=nn.Sequential(nn.Dropout(0.1), nn.Linear(4, 2, bias=False)),
        )
    )
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 8 - 0.5)
    return model


def trained(torch: Any) -> tuple[Any, Any, Any]:
    """The network after two steps of Adam, with its optimiser and scheduler."""
    model = network(torch).eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


def _dtypes(torch: Any) -> Any:
    return {name: torch.arange(5).to(getattr(torch, name)) for name in DTYPES.split()}


def _views(torch: Any) -> Any:
    base = torch.arange(12.0).reshape(3, 4)
    views = {"rows": base[1:], "column": base[:, 1], "turned": base.t(), "wide": base[0].expand(2, 4)}
    return {"base": base, **views}


def _shapes(torch: Any) -> Any:
    return [torch.tensor(2.5), torch.empty(0), torch.empty(0, 3), torch.ones(1, 2, 1), torch.zeros(2, 0)]


def _objects(torch: Any) -> Any:
    return {
        "size": torch.Size([2, 3]),
        "device": torch.device("cpu"),
        "cuda": torch.device("cuda:1"),
        "dtype": [torch.float32, torch.bool, torch.bfloat16],
        "layout": torch.strided,
        "plain": [None, True, -1, 1 << 70, 1.5, 2j, "text", b"bytes", bytearray(b"array"), (1, (2,)), {3}],
        "ordered": OrderedDict(a=1, b=[2]),
        "counted": Counter("aab"),
    }


def _attributes(torch: Any) -> Any:
    marked, parameter = torch.ones(2), torch.nn.Parameter(torch.arange(3.0))
    marked.note, marked.scale = "kept", 3
    parameter.tag = "kept"
    return [marked, parameter]


def _gradients(torch: Any) -> Any:
    return [
        torch.ones(2, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        torch.ones(2, requires_grad=True) * 2,
    ]


def _state(torch: Any) -> Any:
    parts = zip(("model", "optimizer", "scheduler"), trained(torch))
    return {**{name: part.state_dict() for name, part in parts}, "epoch": 2}


# what each file holds, by the file's name
CONTENTS = {
    "dtypes": _dtypes,
    "views": _views,
    "shapes": _shapes,
    "objects": _objects,
    "attributes": _attributes,
    "gradients": _gradients,
    "state": _state,
    "module": network,
}


def lazy_views(torch: Any) -> dict[str, Any]:
    """Tensors that torch stores by a mark: conjugates and negatives."""
    return {"conj": torch.tensor([1 + 2j, 3 - 4j]).conj(), "neg": torch.tensor([1 + 2j, 3 - 4j]).conj().imag}


def main() -> None:
    """Write the files."""
    import torch

    FOLDER.mkdir(exist_ok=True)
    for name, content in CONTENTS.items():
        torch.save(content(torch), FOLDER / f"{name}.pt")
    old = {name: CONTENTS[name](torch) for name in ("views", "gradients")}
    torch.save(old, FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(lazy_views(torch), FOLDER / "lazy_views.pt")
    torch.save(torch.eye(3).to_sparse(), FOLDER / "sparse.pt")
    torch.save(torch.Generator().manual_seed(7), FOLDER / "generator.pt")
    print(sum(path.stat().st_size for path in FOLDER.iterdir()), "bytes")


if __name__ == "__main__":
    main()
