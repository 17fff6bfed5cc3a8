"""Files of other kinds: the error says what a file is, and what to do with it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest

from mindtorch_prof import load
from mindtorch_prof.load.errors import NotATraceError


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("trace.json"), io.BytesIO())
    return out.getvalue()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("trace.json", "{}")
    return out.getvalue()


FILES = [
    ("t.json.zst", b"\x28\xb5\x2f\xfd\x04", r"packed by zstd, .* unpack it first \(zstd -d FILE\)"),
    ("t.json.xz", lzma.compress(b"{}"), r"packed by xz, "),
    ("t.json.bz2", bz2.compress(b"{}"), r"packed by bzip2, "),
    ("t.tar", _tar(), r"a tar archive, not a trace; unpack it first"),
    ("t.tar.gz", gzip.compress(_tar()), r"a tar archive, not a trace; unpack it first"),
    ("t.zip", _zip(), r"a zip archive, .* have to be unpacked first"),
    ("t.nsys-rep", b"\x01\x02\x03", r"export it first \(nsys export --type sqlite FILE\)"),
    ("t.pftrace", b"\x0a\x2f\x52", r"Perfetto's own format"),
    ("snapshot.pickle", pickle.dumps({"segments": []}), r"a pickle, which is not opened"),
    ("events.out.tfevents.1.host", b"\x18\x00", r"tensorboard_trace_handler"),
    ("t.txt", b"hello", r"expected JSON that begins with \{ or \["),
]


@pytest.mark.parametrize(("name", "content", "sentence"), FILES, ids=[name for name, *_ in FILES])
def test_the_error_says_what_a_file_is_and_what_to_do(
    name: str, content: bytes, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(NotATraceError, match=sentence) as caught:
        load(path)
    assert "\n" not in str(caught.value)
