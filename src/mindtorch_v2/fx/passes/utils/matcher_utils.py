"""torch.fx.passes.utils.matcher_utils: find the occurrences of a pattern in a graph."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from mindtorch_v2.utils import _pytree as pytree

from ...graph import Graph
from ...node import Node

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """One occurrence of a pattern."""

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            anchors=self.anchors,
            nodes_map=self.nodes_map.copy(),
            placeholder_nodes=self.placeholder_nodes.copy(),
            returning_nodes=self.returning_nodes.copy(),
            name_node_map=self.name_node_map.copy(),
        )


class SubgraphMatcher:
    """Finds a pattern by comparing from its last nodes backwards."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op not in ("output", "placeholder") and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = next(reversed(list(pattern.nodes)))
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            self.pattern_anchors = [n for n in output.all_input_nodes if list(n.users) == [output]]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences, in the order of the graph."""
        candidates: dict[Node, list[Node]] = {
            anchor: [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        }
        matches: list[InternalMatch] = []
        self._extend(InternalMatch(anchors=self.pattern_anchors), list(candidates.items()), matches)
        matches = [self._completed(match) for match in matches]
        matches = [match for match in matches if self._is_contained(match.nodes_map)]
        if self.remove_overlapping_matches:
            matches = self._without_overlaps(matches)
        return matches

    def _extend(
        self, match: InternalMatch, anchors: list[tuple[Node, list[Node]]], found: list[InternalMatch]
    ) -> None:
        """Try every candidate for the first anchor, then the other anchors."""
        if not anchors:
            found.append(match)
            return
        (anchor, nodes), *rest = anchors
        for node in nodes:
            attempt = copy.copy(match)
            if self._match_nodes(anchor, node, attempt):
                self._extend(attempt, rest, found)

    def _completed(self, match: InternalMatch) -> InternalMatch:
        match.placeholder_nodes = [
            match.nodes_map[n] for n in self.pattern_placeholder_nodes if n in match.nodes_map
        ]
        match.returning_nodes = [match.nodes_map[n] for n in self.pattern_returning_nodes]
        return match

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return _attributes_are_equal(pn, gn)
        return pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Whether nothing outside an occurrence uses its inner values."""
        reverse = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        for gn, pn in reverse.items():
            if pn in self.pattern_returning_nodes:
                continue
            if any(user not in reverse for user in gn.users):
                return False
        return True

    def _without_overlaps(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            nodes = {gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")}
            if not nodes & taken:
                taken |= nodes
                kept.append(match)
        return kept

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node) and pn.op == "placeholder" and not isinstance(gn, Node):
            if self.ignore_literals or pn not in match.nodes_map:
                match.nodes_map[pn] = gn
                return True
            return match.nodes_map[pn] == gn
        if isinstance(pn, Node) or isinstance(gn, Node):
            return False
        return self.ignore_literals or (type(gn) is type(pn) and gn == pn)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values() and pn.op != "placeholder":
            return False
        if not self._nodes_are_equal(pn, gn):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder" or self._match_arguments(pn, gn, match):
            return True
        match.nodes_map = saved.nodes_map
        return False

    def _match_arguments(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        pattern_values, pattern_structure = pytree.tree_flatten((list(pn.args), dict(pn.kwargs)))
        values, structure = pytree.tree_flatten((list(gn.args), dict(gn.kwargs)))
        if pattern_structure != structure:
            return False
        for expected, value in zip(pattern_values, values):
            if isinstance(expected, Node) and isinstance(value, Node):
                if not self._match_nodes(expected, value, match):
                    return False
            elif not self._match_literals(expected, value, match):
                return False
        return True


def _attributes_are_equal(pn: Node, gn: Node) -> bool:
    """Attributes are equal if both modules hold the same object or equal kinds of value under the names."""
    from ...graph_module import _get_attr

    if pn.graph.owning_module is None or gn.graph.owning_module is None:
        return pn.target == gn.target
    left, right = _get_attr(pn.graph.owning_module, pn.target), _get_attr(gn.graph.owning_module, gn.target)
    return type(left) is type(right)
