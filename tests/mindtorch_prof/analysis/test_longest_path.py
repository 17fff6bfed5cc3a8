"""Longest paths: the columns give what a plain walk over all paths gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.analysis.longest_path import MODULE, Graph, Lengths, slack
from mindtorch_prof.core import VARIABLE, compiled


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, np.ndarray]:
    """Chains, edges that lead forward in a random order that keeps the order of chains, and weights."""
    chains = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    count = sum(chains)
    begins = np.zeros(count, bool)
    begins[np.cumsum([0, *chains[:-1]])] = True
    # a random merge of the chains is an order of all nodes
    tickets = [chain for chain, size in enumerate(chains) for _ in range(size)]
    merged = draw(st.permutations(tickets))
    following = {chain: int(first) for chain, first in enumerate(np.flatnonzero(begins))}
    order = []
    for chain in merged:
        order.append(following[chain])
        following[chain] += 1
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    weight = draw(st.lists(st.integers(0, 9), min_size=count + len(edges), max_size=count + len(edges)))
    columns = np.array(edges, np.int64).reshape(-1, 2)
    graph = Graph(begins, np.argsort(order), columns[:, 0], columns[:, 1])
    return graph, np.where(np.append(begins, np.zeros(len(edges), bool)), 0, np.array(weight, np.int64))


def edges_of(graph: Graph) -> list[tuple[int, int, int]]:
    """(number, from, to) of every edge."""
    inner = [(i, i - 1, i) for i in range(graph.n_nodes) if not graph.begins[i]]
    return inner + [
        (graph.n_nodes + k, a, b)
        for k, (a, b) in enumerate(zip(graph.source.tolist(), graph.target.tolist()))
    ]


def plain_lengths(graph: Graph, weight: np.ndarray) -> list[int]:
    """The same as `Lengths.to_nodes`: node by node, all edges looked at each time."""
    length = [0] * graph.n_nodes
    for node in np.argsort(graph.rank, kind="stable").tolist():
        for number, tail, head in edges_of(graph):
            if head == node:
                length[node] = max(length[node], length[tail] + int(weight[number]))
    return length


@given(graphs())
def test_lengths_are_those_of_a_plain_walk(case: tuple[Graph, np.ndarray]) -> None:
    graph, weight = case
    lengths = Lengths(graph)
    expected = plain_lengths(graph, weight)
    assert lengths.to_nodes(weight).tolist() == expected
    assert [lengths.to_node(weight, node) for node in range(graph.n_nodes)] == expected


@given(graphs(), st.data())
def test_a_path_is_connected_and_as_long_as_the_length_of_its_end(
    case: tuple[Graph, np.ndarray], data: st.DataObject
) -> None:
    graph, weight = case
    lengths = Lengths(graph)
    to_nodes = lengths.to_nodes(weight)
    end = data.draw(st.integers(0, graph.n_nodes - 1))
    path = lengths.path(weight, to_nodes, end)
    assert int(weight[path].sum()) == int(to_nodes[end])
    tails, heads = lengths.tails(path).tolist(), lengths.heads(path).tolist()
    assert tails[1:] == heads[:-1]
    assert not path.size or heads[-1] == end


@given(graphs(), st.data())
def test_an_edge_longer_by_its_slack_and_one_more_makes_the_path_longer_by_one(
    case: tuple[Graph, np.ndarray], data: st.DataObject
) -> None:
    graph, weight = case
    end = data.draw(st.integers(0, graph.n_nodes - 1))
    whole = plain_lengths(graph, weight)[end]
    left = slack(graph, weight, Lengths(graph).to_nodes(weight), end)
    for number, _, _ in edges_of(graph):
        longer = weight.copy()
        longer[number] += 1 + (left[number] if left[number] >= 0 else 1000)
        assert plain_lengths(graph, longer)[end] == whole + (1 if left[number] >= 0 else 0)


@given(graphs())
def test_a_graph_turned_round_twice_is_itself(case: tuple[Graph, np.ndarray]) -> None:
    graph, weight = case
    again = graph.reversed().reversed()
    assert again.begins.tolist() == graph.begins.tolist()
    assert edges_of(again) == edges_of(graph)
    assert Lengths(again).to_nodes(weight).tolist() == Lengths(graph).to_nodes(weight).tolist()


def test_of_two_edges_that_explain_a_node_the_path_takes_the_later_one_between_chains() -> None:
    # a chain 0 -> 1 and a node 2 that leads to 1, both of length 5
    graph = Graph(np.array([True, False, True]), np.array([0, 2, 1]), np.array([0, 2]), np.array([2, 1]))
    weight = np.array([0, 5, 0, 2, 3])
    lengths = Lengths(graph)
    assert lengths.path(weight, lengths.to_nodes(weight), 1).tolist() == [3, 4]


@given(graphs(), st.data())
def test_compiled_loops_give_what_the_python_loops_give(
    case: tuple[Graph, np.ndarray], data: st.DataObject
) -> None:
    graph, weight = case
    end = data.draw(st.integers(0, graph.n_nodes - 1))
    answers = []
    for core in ("", "python"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, core)
            lengths = Lengths(graph)
            to_nodes = lengths.to_nodes(weight)
            answers.append((to_nodes.tolist(), lengths.path(weight, to_nodes, end).tolist()))
    assert answers[0] == answers[1]


def test_compiled_loops_refuse_numbers_of_nodes_that_do_not_exist() -> None:
    module = compiled(MODULE)
    if module is None:
        pytest.skip("the compiled loops were not built, or are not wanted")
    one, value = np.array([0]), np.zeros(1, np.int64)
    for wrong in (np.array([-1]), np.array([1])):
        with pytest.raises(IndexError):
            module.relax(wrong, one, one, value)
        with pytest.raises(IndexError):
            module.relax(one, wrong, one, value)
        with pytest.raises(IndexError):
            module.walk(int(wrong[0]), one, -one - 1, one, value, value.copy())
    with pytest.raises(IndexError):
        module.walk(0, one, one, one, value, value.copy())  # a circle
    with pytest.raises(TypeError):
        module.relax(one.astype(np.int32), one, one, value)
    assert value.tolist() == [0]
