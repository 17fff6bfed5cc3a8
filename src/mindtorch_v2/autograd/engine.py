"""The backward pass: roots and their gradients in, gradients at leaves (or at requested tensors) out.

A node runs when all gradients for it have arrived; of those that are ready, the one with the highest sequence
number runs first, as in torch. There is no recursion, so a graph may be as deep as memory allows. A backward
pass inside another one is a `Run` of its own.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from sys import getrefcount
from typing import Any

from .. import _dispatch, _dtype
from .._dispatch import (
    BACKWARD_SCOPE,
    FUNCTION_SCOPE,
    call_untraced,
    call_user,
    evaluation_name,
    in_evaluation_range,
    in_node_range,
    in_range,
)
from .._graph import AccumulateGrad, Node, Switches, grad_state
from .._tensor import Tensor

_run_numbers = itertools.count()
# Leaves run before all other nodes, in the order in which their gradients are complete.
_arrivals = itertools.count()


def _count_references(buffer: list) -> int:
    return getrefcount(buffer[0])


# getrefcount of an object that only a list, or an attribute, refers to. Where references are counted, no local refers to the object:
# under a profile or trace function written in Python, Python 3.10 keeps a dict of each frame's locals, which would count too.
_SOLE_REFERENCE = _count_references([object()])


class Run:
    """A running backward pass. nodes: all that it may reach; needed: those to run, None: all; create_graph: also of the gradients."""

    def __init__(
        self,
        nodes: set,
        dependencies: dict[Node, int],
        needed: set | None,
        captures: Captures | None,
        keep_graph: bool,
        create_graph: bool,
    ) -> None:
        self.number = next(_run_numbers)
        self.nodes, self.dependencies = nodes, dependencies
        self.needed, self.captures = needed, captures
        self.keep_graph, self.create_graph = keep_graph, create_graph
        self.buffers: dict[Node, list] = {}  # the gradients that have arrived
        self.ready: list[tuple[int, int, Node]] = []  # a heap of nodes all of whose gradients have arrived
        self.callbacks: list[Any] = []  # called after all nodes have run

    def reaches(self, node: Node) -> bool:
        """Whether this pass runs `node`, or has run it."""
        return node in (self.nodes if self.needed is None else self.needed)


class Captures:
    """For `grad(inputs=...)`: which gradients to keep, as (node, output number) -> index in the result."""

    def __init__(self, edges: list) -> None:
        self.indices: dict[Node, dict[int, list[int]]] = {}
        self.gradients: list[Any] = [None] * len(edges)
        for index, (node, number) in enumerate(edges):
            self.indices.setdefault(node, {}).setdefault(number, []).append(index)


def _compute_dependencies(roots: list[Node]) -> tuple[dict[Node, int], list[Node], set[Node]]:
    """The number of gradients that each node waits for, the nodes in postorder (a node after those it leads
    to), and as a set.
    """
    dependencies: dict[Node, int] = {}
    order: list[Node] = []
    visited: set[Node] = set()
    stack: list[tuple[Node, Any]] = []
    for root in roots:
        if root in visited:
            continue
        visited.add(root)
        stack.append((root, iter(root.next)))
        while stack:
            node, edges = stack[-1]
            for edge in edges:
                if edge is None:
                    continue
                next_node = edge[0]
                dependencies[next_node] = dependencies.get(next_node, 0) + 1
                if next_node not in visited:
                    visited.add(next_node)
                    stack.append((next_node, iter(next_node.next)))
                    break
            else:
                order.append(node)
                stack.pop()
    return dependencies, order, visited


def reachable_nodes(root: Node) -> set[Node]:
    """All nodes that a gradient at `root` may reach."""
    return _compute_dependencies([root])[2]


def _nodes_to_run(order: list[Node], captures: Captures | None, leaves: set | None) -> set | None:
    """The nodes on a path to a requested gradient; None if all gradients are requested."""
    if captures is None and leaves is None:
        return None
    targets = set(captures.indices) if captures is not None else leaves or set()
    needed = set()
    for node in order:
        if node in targets or any(edge is not None and edge[0] in needed for edge in node.next):
            needed.add(node)
    return needed


class VmapState(threading.local):
    """Whether `vmap` calls its function for further examples, which may differentiate the same graph."""

    more_examples = False


vmap_state = VmapState()


def run(
    roots: list[tuple[Node, int, Tensor]],
    keep_graph: bool,
    create_graph: bool,
    captures: Captures | None = None,
    leaves: set | None = None,
) -> None:
    """Propagate gradients from the roots through the graph. `captures`: keep these and write to no leaf;
    `leaves`: only these.
    """
    if Switches.quietly is not None and Switches.quietly(
        run, roots, keep_graph, create_graph, captures, leaves
    ):
        return
    keep_graph = keep_graph or vmap_state.more_examples
    call_untraced(_run, roots, keep_graph, create_graph, captures, leaves)


def _run(
    roots: list[tuple[Node, int, Tensor]],
    keep_graph: bool,
    create_graph: bool,
    captures: Captures | None,
    leaves: set | None,
) -> None:
    dependencies, order, reachable = _compute_dependencies([node for node, _, _ in roots])
    needed = _nodes_to_run(order, captures, leaves)
    running = Run(reachable, dependencies, needed, captures, keep_graph, create_graph)
    buffers, ready = running.buffers, running.ready
    _seed(buffers, roots)
    for node in {node for node, _, _ in roots}:
        if not dependencies.get(node):
            heapq.heappush(ready, (-node.seq, next(_arrivals), node))
    state = grad_state
    before = state.enabled, state.run, state.node
    state.enabled, state.run = create_graph, running
    try:
        while ready:
            node = heapq.heappop(ready)[2]
            if needed is not None and node not in needed:
                del buffers[node]
            else:
                in_evaluation_range(_evaluate, node, running)
        for callback in running.callbacks:
            call_user(callback)
    finally:
        state.enabled, state.run, state.node = before


_Roots = list[tuple[Node, int, Tensor]]


def _seed(buffers: dict, roots: _Roots) -> None:
    """Put the gradients of the roots into their buffers: where there are several, this is a node of its own, as in torch."""
    if len(roots) < 2:
        _add_roots(roots, buffers)
        return
    grad_state.seq += 1  # the node's number, see `_root_range`
    in_range(_root_evaluation, _apply_root, roots, buffers)


def _add_roots(roots: _Roots, buffers: dict) -> None:
    for node, output, gradient in roots:
        _add_to(buffers, node, output, gradient, True)


def _apply_root(roots: _Roots, buffers: dict) -> None:
    in_range(_root_application, _add_roots, roots, buffers)


def _root_range(name: str, scope: int, roots: _Roots) -> tuple:
    return name, scope, grad_state.seq - 1, roots[0][0].forward_thread, ()


def _root_evaluation(roots: _Roots, buffers: dict) -> tuple:
    return _root_range(evaluation_name(_ROOT), FUNCTION_SCOPE, roots)


def _root_application(roots: _Roots, buffers: dict) -> tuple:
    return _root_range(_ROOT, BACKWARD_SCOPE, roots)


_ROOT = "torch::autograd::GraphRoot"


def _add_to(buffers: dict, node: Node, number: int, gradient: Tensor, create_graph: bool) -> None:
    buffer = buffers.get(node)
    if buffer is None:
        buffer = buffers[node] = [None] * node.n_outputs
    if buffer[number] is None:
        buffer[number] = gradient
        return
    if create_graph:
        buffer[number] = _sum(buffer[number], gradient)
        return
    is_unshared = getrefcount(buffer[number]) == _SOLE_REFERENCE and (
        buffer[number]._storage is None or getrefcount(buffer[number]._storage) == _SOLE_REFERENCE
    )
    accumulated = buffer[number]
    buffer[number] = None
    if (
        is_unshared
        and not accumulated._is_sparse_layout
        and not gradient._is_sparse_layout
        and accumulated._array.dtype is gradient._array.dtype
        and accumulated._array.shape == gradient._array.shape
        and (accumulated._array.flags.c_contiguous or _is_dense(accumulated._array))
        and (Switches.asked is None or not Switches.asked(accumulated, gradient))
    ):
        buffer[number] = accumulated.add_(gradient)
    else:
        buffer[number] = _sum(accumulated, gradient)


def _sum(first: Tensor, second: Tensor) -> Tensor:
    """The sum of two gradients; a dense one goes first if the other is sparse."""
    return second + first if first._is_sparse_layout and not second._is_sparse_layout else first + second


def _is_dense(array: Any) -> bool:
    """Whether an array is dense in memory, in whatever order of dimensions."""
    from .._ops._layout import is_dense

    return is_dense(array)


def _evaluate(node: Node, running: Run) -> None:
    """Run one node, all of whose gradients have arrived, and pass its results on."""
    buffers, dependencies, needed = running.buffers, running.dependencies, running.needed
    captures, create_graph = running.captures, running.create_graph
    buffer = buffers.pop(node)  # the only reference, so that gradients are freed right after their use
    if node._output_hooks is not None or node._pre_hooks is not None or node._retain is not None:
        buffer = _run_pre_hooks(node, buffer)
    if captures is not None:
        captured = captures.indices.get(node)
        if captured is not None:
            if isinstance(node, AccumulateGrad) and node.variable._hooks:
                buffer = [run_tensor_hooks(node.variable._hooks, buffer[0])]
            for number, indices in captured.items():
                for index in indices:
                    captures.gradients[index] = buffer[number]
        if needed is not None and not any(edge is not None and edge[0] in needed for edge in node.next):
            return
    if node.__class__ is AccumulateGrad:
        hook_gradients = tuple(buffer) if node._post_hooks else ()
        _accumulate(node, buffer, hook_gradients)
        if node._post_hooks:
            _run_post_hooks(node, (), hook_gradients)
        return
    if buffer[0] is None and not node.takes_none and buffer.count(None) == len(buffer):
        results: tuple = (None,) * len(node.next)
    elif needed is None and not Switches.anomaly:
        results = in_node_range(_apply_node, node, buffer)
    else:
        results = _apply(node, buffer, needed)
    if node._post_hooks:
        results = _run_post_hooks(node, _fit_all(node, results, needed), buffer)
    if not running.keep_graph:
        node.release()
    del buffer
    edges = node.next
    gradients = list(results)
    del results
    if len(gradients) != len(edges):
        gradients = _match_results(node, gradients, len(edges))
    for index, edge in enumerate(edges):
        if edge is None:
            continue
        next_node, number = edge
        gradient = gradients[index]
        gradients[index] = None
        if needed is None or next_node in needed:
            if gradient is not None:
                gradient = _fit(node, index, gradient, next_node, number)
                _add_to(buffers, next_node, number, gradient, create_graph)
                del gradient
            elif next_node not in buffers:
                buffers[next_node] = [None] * next_node.n_outputs
        n_missing = dependencies[next_node] - 1
        dependencies[next_node] = n_missing
        if not n_missing and next_node in buffers:
            heapq.heappush(running.ready, (-next_node.seq, next(_arrivals), next_node))


def _apply(node: Node, buffer: list, needed: set | None) -> tuple:
    """Run a node; of an op's node compute only the gradients on a path to a requested one."""
    edges = node.next
    if needed is not None and hasattr(node, "op"):
        node.next = tuple([edge if edge is not None and edge[0] in needed else None for edge in edges])
    try:
        if Switches.anomaly:
            from .anomaly_mode import apply_watched

            return apply_watched(node, buffer, _apply_as_range)
        return _apply_as_range(node, buffer)
    finally:
        if node.next is not edges:
            node.next = edges


def _apply_as_range(node: Node, buffer: list) -> tuple:
    return in_node_range(_apply_node, node, buffer)


def _apply_node(node: Node, buffer: list) -> tuple:
    """Compute the gradients of a node. Complex gradients of real tensors become real here, as part of the node."""
    gradients: Any = buffer
    if node.frees_gradients and not node._post_hooks:
        gradients = tuple(buffer)
        buffer[:] = [None] * len(buffer)
    if node.is_users:
        return call_user(node.apply, *gradients)
    results = node.apply(*gradients)
    del gradients
    for gradient in results:
        if (
            gradient.__class__ is Tensor
            and not gradient._array_missing
            and gradient._array.dtype.kind in "cW"
        ):
            return _real_parts(node, results)
    return results


def _real_parts(node: Node, results: tuple) -> tuple:
    """Make complex gradients of real tensors real."""
    for place, gradient in enumerate(results):
        if (
            gradient.__class__ is Tensor
            and not gradient._array_missing
            and gradient._array.dtype.kind in "cW"
        ):
            edge = node.next[place] if place < len(node.next) else None
            if edge is not None and edge[0]._input_metadata_of(edge[1])[1].kind not in "cW":
                real = _dispatch.FUNCTIONS["real"](gradient)
                results = (*results[:place], real, *results[place + 1 :])
    return results


def _match_results(node: Node, results: list, count: int) -> list:
    if len(results) > count and all(r is None for r in results[count:]):
        return results[:count]
    raise RuntimeError(
        f"function {node.name()} returned an incorrect number of gradients (expected {count}, got {len(results)})"
    )


def _fit(node: Node, index: int, gradient: Tensor, next_node: Node, number: int) -> Tensor:
    """The gradient with the shape and dtype of the tensor it belongs to."""
    shape, np_dtype = next_node._input_metadata_of(number)
    if (gradient._array_missing or gradient._is_sparse_layout) and _has_no_layout(gradient):
        return gradient
    array = gradient._array
    if array.shape != shape:
        gradient = _reduce_to(node, index, gradient, shape)
    if array.dtype is not np_dtype and array.dtype != np_dtype:
        if array.dtype.kind in "cW" and np_dtype.kind not in "cW":
            gradient = _dispatch.FUNCTIONS["real"](gradient)
            if gradient._array.dtype == np_dtype:
                return gradient
        gradient = gradient.to(_dtype.BY_NUM[np_dtype.num])
    return gradient


def _fit_all(node: Node, results: tuple, needed: set | None) -> tuple:
    """All gradients in the form that hooks get: None for those that an op's node did not compute."""
    edges = node.next
    if needed is not None and hasattr(node, "op"):
        edges = tuple([edge if edge is not None and edge[0] in needed else None for edge in edges])
        results = tuple([None if edge is None else g for g, edge in zip(results, edges)])
    if len(results) != len(edges):
        results = tuple(_match_results(node, list(results), len(edges)))
    return tuple(
        g if g is None or edge is None else _fit(node, place, g, *edge)
        for place, (g, edge) in enumerate(zip(results, edges))
    )


def _reduce_to(node: Node, index: int, gradient: Tensor, shape: tuple) -> Tensor:
    """Sum a gradient over the dimensions along which its tensor was broadcast."""
    grad_shape = gradient._array.shape
    n_leading = len(grad_shape) - len(shape)
    if n_leading < 0 or any(n != m and m != 1 for n, m in zip(grad_shape[n_leading:], shape)):
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {index} - got {list(grad_shape)} but expected shape compatible "
            f"with {list(shape)}"
        )
    if not shape:
        return gradient.sum()
    dims = list(range(n_leading)) + [
        d for d in range(n_leading, len(grad_shape)) if shape[d - n_leading] == 1 and grad_shape[d] != 1
    ]
    if dims:
        gradient = gradient.sum(dims, True)
    if n_leading:
        gradient = gradient.view(shape)
    return gradient


def _accumulate(node: AccumulateGrad, buffer: list, hook_gradients: tuple) -> None:
    """Add the gradient in `buffer` to the leaf's `.grad`. If `hook_gradients`
    refers to it too, the leaf stores a copy.
    """
    variable = node.variable
    if variable._hooks:
        buffer[0] = run_tensor_hooks(variable._hooks, buffer[0])
    in_node_range(_add_to_leaf, node, buffer)
    if variable._post_accumulate_hooks:
        for hook in list(variable._post_accumulate_hooks.values()):
            result = call_user(hook, variable)
            if result is not None:
                check_hook_result(hook, result, variable)


def _add_to_leaf(node: AccumulateGrad, buffer: list) -> None:
    variable, create_graph = node.variable, grad_state.run.create_graph
    is_unshared = getrefcount(buffer[0]) == _SOLE_REFERENCE
    gradient = buffer[0]
    buffer[0] = None
    previous = variable._grad
    if gradient is None:
        pass
    elif previous is None:
        if is_unshared and not create_graph and _same_layout(gradient, variable):
            variable._grad = gradient.detach()
        else:
            variable._grad = _layout_copy(gradient, variable)
    elif create_graph:
        variable._grad = previous + gradient
    elif previous._is_sparse_layout and not gradient._is_sparse_layout:
        variable._grad = gradient + previous
    else:
        previous.add_(gradient)


def _has_no_layout(gradient: Tensor) -> bool:
    """Whether a tensor has no strides: sparse and meta tensors; wrapper subclasses have them."""
    return gradient._is_sparse_layout or (gradient._array_missing and gradient.is_meta)


def _same_layout(gradient: Tensor, variable: Tensor) -> bool:
    if gradient._is_sparse_layout:  # its values may be a view of an expanded gradient
        return bool(
            gradient._elements.flags.c_contiguous
            and (not gradient.is_sparse or gradient._places.flags.c_contiguous)
        )
    if _has_no_layout(gradient) or not grad_state.layout_policy:
        return True
    g, v = gradient._array, variable._array
    if v.flags.c_contiguous or not _is_dense(v):
        return bool(g.flags.c_contiguous)
    return g.strides == v.strides


def _layout_copy(gradient: Tensor, variable: Tensor) -> Tensor:
    """A copy that lies in memory as the variable does, or contiguously if the variable is expanded or has gaps."""
    if _has_no_layout(gradient) or not grad_state.layout_policy:
        return gradient.clone()
    if not variable._array_missing and not _is_dense(variable._array):
        return gradient.clone(memory_format=_dtype.contiguous_format)
    return gradient.new_empty_strided(variable.shape, variable.stride()).copy_(gradient)


# ---------------------------------------------------------------------------------------------------- hooks


def run_tensor_hooks(hooks: dict, gradient: Any) -> Any:
    """Pass a gradient through a tensor's hooks."""
    for hook in list(hooks.values()):
        result = call_user(hook, gradient)
        if result is not None:
            gradient = check_hook_result(hook, result, gradient)
    return gradient


def check_hook_result(hook: Any, result: Any, gradient: Any) -> Any:
    """Raise if a hook returned a gradient of another shape or dtype."""
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if gradient is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if result.dtype is not gradient.dtype:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was torch.{gradient.dtype._abbr}Tensor got "
            f"torch.{result.dtype._abbr}Tensor)"
        )
    if result.shape != gradient.shape:
        raise RuntimeError(f"hook '{_hook_name(hook)}' has changed the size of value")
    return result


def _hook_name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")


def _replacement_gradients(hook: Any, result: Any, gradients: tuple) -> tuple:
    """All gradients after a hook on a node; the hook may replace them."""
    if result is None:
        return gradients
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(gradients):
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has returned an incorrect number of values (got {len(result)}, but expected {len(gradients)})"
        )
    return tuple([None if r is None else check_hook_result(hook, r, g) for r, g in zip(result, gradients)])


def _run_pre_hooks(node: Node, buffer: list) -> list:
    if node._output_hooks:
        for number, hooks in list(node._output_hooks.items()):
            buffer[number] = run_tensor_hooks(hooks, buffer[number])
    if node._pre_hooks:
        for hook in list(node._pre_hooks.values()):
            gradients = tuple(buffer)
            buffer = list(_replacement_gradients(hook, call_user(hook, gradients), gradients))
    if node._retain:
        for number, reference in node._retain.items():
            tensor = reference()
            if tensor is not None and buffer[number] is not None:
                gradient = buffer[number]
                tensor._grad = gradient.clone() if tensor._grad is None else tensor._grad + gradient
    return buffer


def _run_post_hooks(node: Node, results: tuple, buffer: Any) -> tuple:
    gradients = tuple(buffer)
    for hook in list(node._post_hooks.values()):  # type: ignore[union-attr]
        results = _replacement_gradients(hook, call_user(hook, results, gradients), results)
    return results
