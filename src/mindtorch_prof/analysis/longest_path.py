"""Longest paths: a graph of chains and of edges between them in; the length to and from every node, and the longest path itself, out.

Most nodes of a trace have one predecessor: the start or end before them on their thread. Such nodes are summed up by columns; only those that
other chains lead to (a kernel that was launched, a synchronisation that waited) are visited one by one, by compiled loops where they were
built (src/_core/longest_path.c), else by the Python ones here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, IntArray
from ..core import compiled
from ..trace import Columns

MODULE = "mindtorch_prof.analysis._longest_path"


@dataclass(frozen=True)
class Graph(Columns):
    """A directed graph without cycles whose nodes lie on chains: each node follows the one before it, unless it begins a chain.

    Edges are numbered: i is the edge of the chain into node i (none, if that begins a chain), n + k is the k-th edge between chains.
    """

    begins: BoolArray  # by node: whether a chain begins with it; the first node does
    rank: IntArray  # int64 by node: every edge leads to a higher one, or from a node to a later node of the same rank
    source: IntArray  # int64, nodes, of the edges between chains
    target: IntArray  # int64

    @property
    def n_nodes(self) -> int:
        return len(self.begins)

    def reversed(self) -> Graph:
        """The same graph with all edges turned round: node i becomes n - 1 - i."""
        last = self.n_nodes - 1
        begins = np.append(self.begins[1:], True)[::-1].copy()
        return Graph(begins, -self.rank[::-1], last - self.target, last - self.source)

    def reversed_weights(self, weight: IntArray) -> IntArray:
        """The weights of edges, as the edges of `reversed` are numbered."""
        count = self.n_nodes
        return np.concatenate([np.append(weight[1:count], 0)[::-1], weight[count:]])


class Lengths:
    """Prepared once for a graph: the length of the longest path to every node, for any weights (0 or more) of its edges."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        count = graph.n_nodes
        node = np.arange(count)
        is_join = graph.begins.copy()
        is_join[graph.target] = True
        self._joins = np.flatnonzero(is_join)
        # the last node at or before each one, on its chain, that is not just the next of its chain
        self._join = np.maximum.accumulate(np.where(is_join, node, 0)) if count else node
        inner = self._joins[~graph.begins[self._joins]]  # joins that also follow another node
        edges = np.concatenate([inner, count + np.arange(len(graph.source))])
        heads = self._heads(edges)
        order = np.lexsort((heads, graph.rank[heads]))
        edges, heads = edges[order], heads[order]
        self._tails = np.where(edges < count, edges - 1, graph.source[np.maximum(edges - count, 0)])
        place = np.zeros(count, np.int64)
        place[self._joins] = np.arange(len(self._joins))
        self._head_places: IntArray = place[heads]
        self._joins_of_tails: IntArray = self._join[self._tails]
        self._tail_places: IntArray = place[self._joins_of_tails]
        self._edges, self._heads_of_edges = edges, heads

    def _heads(self, edges: IntArray) -> IntArray:
        count = self.graph.n_nodes
        if not len(self.graph.target):
            return edges
        return np.where(edges < count, edges, self.graph.target[np.maximum(edges - count, 0)])

    def to_nodes(self, weight: IntArray) -> IntArray:
        """By node the length of the longest path that ends there; it may begin anywhere."""
        count = self.graph.n_nodes
        along, value = self._to_joins(weight)
        at_join = np.zeros(count, np.int64)
        at_join[self._joins] = value
        return at_join[self._join] + along - along[self._join] if count else along

    def to_node(self, weight: IntArray, node: int) -> int:
        """The length of the longest path that ends at one node."""
        along, value = self._to_joins(weight)
        join = int(self._join[node])
        return int(value[np.searchsorted(self._joins, join)] + along[node] - along[join])

    def _to_joins(self, weight: IntArray) -> tuple[IntArray, IntArray]:
        """By node the sum of its chain's edges up to it, from some node on; by join the length of the longest path that ends there."""
        along = np.cumsum(np.where(self.graph.begins, 0, weight[: self.graph.n_nodes]))
        own = along[self._tails] - along[self._joins_of_tails] + weight[self._edges]
        value = np.zeros(len(self._joins), np.int64)
        # edges in the order of the nodes they lead to: all edges into a node come before all edges out of it
        _relax(self._head_places, self._tail_places, own, value)
        return along, value

    def path(self, weight: IntArray, length: IntArray, end: int) -> IntArray:
        """The edges of the longest path to a node, first to last. length: what `to_nodes` gives for these weights.

        Of several predecessors that explain a node's length the one of an edge between chains is taken: it says what was waited for.
        """
        tight = np.flatnonzero(length[self._tails] + weight[self._edges] == length[self._heads_of_edges])
        # the last write to a place stays: of the edges into a node those between chains, in their order, come after that of the chain
        into = np.full(self.graph.n_nodes, -1, np.int64)
        into[self._heads_of_edges[tight]] = self._edges[tight]
        into[length == 0] = -1  # nothing before it takes time
        before = np.zeros_like(into)  # only asked for at joins
        before[self._joins] = self.tails(np.maximum(into[self._joins], 0))
        crossings, ends = _walked(int(end), self._join, into, before)
        return _edges_between(crossings[::-1].copy(), ends[::-1], into)

    def tails(self, edges: IntArray) -> IntArray:
        """The nodes that edges come from."""
        count = self.graph.n_nodes
        if not len(self.graph.source):
            return edges - 1
        return np.where(edges < count, edges - 1, self.graph.source[np.maximum(edges - count, 0)])

    def heads(self, edges: IntArray) -> IntArray:
        """The nodes that edges lead to."""
        return self._heads(edges)


def _relax(head: IntArray, tail: IntArray, length: IntArray, value: IntArray) -> None:
    """Raise the value of each head to that of the tail and the length of the edge, one edge after the other."""
    module = compiled(MODULE)
    if module is not None:
        module.relax(*(np.ascontiguousarray(column, np.int64) for column in (head, tail, length)), value)
        return
    values = value.tolist()
    for to, start, weight in zip(head.tolist(), tail.tolist(), length.tolist()):
        sum_ = weight + values[start]
        if sum_ > values[to]:  # noqa: PLR1730  a call of max takes twice as long
            values[to] = sum_
    value[:] = values


def _walked(end: int, join: IntArray, edge: IntArray, tail: IntArray) -> tuple[IntArray, IntArray]:
    """The nodes at which a path enters a chain, or a part of one, and those at which it leaves that, last first. By node: the start of its
    part, the edge into it (-1: the path begins there), and the node that this comes from."""
    module = compiled(MODULE)
    if module is not None:
        crossings, ends = np.empty(len(join), np.int64), np.empty(len(join), np.int64)
        columns = (np.ascontiguousarray(column, np.int64) for column in (join, edge, tail))
        count = module.walk(end, *columns, crossings, ends)
        return crossings[:count], ends[:count]
    join_of, edge_of, tail_of = join.tolist(), edge.tolist(), tail.tolist()
    entered: list[int] = []
    left: list[int] = []
    node = end
    while True:
        left.append(node)
        entered.append(join_of[node])
        if edge_of[entered[-1]] < 0:
            return np.array(entered, np.int64), np.array(left, np.int64)
        node = tail_of[entered[-1]]


def _edges_between(first: IntArray, last: IntArray, into: IntArray) -> IntArray:
    """The edges of a path that runs along chains from nodes to later ones, and enters each such part by an edge; `into`: by node, -1: none."""
    counts = last - first + 1
    nodes = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    begins = np.cumsum(counts) - counts
    edges = nodes
    edges[begins] = into[first]
    return edges[edges >= 0]


def slack(graph: Graph, weight: IntArray, to_nodes: IntArray, end: int) -> IntArray:
    """By edge, how much longer it may get before the longest path to the node `end` does; -1: nothing leads from it to `end`."""
    count = graph.n_nodes
    turned = graph.reversed()
    # only paths that reach `end` count: a very long edge to it, from a node before all others, makes them longer than any other
    far = int(weight.sum()) + 1
    with_far = Graph(
        np.append(True, turned.begins),
        np.append(turned.rank.min(), turned.rank),
        np.append(turned.source + 1, 0),
        np.append(turned.target + 1, count - end),
    )
    weights = np.concatenate([[0], graph.reversed_weights(weight), [far]])
    from_nodes = Lengths(with_far).to_nodes(weights)[1:][::-1] - far
    reaches = from_nodes >= 0
    tails = np.concatenate([np.maximum(np.arange(count) - 1, 0), graph.source])
    heads = np.concatenate([np.arange(count), graph.target])
    left = to_nodes[end] - (to_nodes[tails] + weight + from_nodes[heads])
    left = np.where(reaches[heads], left, -1)
    left[:count][graph.begins] = -1
    return left
