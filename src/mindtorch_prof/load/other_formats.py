"""Files of other kinds: the first bytes and the name of a file in; what it is and what to do with it out.

For the error messages of files that no reader reads.
"""

from __future__ import annotations

_EXPECTED = "not a trace (expected JSON that begins with { or [, or the same packed by gzip)"
_PACKED = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"\xfd7zXZ\x00": ("xz", "unxz"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"),
}
_TAR_MAGIC = slice(257, 262)


def other_kind(head: bytes, name: str) -> str:
    """What a file is that begins like no trace, and what to do with it: the sentence of an error after the file's name."""
    for magic, (packer, unpack) in _PACKED.items():
        if head.startswith(magic):
            return (
                f"packed by {packer}, which is not read; unpack it first ({unpack} FILE), or pack it by gzip"
            )
    if head[_TAR_MAGIC] == b"ustar":
        return "a tar archive, not a trace; unpack it first (tar xf FILE)"
    if name.endswith((".nsys-rep", ".qdrep")):
        return "a report of nsys, which is not read itself; export it first (nsys export --type sqlite FILE)"
    if name.endswith((".pftrace", ".perfetto-trace", ".perfetto")):
        return "a trace in Perfetto's own format, which is not read; expected a Chrome trace in JSON, as torch's profiler writes it"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a pickle, which is not opened, as it could run code; memory snapshots of torch.cuda are no traces of a profiler"
    if b"tfevents" in name.encode(errors="replace"):
        return "an event file of TensorBoard, not a trace; expected the *.pt.trace.json of tensorboard_trace_handler"
    return _EXPECTED
