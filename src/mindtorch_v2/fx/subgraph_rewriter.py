"""torch.fx.subgraph_rewriter: replace each occurrence of a pattern in a graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from mindtorch_v2.nn import Module

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign_attr
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]


class Match(NamedTuple):
    """One occurrence: the node it ends in, and the node of the graph for each node of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """One occurrence and the nodes that stand in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule
) -> list[Match]:
    """Replace every occurrence of a pattern that does not overlap an earlier one."""
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same for occurrences that all filters accept; the replacement may be computed from the occurrence."""
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(
        pattern_graph, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=ignore_literals
    )  # fmt: skip
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(match, graph, pattern_graph) for accepts in match_filters or ())
    ]
    fixed = _graph_of(replacement) if replacement is not None else None
    replaced_by: dict[Node, Node] = {}
    results = []
    for match in matches:
        if replacement_callback is not None:
            new_graph = replacement_callback(match, graph, pattern_graph)
        elif fixed is not None:
            new_graph = fixed
        else:
            raise AssertionError("Must provide either replacement or replacement_callback")
        results.append(_replace_match(gm, match, new_graph, replaced_by))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return results


_replace_pattern = replace_pattern_with_filters  # torch's private name


def _graph_of(pattern: Callable | Graph | GraphModule) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return pattern if isinstance(pattern, Graph) else symbolic_trace(pattern).graph


def _replace_match(
    gm: GraphModule, match: InternalMatch, new_graph: Graph, replaced_by: dict[Node, Node]
) -> ReplacedPatterns:
    """Insert a copy of the replacement for one occurrence, and remove the occurrence."""
    inputs = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"The replacement has {len(inputs)} inputs, the pattern {len(match.placeholder_nodes)}"
        )
    values: dict[Node, Node] = {}
    for new_input, old in zip(inputs, match.placeholder_nodes):
        values[new_input] = (
            replaced_by.get(old, old) if isinstance(old, Node) else old
        )  # earlier replacements
    inner = set(match.nodes_map.values()) - set(match.placeholder_nodes)
    users = {user for node in match.returning_nodes for user in node.users}
    first_user = next(node for node in gm.graph.nodes if node in users or node.op == "output")
    before = set(gm.graph.nodes)
    with gm.graph.inserting_before(first_user):
        result = gm.graph.graph_copy(new_graph, values)
    new_nodes = [node for node in gm.graph.nodes if node not in before]
    outputs = (result,) if isinstance(result, Node) else tuple(result or ())
    if len(outputs) != len(match.returning_nodes):
        raise AssertionError(
            f"The replacement returns {len(outputs)} values, the pattern {len(match.returning_nodes)}"
        )
    for old, new in zip(match.returning_nodes, outputs):
        old.replace_all_uses_with(new)
        replaced_by[old] = new
    for node in reversed(list(gm.graph.nodes)):
        if node in inner and node.op not in ("placeholder", "output") and not node.users:
            gm.graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes)


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give the module the submodules and tensors that replacement nodes name, and remove those no longer used."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        value: Any = _attribute(replacement, node.target)
        if _attribute(gm, node.target) is not None:
            continue
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the referenced '
                "attribute does not exist in the replacement GraphModule"
            )
        new = copy.deepcopy(value)
        if isinstance(value, Module):
            gm.add_submodule(node.target, new)
        else:
            _assign_attr(new, gm, node.target)
    gm.graph.lint()


def _attribute(module: Any, target: str) -> Any:
    for part in target.split("."):
        module = getattr(module, part, None)
    return module
