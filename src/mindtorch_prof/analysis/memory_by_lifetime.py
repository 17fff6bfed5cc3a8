"""Categories of memory by lifetime: a Trace and its tree in; what each allocation is for out, as far as its place and its lifetime tell.

For traces in which tensors cannot be told apart (files, recordings without shapes). Memory allocated in an optimizer's step that
outlasts the step is optimizer state. In the backward pass, memory that outlasts the pass is a gradient, other memory is autograd
detail. Memory of a forward op whose backward node ran is an activation; memory of an op that autograd does not see (a factory) is
an input; memory that lived inside one op is temporary. In a recording without a backward pass (inference), results of ops that take
tensors are activations. Parameters and gradients of modules are known by their addresses.
Anything else is unknown.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..allocations import lifetimes
from ..frames import is_autograd_call
from ..torch_api.memory_categories import CATEGORY_INDEX, Action, Category, Change
from ..trace import ANNOTATION, ENGINE, NODE, Trace
from ..tree import Tree, events_at, levels

_UNKNOWN = CATEGORY_INDEX[None]
_INPUT = CATEGORY_INDEX[Category.INPUT]
_TEMPORARY = CATEGORY_INDEX[Category.TEMPORARY]
_ACTIVATION = CATEGORY_INDEX[Category.ACTIVATION]
_GRADIENT = CATEGORY_INDEX[Category.GRADIENT]
_AUTOGRAD_DETAIL = CATEGORY_INDEX[Category.AUTOGRAD_DETAIL]
_PARAMETER = CATEGORY_INDEX[Category.PARAMETER]
_OPTIMIZER_STATE = CATEGORY_INDEX[Category.OPTIMIZER_STATE]
_NEVER = np.iinfo(np.int64).max  # the time at which memory is freed that outlives the recording


def changes_by_lifetime(trace: Trace, tree: Tree) -> list[Change]:
    """All allocations and frees with their categories, in the order of time; first the memory of modules that was there before."""
    memory = trace.memory
    born, died = lifetimes(memory.address, memory.nbytes)
    category = dict(zip(born.tolist(), categories_by_lifetime(trace, tree, born, died).tolist()))
    allocated = set(memory.address[born].tolist())
    changes: list[Change] = [
        (-1, Action.PREEXISTING.value, nbytes, _GRADIENT if is_gradient else _PARAMETER)
        for address, nbytes, is_gradient in memory.of_modules
        if address not in allocated and nbytes
    ]
    allocation_of = {free: allocation for allocation, free in zip(born.tolist(), died.tolist()) if free >= 0}
    times = (memory.time_ns + trace.origin_ns).tolist()
    without_address = set(np.flatnonzero(memory.address == 0).tolist())
    unmatched = 0  # bytes allocated without an address: what frees them is known by no more than its size
    for row, (time_ns, nbytes) in enumerate(zip(times, memory.nbytes.tolist())):
        if row in without_address:
            size = nbytes if nbytes > 0 else max(nbytes, -unmatched)
            unmatched += size
            if size:
                action = Action.CREATE if size > 0 else Action.DESTROY
                changes.append((time_ns, action.value, size, _UNKNOWN))
        elif row in category:
            changes.append((time_ns, Action.CREATE.value, nbytes, category[row]))
        elif row in allocation_of:
            changes.append((time_ns, Action.DESTROY.value, nbytes, category[allocation_of[row]]))
    return changes


def categories_by_lifetime(
    trace: Trace, tree: Tree, born: npt.NDArray[np.integer], died: npt.NDArray[np.integer]
) -> npt.NDArray[np.integer]:
    """The category of each allocation. born, died: rows of the trace's memory, as `lifetimes` gives them."""
    memory = trace.memory
    event = events_at(trace, tree.parent, memory.time_ns[born], memory.thread[born])
    end = np.where(died >= 0, memory.time_ns[np.maximum(died, 0)], _NEVER)
    backward = _outermost(tree, (trace.kind == NODE) | (trace.kind == ENGINE))
    step_names = [i for i, text in enumerate(trace.names) if text.startswith("Optimizer.step#")]
    step = _outermost(tree, (trace.kind == ANNOTATION) & np.isin(trace.name, step_names))
    outer_op = _outermost(tree, ~np.isin(trace.kind, (ANNOTATION, NODE, ENGINE)))
    nodes = (trace.kind == NODE) & (trace.sequence >= 0)
    differentiated = (trace.sequence >= 0) & np.isin(trace.sequence, trace.sequence[nodes])
    pass_end = _backward_ends(trace, memory.time_ns[born])
    # `backward` itself makes the gradient that it starts from
    starts_backward = np.array([any(map(is_autograd_call, stack)) for stack in trace.stacks] + [False])
    has_backward = bool(nodes.any())
    takes_tensors = [] if has_backward else [any(inputs.tensor_slots) for inputs in trace.input_table]
    of_modules = {address: is_gradient for address, _, is_gradient in memory.of_modules}

    category = np.full(len(born), _UNKNOWN, np.int64)
    for i, (address, around) in enumerate(zip(memory.address[born].tolist(), event.tolist())):
        if died[i] < 0 and address in of_modules:
            category[i] = _GRADIENT if of_modules[address] else _PARAMETER
            continue
        if around < 0:
            continue
        op = int(outer_op[around])
        inside_op = op >= 0 and end[i] <= trace.end_ns[op]
        if step[around] >= 0:
            outlasts_step = end[i] > trace.end_ns[step[around]]
            category[i] = _OPTIMIZER_STATE if outlasts_step else _TEMPORARY
        elif backward[around] >= 0:
            if trace.kind[around] not in (NODE, ENGINE) and inside_op:
                category[i] = _TEMPORARY
            else:
                category[i] = _GRADIENT if end[i] > pass_end[i] else _AUTOGRAD_DETAIL
        elif inside_op:
            category[i] = _TEMPORARY
        elif op >= 0 and (differentiated[op] or differentiated[around] or starts_backward[trace.stack[op]]):
            category[i] = _ACTIVATION
        elif op >= 0 and has_backward:
            category[i] = _INPUT if trace.sequence[op] < 0 else _UNKNOWN
        elif op >= 0 and trace.inputs[op] >= 0:
            category[i] = _ACTIVATION if takes_tensors[trace.inputs[op]] else _INPUT
    return category


def _backward_ends(trace: Trace, times: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """When the backward pass that runs at each time ends: its nodes follow each other with no forward op between them."""
    ends = np.sort(trace.end_ns[trace.kind == ENGINE])
    if not len(ends):
        return times
    forward = (trace.sequence >= 0) & (trace.forward_thread == 0) & ~np.isin(trace.kind, (NODE, ENGINE))
    starts = np.append(np.sort(trace.start_ns[forward]), _NEVER)
    until = starts[np.searchsorted(starts, times, side="right").clip(max=len(starts) - 1)]
    last = ends[np.maximum(np.searchsorted(ends, until, side="right") - 1, 0)]
    pass_ends: npt.NDArray[np.integer] = np.maximum(last, times)
    return pass_ends


def _outermost(tree: Tree, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.integer]:
    """For each event the outermost chosen one around it (or itself); -1: none."""
    outermost = np.full(len(chosen), -1, np.int64)
    for rows in levels(tree.depth):
        above = tree.parent[rows]
        inherited = np.where(above >= 0, outermost[np.maximum(above, 0)], -1)
        outermost[rows] = np.where(inherited >= 0, inherited, np.where(chosen[rows], rows, -1))
    return outermost
