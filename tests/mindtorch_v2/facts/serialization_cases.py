"""Cases of saving and loading: what is refused, and in which words."""

from __future__ import annotations

import io
import os
import pickle
import struct
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROTO = b"\x80\x02"


class Plain:
    """A class that a file may name."""

    def __init__(self, *args: Any) -> None:
        self.args = args


class Stateful:
    """One with a state of its own."""

    def __setstate__(self, state: Any) -> None:
        self.got = state


def _saved(torch: Any, obj: Any, **kwargs: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **kwargs)
    file.seek(0)
    return file


def _archive(pickled: bytes, **records: bytes) -> io.BytesIO:
    """An archive with this pickle and records `data/<key>`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", PROTO + pickled + b".")
        archive.writestr("archive/version", "3\n")
        for key, data in records.items():
            archive.writestr("archive/data/" + key.removeprefix("_"), data)
    file.seek(0)
    return file


def _rewritten(file: io.BytesIO, change: Any) -> io.BytesIO:
    """The archive with every record passed through `change`, which may drop it by None."""
    result = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    result.seek(0)
    return result


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _storage(kind: str = "FloatStorage", numel: int = 2) -> bytes:
    kind_of = _text("storage") + _name("torch", kind)
    return b"(" + kind_of + _text("0") + _text("cpu") + b"K" + bytes([numel]) + b"tQ"


def _tensor(
    storage: bytes, offset: bytes = b"K\0", size: bytes = b"K\2\x85", stride: bytes = b"K\1\x85"
) -> bytes:
    rest = b"\x89" + _name("collections", "OrderedDict") + b")R" + b"tR"
    return _name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + offset + size + stride + rest


def names_that_are_not_allowed_are_refused(torch: Any, show: Any) -> None:
    module, generator = torch.nn.Linear(1, 1), torch.Generator()
    for obj in (Plain(), os.system, module, frozenset([1]), defaultdict(list), ..., generator):
        show.raises(torch.load, _saved(torch, obj))
    show.raises(torch.load, _saved(torch, Plain()), weights_only=True)
    for module, name in (
        ("builtins", "eval"),
        ("__builtin__", "eval"),
        ("builtins", "getattr"),
        ("os", "system"),
        ("sys", "exit"),
        ("nt", "system"),
        ("subprocess", "Popen"),
        ("torch", "save"),
        ("torch.nn", "Linear.forward"),
        ("collections", "namedtuple"),
        ("no.such.module", "thing"),
    ):
        show.raises(torch.load, _archive(_name(module, name) + b")R"))


def allowed_names_may_be_added(torch: Any, show: Any) -> None:
    s = torch.serialization
    before = s.get_safe_globals()
    with s.safe_globals([Plain, Stateful]):
        show(type(torch.load(_saved(torch, Plain(1)))).__name__, torch.load(_saved(torch, Plain(1))).args)
        state = _name(__name__, "Stateful") + b")\x81}" + _text("a") + b"K\x01sb"
        show(torch.load(_archive(state)).got)
        show(torch.load(_archive(_name(__name__, "Plain") + b"K\x01\x85R")).args)
        show(s.get_unsafe_globals_in_checkpoint(_saved(torch, Plain())))
        show.raises(torch.load, _archive(_name(__name__, "Plain") + b"}" + _text("x") + b"K\x01sb"))
    show(s.get_safe_globals() == before)
    show(s.get_unsafe_globals_in_checkpoint(_saved(torch, Plain())))
    show(s.get_unsafe_globals_in_checkpoint(_saved(torch, torch.nn.Linear(1, 1))))
    show.raises(torch.load, _saved(torch, Plain()))
    with s.safe_globals([(Plain, "elsewhere.Thing")]):
        show(type(torch.load(_archive(_name("elsewhere", "Thing") + b")\x81"))).__name__)
    s.add_safe_globals([Plain])
    show(Plain in s.get_safe_globals())
    s.clear_safe_globals()
    show(s.get_safe_globals())
    with s.safe_globals([torch.nn.Linear, set]):
        linear = torch.load(_saved(torch, torch.nn.Linear(2, 3)))
        show(linear)


def instructions_that_are_not_needed_are_refused(torch: Any, show: Any) -> None:
    for pickled in (
        b"K\x010",
        b"K\x012",
        b"(K\x01\x91",
        b"\x8f(K\x01\x90",
        b"\x8b\x01\x00\x00\x00\x05",
        b"C\x01a",
        b"(d",
        b"(l",
        b"F1.5\n",
        b"I5\n",
        b"S'a'\n",
        b"Va\n",
        b"\x82\x01",
        b"(icollections\nOrderedDict\n",
        b"(" + _name("collections", "OrderedDict") + b"o",
        b"T\x01\x00\x00\x00a",
        b"K\x05)R",
        _text("a") + b")R",
        b"K\x05}b",
        b"}}" + _text("a") + b"K\x01sb",
        b"]}b",
        b"K\x05)\x81",
        b"}K\x01a",
        b"]K\x01K\x02s",
        b")(K\x01e",
        b"h\x05",
        _text("x") + b"Q",
        b"(" + _text("foo") + b"tQ",
        b"K\x05Q",
        b"X\xff\x00\x00\x00ab",
    ):
        show.raises(torch.load, _archive(pickled))


def ordinary_instructions_are_read(torch: Any, show: Any) -> None:
    for pickled in (
        b"J\xff\xff\xff\xff",
        b"U\x03abc",
        b"K\x01q\x00h\x00",
        b"K\x01r\x00\x01\x00\x00j\x00\x01\x00\x00",
        _name("collections", "OrderedDict") + b")R" + _text("a") + b"K\x01s",
        _name("collections", "OrderedDict") + b")\x81",
        _name("collections", "Counter") + b")R" + _text("a") + b"K\x01s",
        _name("torch", "device") + _text("cpu") + b"\x85R",
        _name("torch.serialization", "_get_layout") + _text("torch.strided") + b"\x85R",
        _name("_codecs", "encode") + _text("ab") + _text("latin1") + b"\x86R",
        _name("torch.nn.parameter", "Parameter") + b")R",
        b"K\x01K\x02",
    ):
        show(torch.load(_archive(pickled)))


def tensors_outside_their_storage_are_refused(torch: Any, show: Any) -> None:
    data = struct.pack("<2f", 1, 2)
    show(torch.load(_archive(_tensor(_storage()), _0=data)))
    show(torch.load(_archive(_tensor(_storage("HalfStorage", 4)), _0=data)))
    for pickled in (
        _tensor(_storage(), offset=b"J\xff\xff\xff\xff"),
        _tensor(_storage(), stride=b"J\xff\xff\xff\xff\x85"),
        _tensor(_storage(), size=b"K\x01K\x02\x86"),
        _tensor(_storage(numel=200)),
    ):
        show.raises(torch.load, _archive(pickled, _0=data))
    for wrong in (_tensor(_storage(), size=b"K\x05\x85"), _tensor(_storage(), offset=b"K\x05")):
        try:
            torch.load(_archive(wrong, _0=data))
        except RuntimeError:
            show("refused")


def broken_files_are_refused(torch: Any, show: Any) -> None:
    show.raises(torch.load, "no_such_file.pt")
    for data in (b"", b"hello world", pickle.dumps({"a": 1}, 2), pickle.dumps({"a": 1}, 4)):
        show.raises(torch.load, io.BytesIO(data))
    show.raises(torch.load, io.BytesIO(b""), weights_only=False)
    show.raises(torch.load, io.BytesIO(pickle.dumps({"a": 1}, 2)), weights_only=False)
    whole = _saved(torch, {"a": torch.arange(1000.0)}).getvalue()
    for length in (len(whole) // 2, 200, 30):
        show.raises(torch.load, io.BytesIO(whole[:length]))
    good = _saved(torch, torch.ones(2))
    show.raises(torch.load, _rewritten(good, lambda name, data: None if name.endswith("/0") else data))
    show.raises(torch.load, _rewritten(good, lambda name, data: data[:4] if name.endswith("/0") else data))
    show.raises(torch.load, _rewritten(good, lambda name, data: None if "data.pkl" in name else data))
    show.raises(torch.load, _rewritten(good, lambda name, data: None if name.endswith("/version") else data))
    show.raises(torch.load, _rewritten(good, lambda name, data: b"foo" if "byteorder" in name else data))
    show(torch.load(_rewritten(good, lambda name, data: None if "byteorder" in name else data)))
    show(torch.load(_rewritten(good, lambda name, data: b"big" if "byteorder" in name else data)))
    legacy = _saved(torch, {"a": torch.arange(3.0)}, _use_new_zipfile_serialization=False).getvalue()
    for missing in (1, 20):
        show.raises(torch.load, io.BytesIO(legacy[:-missing]))
    show.raises(torch.load, io.BytesIO(legacy[:20]))


def arguments_are_checked(torch: Any, show: Any) -> None:
    class NoSeek:
        def read(self, *args: Any) -> bytes:
            return b""

    for target in (5, None, object()):
        show.raises(torch.save, 1, target)
    for source in (5, object(), NoSeek(), io.StringIO("abc")):
        show.raises(torch.load, source)
    show.raises(torch.save, 1, "no/such/folder/x.pt")
    show.raises(torch.load, _saved(torch, 1), pickle_module=pickle, weights_only=True)
    show(torch.load(_saved(torch, 1), pickle_module=pickle))
    show.raises(torch.load, _saved(torch, 1), mmap=True)
    show.warns(torch.load, _saved(torch, 1), encoding="latin1")
    show.raises(torch.load, _saved(torch, 1), foo=1)
    show.raises(torch.load, _saved(torch, 1), foo=1, weights_only=False)
    show.raises(torch.save, lambda x: x, io.BytesIO())
    one = torch.ones(2)
    show.raises(torch.save, [one, one.view(torch.int32)], io.BytesIO())
    show.raises(torch.serialization.set_default_load_endianness, 5)
    show.raises(torch.serialization.set_default_mmap_options, 5)
    show.raises(torch.serialization.get_unsafe_globals_in_checkpoint, io.BytesIO(b"abcdef"))


def protocols_other_than_two_are_for_trusted_files(torch: Any, show: Any) -> None:
    content = {"a": torch.ones(2), "t": (1, b"x"), "d": torch.float32}
    for protocol in range(2, 6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            show.raises(torch.load, _saved(torch, content, pickle_protocol=protocol))
            show(*(warning.message for warning in caught))
        show(torch.load(_saved(torch, content, pickle_protocol=protocol), weights_only=False))


def storages_go_where_they_are_mapped(torch: Any, show: Any) -> None:
    content = [torch.ones(2), torch.arange(2)]
    for where in (None, "cpu", torch.device("cpu"), "meta", {"cpu": "meta"}, {"cuda:0": "cpu"}):
        show(torch.load(_saved(torch, content), map_location=where))
    show(torch.load(_saved(torch, content), map_location=lambda storage, location: storage))
    show(torch.load(_saved(torch, content), map_location=lambda storage, location: None))
    for where in ("cuda", "cuda:1", "bogus", 5, {"cpu": "bogus"}):
        show.raises(torch.load, _saved(torch, content), map_location=where)
    cpu, cuda = b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"
    moved = _rewritten(_saved(torch, content), lambda name, data: data.replace(cpu, cuda))
    show.raises(torch.load, moved)
    moved.seek(0)
    show(torch.load(moved, map_location="cpu"))
    show(torch.serialization.location_tag(torch.ones(2).untyped_storage()))
    show.raises(torch.serialization.validate_cuda_device, "cuda")


def files_may_be_paths_or_objects(torch: Any, show: Any) -> None:
    with TemporaryDirectory() as folder:
        for path in (folder + "/a.pt", Path(folder) / "my.model.pt", Path(folder) / "plain"):
            torch.save({"a": torch.arange(3.0)}, path)
            show(torch.load(path), torch.load(path, mmap=True), zipfile.ZipFile(path).namelist()[0])
        with open(folder + "/b", "wb") as file:
            file.write(b"before")
            torch.save(torch.ones(2), file)
        with open(folder + "/b", "rb") as file:
            file.seek(6)
            show(torch.load(file))
        torch.save(torch.ones(2), folder + "/old.pt", _use_new_zipfile_serialization=False)
        show(torch.load(folder + "/old.pt"))
        try:
            torch.load(folder + "/old.pt", mmap=True)
        except RuntimeError as error:
            show(str(error).replace(folder, ""))
    both = io.BytesIO()
    for value in (1.0, 2.0):
        torch.save(torch.full((2,), value), both, _use_new_zipfile_serialization=False)
    both.seek(0)
    show(torch.load(both), torch.load(both))


def what_a_tensor_keeps(torch: Any, show: Any) -> None:
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    loaded = torch.load(_saved(torch, [leaf, leaf * 2]))
    show(loaded, loaded[1].is_leaf, loaded[0].grad)
    ordered = OrderedDict(a=1)
    ordered.note = 5
    show(torch.load(_saved(torch, ordered)).note, torch.load(_saved(torch, Counter("aab"))))
    hooked = torch.ones(2, requires_grad=True)
    hooked.register_hook(print)
    show.warns(_saved, torch, hooked)
    with torch.serialization.skip_data():
        file = _saved(torch, {"a": torch.ones(2)})
    with zipfile.ZipFile(file) as archive:
        show([(entry.filename, entry.file_size) for entry in archive.infolist() if "data/" in entry.filename])


def pickling_a_tensor_keeps_its_storage(torch: Any, show: Any) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    first, second = pickle.loads(pickle.dumps([base, base[1]]))
    second.fill_(9)
    show(first, second.stride(), second.storage_offset())
    for obj in (torch.float32, torch.bool, torch.Size([1, 2]), torch.device("cpu"), torch.nn.Parameter(base)):
        show(pickle.loads(pickle.dumps(obj)))
    show(pickle.loads(pickle.dumps(torch.max(base, 0))))
    marked = torch.ones(1)
    marked.note = [1]
    show(pickle.loads(pickle.dumps(marked)).note)
    show(pickle.loads(pickle.dumps(torch.empty(2, device="meta"))))
