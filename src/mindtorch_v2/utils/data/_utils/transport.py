"""Transport between processes: sends an object over a connection.

Arrays and tensors are sent outside of the pickle, without a copy: through the connection if they are small,
else as the pages of an anonymous file whose descriptor is sent. Nothing is named in the file system, so a
process that dies leaves nothing behind.

A message consists of a header (the number of buffers, and whether they are in a file), the pickle, and the
buffers' sizes. The buffers follow, or the descriptor of the file that holds them.
"""

from __future__ import annotations

import functools
import io
import mmap
import os
import pickle
import socket
import struct
import sys
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .... import _dispatch

_HAS_FILES = hasattr(os, "memfd_create") and hasattr(socket, "send_fds") and sys.maxsize > 2**32
_FILE_FROM = 256 * 1024  # bytes from which on a file is cheaper for the receiver than copies through a socket
_ALIGNMENT = 64
_MAP_FAILED = 2 ** (8 * struct.calcsize("P")) - 1  # (void *) -1
_HEAD = struct.Struct("<II")  # number of buffers, whether they are in a file


class _Pickler(ForkingPickler):
    """Reduces plain dense tensors to arrays, whose memory pickle sends out of band."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not torch.Tensor or value.is_sparse or value.is_meta or value._hooks:
            return NotImplemented
        if value.__dict__:  # the user's own attributes
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
                "support crossing process boundaries.  If you just want to transfer the data, call "
                "detach() on "
                "the tensor before serializing (e.g., putting it on the queue)."
            )
        array, order = _dense(value._array)
        return _tensor_of, (array, order, value.requires_grad)


def _dense(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], tuple[int, ...] | None]:
    """The array with its dimensions in memory order, and the permutation that restores it."""
    if array.flags.c_contiguous:
        return array, None
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    dense = array.transpose(order)
    if not dense.flags.c_contiguous:
        return np.ascontiguousarray(array), None
    return dense, tuple(int(d) for d in np.argsort(order))


def _tensor_of(array: np.ndarray[Any, Any], order: tuple[int, ...] | None, requires_grad: bool) -> Any:
    tensor = _dispatch.new_tensor(torch.Tensor)
    tensor._array = array if order is None else array.transpose(order)
    return tensor.requires_grad_() if requires_grad else tensor


def send(connection: Connection, value: Any) -> None:
    """Send any object that can be pickled. If pickling fails, nothing is sent."""
    body = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    body.write(_HEAD.pack(0, 0))
    _Pickler(body, 5, True, buffers.append).dump(value)
    views = [buffer.raw() for buffer in buffers]
    sizes = [view.nbytes for view in views]
    in_file = _HAS_FILES and sum(sizes) >= _FILE_FROM
    body.write(struct.pack(f"<{len(sizes)}Q", *sizes))
    body.seek(0)
    body.write(_HEAD.pack(len(sizes), in_file))
    connection.send_bytes(body.getbuffer())
    if in_file:
        _send_file(connection, views)
    else:
        for view in views:
            connection.send_bytes(view)


def receive(connection: Connection) -> tuple[memoryview, list[Any]]:
    """The next complete message, for `decode`. EOFError or OSError if the other side has ended."""
    message = memoryview(connection.recv_bytes())
    n_buffers, in_file = _HEAD.unpack_from(message)
    end = len(message) - 8 * n_buffers
    sizes = struct.unpack_from(f"<{n_buffers}Q", message, end)
    if in_file:
        return message[_HEAD.size : end], _receive_file(connection, sizes)
    return message[_HEAD.size : end], [_receive_buffer(connection, size) for size in sizes]


def decode(message: tuple[memoryview, list[Any]]) -> Any:
    """The object in a message."""
    return pickle.loads(message[0], buffers=message[1])


def _receive_buffer(connection: Connection, size: int) -> Any:
    if size == 0:
        connection.recv_bytes()
        return bytearray()
    buffer = np.empty(size, np.uint8)
    connection.recv_bytes_into(buffer)
    return buffer


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _send_file(connection: Connection, views: list[memoryview]) -> None:
    file = os.memfd_create("mindtorch_v2", os.MFD_CLOEXEC)
    try:
        start = 0
        for view in views:
            done = 0
            while done < view.nbytes:
                done += os.pwrite(file, view[done:], start + done)
            start += _aligned(view.nbytes)
        os.ftruncate(file, start)
        with socket.socket(fileno=os.dup(connection.fileno())) as carrier:
            # a default timeout set by the user would make the connection non-blocking
            carrier.setblocking(True)
            socket.send_fds(carrier, [b"f"], [file])
    finally:
        os.close(file)


@functools.cache
def _libc() -> Any:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


class _Pages:
    """The pages of a file as memory, released with the last array that uses them.

    Python's `mmap` would keep the file open that long: one descriptor for every batch that a program keeps.
    """

    def __init__(self, file: int, nbytes: int) -> None:
        libc = _libc()
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        address = libc.mmap(None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
        if address == _MAP_FAILED:
            raise MemoryError(f"DataLoader: {nbytes} bytes from a worker could not be mapped")
        self._unmap = functools.partial(libc.munmap, address, nbytes)
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        if hasattr(self, "_unmap"):
            self._unmap()


def _receive_file(connection: Connection, sizes: tuple[int, ...]) -> list[Any]:
    with socket.socket(fileno=os.dup(connection.fileno())) as carrier:
        carrier.setblocking(True)
        _, files, _, _ = socket.recv_fds(carrier, 1, 1)
    if not files:
        raise EOFError
    try:
        pages = np.asarray(_Pages(files[0], sum(map(_aligned, sizes))))
    finally:
        os.close(files[0])
    buffers, start = [], 0
    for size in sizes:
        buffers.append(pages[start : start + size])
        start += _aligned(size)
    return buffers
