"""Allocations: addresses and signed bytes in order of time in; which free belongs to which allocation, and running totals, out."""

from __future__ import annotations

import numpy as np

from .arrays import IntArray


def lifetimes(address: IntArray, nbytes: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of memory that are allocations, and for each the row that frees the same address (-1: never, or not known: an address of
    0 stands for none, as in files of 2021)."""
    order = np.argsort(address, kind="stable")
    ordered = address[order]
    same = (ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)
    del ordered  # a file may have millions of rows: columns are freed before others are made
    following = np.full(len(address), -1, np.int64)
    following[order[:-1][same]] = order[1:][same]
    del order
    born = np.flatnonzero(nbytes > 0)
    died = following[born]
    del following
    again = np.flatnonzero(died >= 0)
    died[again[nbytes[died[again]] >= 0]] = -1
    return born, died


def totals_of_recording(address: IntArray, nbytes: IntArray) -> IntArray:
    """Bytes alive after each row that were allocated in these rows: a free of older memory changes nothing."""
    born, died = lifetimes(address, nbytes)
    counted = np.zeros(len(nbytes), np.int64)
    counted[born] = nbytes[born]
    freed = died >= 0
    counted[died[freed]] = -nbytes[born[freed]]
    totals: IntArray = np.cumsum(counted, out=counted)
    return totals
