"""Random engine: a seed in, the same stream of draws as torch's CPU generator out. The engine's state
and its byte layout are here; distributions are in `_sampling` (arrays) and `_ops.random` (tensors)."""

from __future__ import annotations

import functools
import os
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mindtorch_v2 as torch
from mindtorch_prof.core import compiled

from . import _device, _dispatch

_fused: Any = compiled("mindtorch_v2._ops._fused")

__all__ = ["Generator", "default_generator"]

_DEFAULT_SEED = 67280421310721  # torch's seed of a generator that was not seeded

# torch's state bytes: seed u64 | left i32 | seeded i32 | next u64 | 624 words, each in a u64 | normal_x f64 |
# normal_y f64, the waiting second normal of a pair | normal_rho f64 | is normal_y valid i32 | pad |
# waiting float32 normal f32 | is it valid u8 | pad.
_HEAD = struct.Struct("<QiiQ")
_TAIL = struct.Struct("<dddi4xfB3x")
_N_WORDS = 624
_WORDS_END = _HEAD.size + 8 * _N_WORDS
STATE_NBYTES = _WORDS_END + _TAIL.size


class _CompiledEngine:
    """MT19937 by the compiled core: what is used of NumPy's class of that name."""

    __slots__ = ("random_raw", "words")
    lock = None  # draws keep the interpreter's lock

    def __init__(self) -> None:
        self.words = np.zeros(_N_WORDS + 1, np.uint32)
        self.random_raw = functools.partial(_fused.draws, self.words)

    def _legacy_seeding(self, seed: int) -> None:
        _fused.seed_engine(self.words, seed)

    @property
    def state(self) -> dict[str, Any]:
        return {"state": {"key": self.words[:_N_WORDS].copy(), "pos": int(self.words[_N_WORDS])}}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self.words[:_N_WORDS] = value["state"]["key"]
        self.words[_N_WORDS] = value["state"]["pos"]


class Generator:
    """Source of random draws on the CPU: one MT19937 stream and the normal that waits from the last pair."""

    __module__ = "mindtorch_v2"  # where torch has it, and where pickle finds it
    __slots__ = (
        "__weakref__",
        "_bits",
        "_float_normal",
        "_fork_lock",
        "_made",
        "_seed",
        "_untouched",
        "raw",
        "waiting_normal",
        "words",
    )

    # raw(n): the next n 32-bit draws, as uint64. It and _bits are created at first use: importing
    # numpy.random takes 10 ms. words: the state of a compiled engine, else None.
    # waiting_normal: the second standard normal of a pair of which the first was returned, else None.
    # _untouched: torch's own `next` field after seeding or set_state, and the first two words it holds for:
    # they change with the first draw, so drawing needs no bookkeeping.

    def __init__(self, device: Any = None) -> None:
        if device is not None:
            kind = _device.device(device).type
            if kind == "meta":
                raise RuntimeError("META device type not an accelerator.")
            if kind != "cpu":
                raise RuntimeError(f"Cannot get a generator for device {kind!r}: there is only the CPU here.")
        self._made = False
        self._fork_lock: Any = None
        self._set_seed(_DEFAULT_SEED)

    def __getattr__(self, name: str) -> Any:
        if name not in ("_bits", "raw", "words"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        bits: Any = np.random.MT19937(0) if _fused is None else _CompiledEngine()
        bits._legacy_seeding(self._seed & 0xFFFFFFFF)
        self._bits, self.raw, self._made = bits, bits.random_raw, True
        self.words = None if _fused is None else bits.words
        return getattr(self, name)

    def _set_seed(self, seed: int) -> None:
        self._seed = seed
        first = seed & 0xFFFFFFFF
        if self._made:
            self._bits._legacy_seeding(first)
        self._untouched = (0, first, (1812433253 * (first ^ first >> 30) + 1) & 0xFFFFFFFF)
        self.waiting_normal: float | None = None
        self._float_normal: tuple[float, int] = (0.0, 0)

    def _lock_for_fork(self) -> None:
        """Before a fork: wait until no thread draws. The child would wait for ever for a lock that another thread held."""
        lock = self._bits.lock if self._made else None
        if lock is not None:
            lock.acquire()
        self._fork_lock = lock

    def _unlock_after_fork(self) -> None:
        """After a fork, in parent and child."""
        lock, self._fork_lock = self._fork_lock, None
        if lock is not None:
            lock.release()

    @property
    def device(self) -> Any:
        """The device of the generator: always the CPU."""
        return _device.CPU

    def manual_seed(self, seed: int, /) -> Generator:
        """Start the stream of `seed` and return the generator."""
        if type(seed) is not int:
            if isinstance(seed, np.integer):
                raise TypeError("an integer is required")
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._set_seed(seed & 0xFFFFFFFFFFFFFFFF)
        return self

    def seed(self) -> int:
        """Seed from the operating system's entropy and return that seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self._set_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed the stream began with."""
        return self._seed

    def state_bytes(self) -> NDArray[np.uint8]:
        """The state in torch's byte layout."""
        state = self._bits.state["state"]
        key, following = state["key"], int(state["pos"])
        left = _N_WORDS + 1 - following
        if left == 1 and self._untouched[1:] == (int(key[0]), int(key[1])):
            following = self._untouched[0]
        out = np.empty(STATE_NBYTES, np.uint8)
        out[: _HEAD.size] = np.frombuffer(_HEAD.pack(self._seed, left, 1, following), np.uint8)
        out[_HEAD.size : _WORDS_END].view("<u8")[:] = key
        normal = self.waiting_normal
        valid = normal is not None
        tail = _TAIL.pack(0.0, normal if valid else 0.0, 0.0, int(valid), *self._float_normal)
        out[_WORDS_END:] = np.frombuffer(tail, np.uint8)
        return out

    def set_state_bytes(self, state: NDArray[np.uint8]) -> None:
        """Continue from a state in torch's byte layout."""
        if state.size != STATE_NBYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_NBYTES} but found the input RNG state "
                f"size to be {state.size}"
            )
        raw = state.tobytes()
        seed, left, seeded, following = _HEAD.unpack_from(raw)
        # left == 1 means: all words are used up (or none made yet), whatever `next` says.
        fits = left == 1 or left + following == _N_WORDS + 1
        if seeded != 1 or left < 1 or following > _N_WORDS or not fits:
            raise RuntimeError("Invalid mt19937 state")
        key = np.frombuffer(raw, "<u8", _N_WORDS, _HEAD.size).astype(np.uint32)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": _N_WORDS + 1 - left}}
        self._seed = seed
        self._untouched = (following, int(key[0]), int(key[1]))
        _, normal, _, valid, float_normal, float_valid = _TAIL.unpack_from(raw, _WORDS_END)
        self.waiting_normal = normal if valid else None
        self._float_normal = (float_normal, float_valid)

    def get_state(self) -> torch.Tensor:
        """The state as a ByteTensor, in torch's layout."""
        return _dispatch.wrap(self.state_bytes())

    def set_state(self, new_state: torch.Tensor, /) -> Generator:
        """Continue from a ByteTensor made by `get_state`, here or by torch."""
        if not isinstance(new_state, torch.Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not torch.uint8 or new_state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not new_state.is_contiguous():
            raise RuntimeError("RNG state must be contiguous")
        self.set_state_bytes(new_state._array.reshape(-1))
        return self

    def clone_state(self) -> Generator:
        """A new generator that continues from the same state."""
        other = type(self)()
        other.set_state_bytes(self.state_bytes())
        return other

    def graphsafe_get_state(self) -> Generator:
        """Not for the CPU: raises."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator, /) -> None:
        """Not for the CPU: raises."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def get_offset(self) -> int:
        """Not for the CPU: raises."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int, /) -> Generator:
        """Not for the CPU: raises."""
        raise RuntimeError("CPU Generator does not use offset")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.device,), (self._seed, None, self.get_state())

    def __setstate__(self, state: tuple[int, None, Any]) -> None:
        self.manual_seed(state[0])
        self.set_state(state[2])


default_generator = Generator()
default_generator.seed()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=default_generator._lock_for_fork,
        after_in_parent=default_generator._unlock_after_fork,
        after_in_child=default_generator._unlock_after_fork,
    )
