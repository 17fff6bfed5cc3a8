"""torch.utils.weak: dictionaries of tensors by identity."""

from __future__ import annotations

import copy
import gc

import mindtorch_v2 as torch
from mindtorch_v2.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_equal_tensors_are_different_keys_and_entries_go_with_them() -> None:
    entries = WeakTensorKeyDictionary()
    first, second = torch.ones(2), torch.ones(2)
    entries[first], entries[second] = "first", "second"
    assert (entries[first], entries[second], len(entries)) == ("first", "second", 2)
    assert first in entries
    assert torch.ones(2) not in entries
    assert 3 not in entries
    del first
    gc.collect()
    assert list(entries.values()) == ["second"]
    assert [key is second for key in entries] == [True]
    assert entries.pop(second) == "second"
    assert len(entries) == 0


def test_copies_are_independent() -> None:
    key, other = torch.zeros(1), torch.zeros(1)
    entries = WeakIdKeyDictionary({key: [1]})
    shallow, deep, joined = copy.copy(entries), copy.deepcopy(entries), entries | {other: [2]}
    assert shallow[key] is entries[key]
    assert deep[key] == [1]
    assert deep[key] is not entries[key]
    assert shallow == entries
    assert len(joined) == 2
    assert len(entries) == 1


def test_references_compare_by_identity() -> None:
    x = torch.ones(1)
    reference, weak = WeakIdRef(x), TensorWeakRef(x)
    assert reference == WeakIdRef(x)
    assert reference != WeakIdRef(torch.ones(1))
    assert hash(reference) == id(x)
    assert weak() is x
    del x
    gc.collect()
    assert reference() is None
    assert weak() is None
