"""Checkpoints go both ways between torch and this package; no file runs code or takes absurd memory."""

from __future__ import annotations

import errno
import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import record_checkpoints
import recorded_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from python_texts import RECORDED_WITH

import mindtorch_v2 as torch
from mindtorch_v2 import _archive

CHECKPOINTS = record_checkpoints.FOLDER
HARMLESS = {"dtypes", "views", "shapes", "objects", "attributes", "gradients", "state"}


def _saved(obj: Any, **kwargs: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **kwargs)
    file.seek(0)
    return file


def _record(file: Any, name: str) -> bytes:
    with zipfile.ZipFile(file) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith("/" + name)))


def _globals(pickled: bytes) -> set[str]:
    return {str(argument) for code, argument, _ in pickletools.genops(pickled) if code.name == "GLOBAL"}


def _instructions(pickled: bytes) -> list[Any]:
    """What a pickle says. Which equal texts are one object, and are written once, differs between Pythons."""
    if sys.version_info[:2] == RECORDED_WITH:
        return [pickled]
    said, memo = [], {}
    for code, argument, _ in pickletools.genops(pickled):
        if "PUT" in code.name:
            memo[argument] = said[-1]
        else:
            said.append(memo.get(argument) if "GET" in code.name else (code.name, argument))
    return said


def _plain(value: Any) -> Any:
    """A value as something that == compares, tensors with all that a file keeps of them."""
    if hasattr(value, "state_dict"):
        return [type(value).__name__, repr(value), _plain(value.state_dict()), value.training]
    if isinstance(value, dict):
        return [type(value).__name__, {key: _plain(v) for key, v in value.items()}]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [_plain(v) for v in value]]
    if hasattr(value, "untyped_storage"):
        kept = {k: v for k, v in vars(value).items() if not k.startswith("_")}
        place = (tuple(value.shape), value.stride(), value.storage_offset(), value.requires_grad)
        return [type(value).__name__, str(value.dtype), place, str(value.detach()), kept]
    return repr(value)


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("serialization_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_a_file_of_torch_loads_with_its_contents(name: str) -> None:
    expected = record_checkpoints.CONTENTS[name](torch)
    assert _plain(torch.load(CHECKPOINTS / f"{name}.pt")) == _plain(expected)
    assert _plain(torch.load(CHECKPOINTS / f"{name}.pt", mmap=True)) == _plain(expected)
    assert _plain(torch.load(CHECKPOINTS / f"{name}.pt", weights_only=False)) == _plain(expected)


@pytest.mark.parametrize("name", sorted(HARMLESS | {"module"}))
def test_saving_writes_the_pickle_and_the_bytes_that_torch_writes(name: str) -> None:
    ours = _saved(record_checkpoints.CONTENTS[name](torch))
    theirs = CHECKPOINTS / f"{name}.pt"
    assert _globals(_record(ours, "data.pkl")) == _globals(_record(theirs, "data.pkl"))
    assert _instructions(_record(ours, "data.pkl")) == _instructions(_record(theirs, "data.pkl"))
    with zipfile.ZipFile(ours) as a, zipfile.ZipFile(theirs) as b:
        keys = [n.partition("/")[2] for n in a.namelist() if "/data/" in n]
        assert keys == [n.partition("/")[2] for n in b.namelist() if "/data/" in n]
        for key in keys:
            left, right = a.read(f"archive/{key}"), b.read(f"{name}/{key}")
            # two training steps may round differently in the last place
            assert len(left) == len(right) if name == "state" else left == right


def test_a_whole_module_of_torch_loads_and_computes() -> None:
    model = torch.load(CHECKPOINTS / "module.pt", weights_only=False)
    expected = record_checkpoints.network(torch)
    assert type(model) is torch.nn.Sequential
    assert _plain(model) == _plain(expected)
    x = torch.ones(2, 3)
    assert torch.equal(model.eval()(x), expected.eval()(x))


def test_views_of_a_file_share_their_memory() -> None:
    views = torch.load(CHECKPOINTS / "views.pt")
    views["base"].fill_(7)
    assert all(bool((view == 7).all()) for view in views.values())
    assert len({view.untyped_storage().data_ptr() for view in views.values()}) == 1


def test_a_legacy_file_of_torch_loads() -> None:
    expected = {name: record_checkpoints.CONTENTS[name](torch) for name in ("views", "gradients")}
    assert _plain(torch.load(CHECKPOINTS / "legacy.pt")) == _plain(expected)
    assert _plain(torch.load(_saved(expected, _use_new_zipfile_serialization=False))) == _plain(expected)


def test_conjugates_and_negatives_of_a_file_are_computed() -> None:
    lazy = torch.load(CHECKPOINTS / "lazy_views.pt")
    assert lazy["conj"].tolist() == [1 - 2j, 3 + 4j]
    assert lazy["neg"].tolist() == [-2.0, 4.0]


def test_a_sparse_tensor_of_torch_loads() -> None:
    assert torch.load(CHECKPOINTS / "sparse.pt").to_dense().tolist() == np.eye(3).tolist()


def test_a_generator_of_torch_loads_with_its_state() -> None:
    generator = torch.load(CHECKPOINTS / "generator.pt", weights_only=False)
    assert torch.equal(generator.get_state(), torch.Generator().manual_seed(7).get_state())


def test_an_optimiser_goes_on_from_a_checkpoint_of_torch() -> None:
    model, optimizer, scheduler = record_checkpoints.trained(torch)
    state = torch.load(CHECKPOINTS / "state.pt")
    again = record_checkpoints.network(torch).eval()
    again.load_state_dict(state["model"])
    other = torch.optim.Adam(again.parameters(), lr=1.0)
    other.load_state_dict(state["optimizer"])
    for net, opt in ((model, optimizer), (again, other)):
        opt.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        opt.step()
    torch.testing.assert_close(list(model.parameters()), list(again.parameters()))
    assert scheduler.state_dict()["last_epoch"] == state["scheduler"]["last_epoch"]


def test_records_are_aligned_and_stored_with_checksums() -> None:
    file = _saved([torch.arange(float(n)) for n in range(1, 9)])
    raw = file.getvalue()
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            name, extra = struct.unpack("<HH", raw[entry.header_offset + 26 : entry.header_offset + 30])
            assert (entry.header_offset + 30 + name + extra) % 64 == 0
            assert entry.compress_type == zipfile.ZIP_STORED


def test_a_string_that_looks_like_a_name_is_left_alone() -> None:
    trap = "cmindtorch_v2.nn.modules.linear\nLinear\n"
    content = {"text": trap, "size": torch.Size([1]), trap: torch.nn.Linear(1, 1)}
    for protocol in (2, 4):
        file = _saved(content, pickle_protocol=protocol)
        assert not any("mindtorch" in name for name in _globals(_record(file, "data.pkl")))
        loaded = torch.load(file, weights_only=False)
        assert list(loaded) == ["text", "size", trap]
        assert loaded["text"] == trap


def test_mapped_memory_does_not_write_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(4), path)
    torch.load(path, mmap=True).fill_(5)
    assert torch.load(path).tolist() == [0.0] * 4


# ---------------------------------------------------------------------------------------- hostile files


def _hostile(pickled: bytes, records: dict[str, bytes] | None = None) -> io.BytesIO:
    file = io.BytesIO()
    writer = _archive.Writer(file.write, "archive")
    writer.add("data.pkl", b"\x80\x02" + pickled + b".")
    writer.add("version", b"3\n")
    for name, data in (records or {}).items():
        writer.add(name, data)
    writer.close()
    file.seek(0)
    return file


class _Boom:
    """Unpickling this runs code."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('code of a file was run')",)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_code_in_a_pickle_is_never_run() -> None:
    for protocol in range(6):
        for legacy in (False, True):
            kwargs = {"pickle_protocol": protocol, "_use_new_zipfile_serialization": not legacy}
            file = _saved({"a": [_Boom()]}, **kwargs)
            with pytest.raises(pickle.UnpicklingError):
                torch.load(file)


def test_allowed_functions_cannot_be_used_to_call_others() -> None:
    rebuild = b"ctorch._tensor\n_rebuild_from_type_v2\n"
    for function in (b"cbuiltins\nbytearray\n", b"ctorch\nSize\n", b"ccollections\nOrderedDict\n"):
        call = rebuild + b"(" + function + b"ctorch\nTensor\n" + b"\x8a\x05\x00\x00\x00\x00\x01\x85}tR"
        with pytest.raises(pickle.UnpicklingError, match="unrecognized function"):
            torch.load(_hostile(call))


def test_a_tensors_own_attributes_cannot_be_set_by_a_file() -> None:
    tensor = _record(_saved(torch.ones(2)), "data.pkl")[2:-1]
    state = b"}X\x06\x00\x00\x00_arrayK\x01sb"
    with pytest.raises(RuntimeError, match="belongs to the tensor itself"):
        torch.load(_hostile(tensor + state, {"data/0": bytes(8)}))


@pytest.mark.parametrize(
    "pickled",
    [
        b"cbuiltins\nbytearray\n\x8a\x05\x00\x00\x00\x00\x10\x85R",
        b"ctorch\nTensor\n\x8a\x05\x00\x00\x00\x00\x10\x85R",
        b"ctorch.storage\nUntypedStorage\n\x8a\x05\x00\x00\x00\x00\x10\x85R",
        b"ctorch\nTensor\n\x8a\x05\x00\x00\x00\x00\x10\x85\x81",
        b"X\xff\xff\xff\x7fabc",
        (
            b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
            b"\x8a\x05\x00\x00\x00\x00\x10tQ"
        ),
    ],
)
def test_absurd_sizes_are_refused_without_taking_memory(pickled: bytes) -> None:
    file = _hostile(pickled, {"data/0": bytes(8)})
    tracemalloc.start()
    try:
        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            torch.load(file)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_compressed_and_overlapping_records_are_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N.")
        archive.writestr("archive/version", "3\n", zipfile.ZIP_STORED)
        archive.writestr("archive/data/0", bytes(1 << 20))
    packed.seek(0)
    with pytest.raises(RuntimeError, match="longer than the file"):
        torch.load(packed)
    small = io.BytesIO()
    with zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02N.")
        archive.writestr("archive/version", "3\n", zipfile.ZIP_STORED)
    small.seek(0)
    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(small)


def test_a_storage_that_the_legacy_file_does_not_hold_is_refused() -> None:
    whole = _saved(torch.ones(2), _use_new_zipfile_serialization=False).getvalue()
    place = whole.index(b"X\x03\x00\x00\x00cpu") + 8
    end = whole.index(b"K\x02", place)
    huge = whole[:end] + b"\x8a\x05\x00\x00\x00\x00\x10" + whole[end + 2 :]
    with pytest.raises(RuntimeError, match="longer than the file"):
        torch.load(io.BytesIO(huge))


def test_a_file_cut_anywhere_is_refused() -> None:
    for kwargs in ({}, {"_use_new_zipfile_serialization": False}):
        whole = _saved({"a": torch.arange(3.0), "b": [1, "x"]}, **kwargs).getvalue()
        for length in range(0, len(whole), 7):
            with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError)):
                torch.load(io.BytesIO(whole[:length]))


_GOOD = _saved({"a": torch.arange(3.0), "p": [1, (2.5, "x"), {3}]}).getvalue()
_REFUSALS = (
    pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError, TypeError, AttributeError,
    AssertionError, NotImplementedError, struct.error, OverflowError,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(_GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_damaged_file_loads_or_raises_an_ordinary_error(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(_GOOD)
    for place, value in changes:
        damaged[place] = value
    try:
        torch.load(io.BytesIO(bytes(damaged)))
    except _REFUSALS:
        pass


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@settings(max_examples=200)
@given(st.lists(st.sampled_from(sorted({bytes([b]) for b in range(256)})), min_size=1, max_size=30))
def test_a_random_pickle_loads_or_raises_an_ordinary_error(codes: list[bytes]) -> None:
    try:
        torch.load(_hostile(b"".join(codes)))
    except _REFUSALS:
        pass


# ---------------------------------------------------------------------------------------- beside real torch


def test_real_torch_opens_what_we_save(torch_reference: ModuleType, tmp_path: Path) -> None:
    for name, content in record_checkpoints.CONTENTS.items():
        for kwargs in ({}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}):
            if name == "dtypes" and "_use_new_zipfile_serialization" in kwargs:
                continue  # torch itself cannot read uint16 from a legacy file
            torch.save(content(torch), tmp_path / name, **kwargs)
            trusted = name == "module" or "pickle_protocol" in kwargs
            loaded = torch_reference.load(tmp_path / name, weights_only=not trusted)
            assert _plain(loaded) == _plain(content(torch_reference))


def test_we_open_what_real_torch_saves(torch_reference: ModuleType, tmp_path: Path) -> None:
    for name, content in record_checkpoints.CONTENTS.items():
        for kwargs in ({}, {"_use_new_zipfile_serialization": False}):
            if name == "dtypes" and kwargs:
                continue
            torch_reference.save(content(torch_reference), tmp_path / name, **kwargs)
            loaded = torch.load(tmp_path / name, weights_only=name != "module")
            assert _plain(loaded) == _plain(content(torch))
    torch.save(torch.Generator().manual_seed(3), tmp_path / "generator")
    theirs_again = torch_reference.load(tmp_path / "generator", weights_only=False)
    assert theirs_again.get_state().tolist() == torch.Generator().manual_seed(3).get_state().tolist()


class _Attack:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


@pytest.mark.parametrize("function", [os.system, eval, exec, subprocess.Popen, __import__, open])
def test_weights_cannot_run_what_the_file_names(function: Any, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2), "bad": _Attack(function, "ran")}, tmp_path / "bad.pt")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(tmp_path / "bad.pt")


def test_a_trusted_file_may_name_any_function(tmp_path: Path) -> None:
    torch.save(_Attack(os.path.basename, "a/b"), tmp_path / "file.pt")
    assert torch.load(tmp_path / "file.pt", weights_only=False) == "b"


def test_saving_that_fails_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    torch.save(torch.ones(2), path)

    def disk_full(self: Any, *arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_archive.Writer, "close", disk_full)
    for legacy in (False, True):
        if legacy:
            monkeypatch.setattr(torch.serialization, "_write_legacy", disk_full)
        with pytest.raises(OSError, match="No space left"):
            torch.save(torch.zeros(2), path, _use_new_zipfile_serialization=not legacy)
    assert torch.load(path).tolist() == [1, 1]
    assert os.listdir(tmp_path) == ["model.pt"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with a signal")
def test_a_process_killed_while_saving_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(torch.ones(2), path)
    code = (
        "import os, sys, mindtorch_v2 as torch\n"
        "from mindtorch_v2 import _archive\n"
        "_archive.Writer.close = lambda self: os.kill(os.getpid(), 9)\n"
        f"torch.save(torch.zeros(1000), {str(path)!r})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode != 0
    assert torch.load(path).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("variables", "argument", "loads"),
    [
        ([], None, False),
        (["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"], None, True),
        (["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"], True, False),
        (["TORCH_FORCE_WEIGHTS_ONLY_LOAD"], False, False),
    ],
)
def test_two_variables_change_how_files_are_loaded(
    variables: list[str], argument: bool | None, loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in variables:
        monkeypatch.setenv(name, "1")
    file = io.BytesIO()
    torch.save([slice(1, 2)], file)
    file.seek(0)
    if loads:
        assert torch.load(file, weights_only=argument) == [slice(1, 2)]
    else:
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL slice"):
            torch.load(file, weights_only=argument)


def test_the_two_variables_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="should be set, but both were set"):
        torch.load(io.BytesIO())


def _with_pickle(content: bytes) -> io.BytesIO:
    """A file of torch.save with another pickle in it."""
    saved, file = zipfile.ZipFile(_saved({})), io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for entry in saved.infolist():
            is_pickle = entry.filename.endswith("data.pkl")
            archive.writestr(entry, content if is_pickle else saved.read(entry))
    file.seek(0)
    return file


_TWICE = b"".join(
    b"q%ch%c" % (place, place) + b"%s" for place in range(60)
)  # remember what is on top, take it again
_LISTS = b"".join(b"](h%ch%ceq%c" % (place, place, place + 1) for place in range(60))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02})" + _TWICE.replace(b"%s", b"\x86") + b"K\x01s.", "a tuple has more than 100,000 items"),
        (b"\x80\x02])" + _TWICE.replace(b"%s", b"\x86") + b"a.", "a tuple has more than 100,000 items"),
        (b"\x80\x02" + b"]q\x00" + _LISTS + b")R.", "unrecognized function"),
    ],
    ids=["a key", "an item", "a function"],
)
def test_tuples_that_hold_each_other_many_times_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=message):
        torch.load(_with_pickle(content), weights_only=True)


def test_a_tuple_of_many_tuples_is_loaded() -> None:
    saved = tuple((n, (n, n)) for n in range(60_000))
    assert torch.load(_saved({saved[7]: saved}), weights_only=True) == {saved[7]: saved}
