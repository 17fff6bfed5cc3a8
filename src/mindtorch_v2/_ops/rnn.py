"""Recurrent layers and cells: RNN, LSTM, GRU. A float32 LSTM layer is one kernel over all its steps, each way; the others step by ops."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, function, op
from .._dtype import float32
from .._meta import is_meta
from . import _core
from ._children import Child, child, clone, contiguous, dtype_number, empty, tensor, zeros, zeros_like
from ._double_backward import through
from ._namespace import functions as F
from .creation import _zeros

# ---------------------------------------------------------------------------------------------------- steps


def _tanh_step(gates: Any, hidden: Any, w_hh: Any, b_hh: Any) -> Any:
    return F.tanh(F.add_(F.linear(hidden, w_hh, b_hh), gates))


def _relu_step(gates: Any, hidden: Any, w_hh: Any, b_hh: Any) -> Any:
    return F.relu(F.add_(F.linear(hidden, w_hh, b_hh), gates))


def _gru_step(gates: Any, hidden: Any, w_hh: Any, b_hh: Any) -> Any:
    from_input = F.unsafe_chunk(gates, 3, 1)
    from_hidden = F.unsafe_chunk(F.linear(hidden, w_hh, b_hh), 3, 1)
    reset = F.sigmoid_(F.add_(from_hidden[0], from_input[0]))
    update = F.sigmoid_(F.add_(from_hidden[1], from_input[1]))
    new = F.tanh_(F.add(from_input[2], F.mul_(from_hidden[2], reset)))
    return F.add_(F.mul_(F.sub(hidden, new), update), new)


def _lstm_gates(gates: Any, cell: Any) -> tuple[Any, Any]:
    """Hidden and cell state after a step, from the four gates' sums."""
    chunks = F.unsafe_chunk(gates, 4, 1)
    keep_in, forget = F.sigmoid_(chunks[0]), F.sigmoid_(chunks[1])
    new, out = F.tanh_(chunks[2]), F.sigmoid_(chunks[3])
    after = F.add_(F.mul(forget, cell), F.mul(keep_in, new))
    return F.mul(out, F.tanh(after)), after


def _lstm_step(gates: Any, state: tuple, w_hh: Any, b_hh: Any, w_hr: Any = None) -> tuple:
    hidden, cell = _lstm_gates(F.add_(F.linear(state[0], w_hh, b_hh), gates), state[1])
    return (hidden if w_hr is None else F.matmul(hidden, F.t(w_hr))), cell


# ---------------------------------------------------------------------------------------------------- cells

_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _check_cell(input: Any, states: Any, w_ih: Any, w_hh: Any) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}"
        )
    for number, state in enumerate(states):
        if input.shape[0] != state.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {state.shape[0]}"
            )
        if state.shape[1] != w_hh.shape[1]:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected {w_hh.shape[1]}"
            )


@composite(f"aten::lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", expose="function")
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    if isinstance(hx, _dispatch.Tensor):
        raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
    hidden, cell = hx
    _check_cell(input, hx, w_ih, w_hh)
    gates = F.linear(hidden, w_hh, b_hh)
    return _lstm_gates(F.add_(gates, F.linear(input, w_ih, b_ih)), cell)


@composite(f"aten::gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", expose="function")
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    _check_cell(input, (hx,), w_ih, w_hh)
    return _gru_step(F.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def _simple_cell(aten_name: str, activation: str) -> None:
    @composite(f"{aten_name}(Tensor input, Tensor hx, {_CELL}) -> Tensor", expose="function")
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        _check_cell(input, (hx,), w_ih, w_hh)
        gates = F.linear(hx, w_hh, b_hh)
        return getattr(F, activation)(F.add_(gates, F.linear(input, w_ih, b_ih)))


_simple_cell("aten::rnn_tanh_cell", "tanh")
_simple_cell("aten::rnn_relu_cell", "relu")


# ---------------------------------------------------------------------------------------------------- the fused LSTM layer


def _gates_first(matrix: np.ndarray, size: int) -> np.ndarray:
    """Rows in the order i, f, o, g instead of torch's i, f, g, o, those of the sigmoids halved."""
    ordered = np.concatenate([matrix[: 2 * size], matrix[3 * size :], matrix[2 * size : 3 * size]])
    ordered[: 3 * size] *= 0.5
    return ordered


def _workspace(space: np.ndarray, steps: int, batch: int, size: int) -> tuple[np.ndarray, ...]:
    """What backward needs, as views of one block: gates after activation, cells before each step and after the last, tanh of cells."""
    gates_end = steps * batch * 4 * size
    cells_end = gates_end + (steps + 1) * batch * size
    return (
        space[:gates_end].reshape(steps, batch, 4 * size),
        space[gates_end:cells_end].reshape(steps + 1, batch, size),
        space[cells_end:].reshape(steps, batch, size),
    )


def _lstm_forward(
    x: np.ndarray, w_ih: np.ndarray, w_hh: np.ndarray, bias: Any, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All steps of one direction: outputs, the last cells, and the workspace."""
    steps, batch, width = x.shape
    size = w_hh.shape[1]
    space = np.empty(steps * batch * 6 * size + batch * size, x.dtype)
    gates, cells, curves = _workspace(space, steps, batch, size)
    sums = gates.reshape(steps * batch, 4 * size)
    np.matmul(x.reshape(steps * batch, width), _gates_first(w_ih, size).T, sums)
    if bias is not None:
        row = _gates_first(bias, size)
        if _core.add_row(sums, row) is None:
            np.add(sums, row, sums)
    recurrent = np.ascontiguousarray(_gates_first(w_hh, size).T)
    out = np.empty((steps, batch, size), x.dtype)
    cells[0] = c
    h = np.ascontiguousarray(h)
    if _core.lstm_forward(gates, recurrent, h, cells, curves, out) is None:
        _lstm_steps(gates, recurrent, h, cells, curves, out)
    return out, cells[steps], space


def _lstm_steps(
    gates: np.ndarray,
    recurrent: np.ndarray,
    h: np.ndarray,
    cells: np.ndarray,
    curves: np.ndarray,
    out: np.ndarray,
) -> None:
    """The steps, from the sums of the gates (i, f, o, g) over the inputs; all arguments but `recurrent` and `h` are written.

    sigmoid(z) = (tanh(z / 2) + 1) / 2: with the sums of the sigmoids halved beforehand one tanh serves all four gates.
    """
    steps, batch, four = gates.shape
    size = four // 4
    product = np.empty((batch, four), gates.dtype)
    scratch = np.empty((batch, size), gates.dtype)
    for step in range(steps):
        now = gates[step]
        np.matmul(h, recurrent, product)
        np.add(now, product, now)
        np.tanh(now, now)
        logistic = now[:, : 3 * size]
        np.add(logistic, 1, logistic)
        np.multiply(logistic, 0.5, logistic)
        after = np.multiply(now[:, size : 2 * size], cells[step], cells[step + 1])
        np.add(after, np.multiply(now[:, :size], now[:, 3 * size :], scratch), after)
        curve = np.tanh(after, curves[step])
        h = np.multiply(now[:, 2 * size : 3 * size], curve, out[step])


def _lstm_backward(
    g_out: Any, g_h: Any, g_c: Any, space: np.ndarray, w_hh: np.ndarray, shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of the gates' sums at every step, as (steps, batch, gates i f g o), and of the first states."""
    steps, batch, size = shape
    gates, cells, curves = _workspace(space, steps, batch, size)
    to_gates = np.empty((steps, batch, 4 * size), space.dtype)  # i, f, g, o: torch's order, as w_hh has it
    dh, dc = (
        np.zeros((batch, size), space.dtype) if g is None else np.array(g, space.dtype, order="C")
        for g in (g_h, g_c)
    )
    flowing = None if g_out is None else np.ascontiguousarray(g_out)
    w_hh = np.ascontiguousarray(w_hh)
    if _core.lstm_backward(flowing, dh, dc, gates, cells, curves, w_hh, to_gates) is None:
        _lstm_steps_back(flowing, dh, dc, gates, cells, curves, w_hh, to_gates)
    return to_gates, dh, dc


def _lstm_steps_back(
    flowing: Any,
    dh: np.ndarray,
    dc: np.ndarray,
    gates: np.ndarray,
    cells: np.ndarray,
    curves: np.ndarray,
    w_hh: np.ndarray,
    to_gates: np.ndarray,
) -> None:
    """The steps backwards: dh and dc become the gradients of the first states, to_gates those of the gates' sums."""
    steps, batch, four = gates.shape
    size = four // 4
    i, f, o, n = (gates[:, :, k * size : (k + 1) * size] for k in range(4))
    # factors that do not depend on incoming gradients, for all steps at once
    to_cell = o * (1 - curves * curves)
    factors = np.empty((steps, batch, 3, size), gates.dtype)  # i, f, g
    np.multiply(n * i, 1 - i, factors[:, :, 0])
    np.multiply(cells[:-1] * f, 1 - f, factors[:, :, 1])
    np.multiply(i, 1 - n * n, factors[:, :, 2])
    to_out = curves * o * (1 - o)
    split = to_gates.reshape(steps, batch, 4, size)
    product = np.empty((batch, size), gates.dtype)
    for step in range(steps - 1, -1, -1):
        if flowing is not None:
            np.add(dh, flowing[step], dh)
        np.add(dc, np.multiply(dh, to_cell[step], product), dc)
        np.multiply(factors[step], dc[:, None], split[step, :, :3])
        np.multiply(dh, to_out[step], split[step, :, 3])
        np.matmul(to_gates[step], w_hh, dh)
        np.multiply(dc, f[step], dc)


_LAYER = (
    "Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, "
    "int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train"
)


@op(f"aten::mkldnn_rnn_layer({_LAYER}) -> (Tensor, Tensor, Tensor, Tensor)", expose="no", outputs=3)
def lstm_layer(
    input: np.ndarray,
    weight0: np.ndarray,
    weight1: np.ndarray,
    weight2: np.ndarray,
    weight3: np.ndarray,
    hx_: np.ndarray,
    cx_: np.ndarray,
    reverse: bool,
    batch_sizes: Any,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    *_: Any,
) -> Any:
    x = input[::-1] if reverse else input
    bias = weight2 + weight3 if has_biases else None
    out, c, space = _lstm_forward(np.ascontiguousarray(x), weight0, weight1, bias, hx_, cx_)
    return (np.ascontiguousarray(out[::-1]) if reverse else out), out[-1].copy(), c.copy(), space


def _bias(weight3: Any, weight4: Any, has_biases: bool, rows: int) -> Child:
    """The sum of the biases."""
    return (
        child("aten::add.Tensor", weight3, weight4)
        if has_biases
        else zeros((rows,), dtype_number(weight3), False)
    )


@lstm_layer.children
def _(
    input: Any,
    weight0: Any,
    weight1: Any,
    weight2: Any,
    weight3: Any,
    hx_: Any,
    cx_: Any,
    reverse: bool,
    batch_sizes: Any,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    *_: Any,
) -> Any:
    dtype = dtype_number(input)
    steps, batch, _ = input.shape
    outputs = ((steps, batch, hidden_size), hx_.shape, cx_.shape)
    workspace = empty((steps * batch * 6 * hidden_size + batch * hidden_size,), dtype)
    bias = _bias(weight2, weight3, has_biases, weight0.shape[0])
    return [*[empty(shape, dtype, allocates=False) for shape in outputs], bias, workspace]


def _lstm_layer_by_ops(
    reverse: bool,
    has_biases: bool,
    x: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    hidden: Any,
    cell: Any,
) -> tuple:
    """The results of a layer, by ops that can be differentiated."""
    gates = F.linear(x, w_ih, b_ih + b_hh if has_biases else None).unbind(0)
    outputs = []
    for sums in reversed(gates) if reverse else gates:
        i, f, n, o = F.unsafe_chunk(sums + F.linear(hidden, w_hh), 4, 1)
        cell = F.sigmoid(f) * cell + F.sigmoid(i) * F.tanh(n)
        hidden = F.sigmoid(o) * F.tanh(cell)
        outputs.append(hidden)
    return F.stack(outputs[::-1] if reverse else outputs), hidden, cell


@lstm_layer.backward("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_")
def _(
    grads: Any,
    input: Any,
    weight0: Any,
    weight1: Any,
    weight2: Any,
    weight3: Any,
    hx_: Any,
    cx_: Any,
    result0: Any,
    result1: Any,
    result2: Any,
    result3: Any,
    reverse: bool,
    batch_sizes: Any,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
    needs: Any,
) -> Any:
    if _dispatch.grad_state.enabled:
        layer = partial(_lstm_layer_by_ops, reverse, has_biases)
        return through(grads, layer, input, weight0, weight1, weight2, weight3, hx_, cx_)
    gradients = F.mkldnn_rnn_layer_backward(
        input,
        weight0,
        weight1,
        weight2,
        weight3,
        hx_,
        cx_,
        result0,
        result1,
        result2,
        *grads,
        reverse,
        mode,
        hidden_size,
        num_layers,
        has_biases,
        train,
        bidirectional,
        batch_sizes,
        batch_first,
        result3,
    )
    return tuple([gradient if needed else None for gradient, needed in zip(gradients, needs)])


@op(
    "aten::mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, Tensor cx_tmp, "
    "Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode, int hidden_size, "
    "int num_layers, bool has_biases, bool train, bool bidirectional, int[] batch_sizes, bool batch_first, Tensor workspace) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    expose="no",
)
def lstm_layer_backward(
    input: np.ndarray,
    weight1: np.ndarray,
    weight2: np.ndarray,
    weight3: Any,
    weight4: Any,
    hx_: np.ndarray,
    cx_tmp: np.ndarray,
    output: np.ndarray,
    hy_: Any,
    cy_: Any,
    grad_output: Any,
    grad_hy: Any,
    grad_cy: Any,
    reverse: bool,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    train: bool,
    bidirectional: bool,
    batch_sizes: Any,
    batch_first: bool,
    workspace: np.ndarray,
) -> Any:
    steps, batch, width = input.shape
    size = weight2.shape[1]
    x, out, g = (a if a is None or not reverse else a[::-1] for a in (input, output, grad_output))
    to_gates, dh, dc = _lstm_backward(g, grad_hy, grad_cy, workspace, weight2, (steps, batch, size))
    flat = to_gates.reshape(steps * batch, 4 * size)
    before = np.concatenate([hx_[None], out[:-1]]).reshape(steps * batch, size)
    to_input = np.matmul(flat, weight1).reshape(steps, batch, width)
    to_w1 = np.matmul(flat.T, np.ascontiguousarray(x).reshape(steps * batch, width))
    to_w2 = np.matmul(flat.T, before)
    if has_biases:
        to_bias = _core.sum_columns(flat, False)
        if to_bias is None:
            to_bias = np.add.reduce(flat, axis=0)
    else:
        to_bias = np.zeros(np.shape(weight3), flat.dtype)
    if reverse:
        to_input = np.ascontiguousarray(to_input[::-1])
    return to_input, to_w1, to_w2, to_bias, to_bias.copy(), dh, dc


@lstm_layer_backward.children
def _(
    input: Any,
    weight1: Any,
    weight2: Any,
    weight3: Any,
    weight4: Any,
    hx_: Any,
    cx_tmp: Any,
    output: Any,
    hy_: Any,
    cy_: Any,
    grad_output: Any,
    grad_hy: Any,
    grad_cy: Any,
    *rest: Any,
) -> Any:
    inside: list[Child] = []
    for gradient, like in ((grad_output, output), (grad_hy, hx_), (grad_cy, cx_tmp)):
        inside += [zeros_like(like, 0, False)] if gradient is None else contiguous(gradient)
    dtype = dtype_number(input)
    rows = weight1.shape[0]
    inside.append(_bias(weight3, weight4, rest[4], rows))
    results = (input.shape, hx_.shape, cx_tmp.shape, weight1.shape, weight2.shape, (rows,))
    inside += [empty(shape, dtype, allocates=shape is input.shape) for shape in results]
    return [*inside, clone(tensor((rows,), input), allocates=False)]


# ---------------------------------------------------------------------------------------------------- whole layers


def _groups(params: Any, has_biases: bool, projected: bool = False) -> list[tuple]:
    """(w_ih, w_hh, b_ih, b_hh, w_hr) for each layer and direction."""
    width = (4 if has_biases else 2) + projected
    groups = []
    for start in range(0, len(params), width):
        part = list(params[start : start + width])
        biases = part[2:4] if has_biases else [None, None]
        groups.append((part[0], part[1], *biases, part[-1] if projected else None))
    return groups


def _sequence(step: Any, input: Any, state: Any, group: tuple, reverse: bool) -> tuple[Any, Any]:
    """One direction of one layer over a (steps, batch, width) input."""
    if not input.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    sums = F.unbind(F.linear(input, group[0], group[2]), 0)
    outputs = []
    pairs = isinstance(state, tuple)
    for gates in reversed(sums) if reverse else sums:
        extra = (group[4],) if pairs else ()
        state = step(gates, state, group[1], group[3], *extra)
        outputs.append(state[0] if pairs else state)
    if reverse:
        outputs.reverse()
    return F.stack(outputs, 0), state


def _fused(
    input: Any, state: Any, group: tuple, reverse: bool, has_biases: bool, train: bool
) -> tuple[Any, Any]:
    hidden, cell = state
    third, fourth = (
        (group[2], group[3])
        if has_biases
        else tuple(_zeros(tuple(weight.shape), dtype=weight.dtype) for weight in group[:2])
    )
    out, h, c, _ = lstm_layer(
        input,
        group[0],
        group[1],
        third,
        fourth,
        hidden,
        cell,
        reverse,
        (),
        2,
        group[1].shape[1],
        1,
        has_biases,
        False,
        False,
        train,
    )
    return out, (h, c)


def _layers(
    input: Any, states: Any, run: Any, num_layers: int, bidirectional: bool, dropout: float, train: bool
) -> tuple[Any, list]:
    """Stack layers, joining directions and dropping out between layers."""
    directions = 2 if bidirectional else 1
    last = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            out, state = run(input, states[number], number, direction == 1)
            outputs.append(out)
            last.append(state)
        input = outputs[0] if directions == 1 else F.cat(outputs, outputs[0].ndim - 1)
        if dropout > 0 and train and layer + 1 < num_layers:
            input = F.dropout(input, dropout, True)
    return input, last


@composite(
    "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
    expose="no",
)
def lstm_input(
    input: Any,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    projected = hx[0].shape[2] != hx[1].shape[2]
    groups = _groups(params, has_biases, projected)
    fused = (
        not projected and input.dtype is float32 and not is_meta(input) and input.shape[0] and input.shape[1]
    )
    if batch_first:
        input = F.transpose(input, 0, 1)
    if fused:
        if not input.is_contiguous():
            input = F.contiguous(input)
        out, last = _layers(
            input,
            _Selected(hx),
            lambda x, s, k, reverse: _fused(x, s, groups[k], reverse, has_biases, train),
            num_layers,
            bidirectional,
            dropout,
            train,
        )
    else:
        states = list(zip(F.unbind(hx[0], 0), F.unbind(hx[1], 0)))
        out, last = _layers(
            input,
            states,
            lambda x, s, k, reverse: _sequence(_lstm_step, x, s, groups[k], reverse),
            num_layers,
            bidirectional,
            dropout,
            train,
        )
    hidden, cell = F.stack([s[0] for s in last], 0), F.stack([s[1] for s in last], 0)
    return (F.transpose(out, 0, 1) if batch_first else out), hidden, cell


class _Selected:
    """The states of each layer and direction, selected when they are needed."""

    def __init__(self, states: Any) -> None:
        self.states = states

    def __getitem__(self, number: int) -> tuple:
        return tuple([F.select(state, 0, number) for state in self.states])


def _packed_sequence(
    step: Any, data: Any, sizes: list[int], state: Any, group: tuple, reverse: bool
) -> tuple[Any, Any]:
    """One direction of one layer over packed data: the batch shrinks (or, backwards, grows) as sequences end."""
    pairs = isinstance(state, tuple)
    whole = state if pairs else (state,)
    sums = F.linear(data, group[0], group[2])
    extra = (group[4],) if pairs else ()
    outputs: list[Any] = []
    finished: list[tuple] = []
    previous = sizes[-1] if reverse else sizes[0]
    now = tuple(s.narrow(0, 0, previous) for s in whole) if reverse else whole
    place = sums.shape[0] if reverse else 0
    for size in reversed(sizes) if reverse else sizes:
        if reverse and size > previous:
            begun = [w.narrow(0, previous, size - previous) for w in whole]
            now = tuple(F.cat([s, w], 0) for s, w in zip(now, begun))
        place -= size if reverse else 0
        gates = sums.narrow(0, place, size)
        place += 0 if reverse else size
        if size < previous:
            finished.append(tuple(s.narrow(0, size, previous - size) for s in now))
            now = tuple(s.narrow(0, 0, size) for s in now)
        previous = size
        result = step(gates, now if pairs else now[0], group[1], group[3], *extra)
        now = tuple(result) if pairs else (result,)
        outputs.append(now[0])
    if reverse:
        outputs.reverse()
    together = F.cat(outputs, 0)
    if not reverse:
        finished.append(now)
        finished.reverse()
        now = tuple(F.cat([part[k] for part in finished], 0) for k in range(len(now)))
    return together, (now if pairs else now[0])


@composite(
    "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
    "bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
    expose="no",
)
def lstm_data(
    data: Any,
    batch_sizes: Any,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> Any:
    groups = _groups(params, has_biases, hx[0].shape[2] != hx[1].shape[2])
    sizes = batch_sizes._array.tolist()
    states = list(zip(F.unbind(hx[0], 0), F.unbind(hx[1], 0)))
    out, last = _layers(
        data,
        states,
        lambda x, s, k, reverse: _packed_sequence(_lstm_step, x, sizes, s, groups[k], reverse),
        num_layers,
        bidirectional,
        dropout,
        train,
    )
    return out, F.stack([s[0] for s in last], 0), F.stack([s[1] for s in last], 0)


@function(expose="function")
def lstm(*args: Any) -> Any:
    """A stack of LSTM layers over a batch of sequences, or over packed ones."""
    return lstm_data(*args) if isinstance(args[1], _dispatch.Tensor) else lstm_input(*args)


def _declare_layers(aten_name: str, step: Any) -> None:
    name = aten_name.removeprefix("aten::")

    @composite(
        f"{aten_name}.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
        "bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        expose="no",
    )
    def layers(
        input: Any,
        hx: Any,
        params: Any,
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        groups = _groups(params, has_biases)
        if batch_first:
            input = F.transpose(input, 0, 1)
        out, last = _layers(
            input,
            list(F.unbind(hx, 0)),
            lambda x, s, k, reverse: _sequence(step, x, s, groups[k], reverse),
            num_layers,
            bidirectional,
            dropout,
            train,
        )
        hidden = F.stack(last, 0)
        return (F.transpose_(out, 0, 1) if batch_first else out), hidden

    @composite(
        f"{aten_name}.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
        "bool train, bool bidirectional) -> (Tensor, Tensor)",
        expose="no",
    )
    def packed(
        data: Any,
        batch_sizes: Any,
        hx: Any,
        params: Any,
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> Any:
        groups = _groups(params, has_biases)
        sizes = batch_sizes._array.tolist()
        out, last = _layers(
            data,
            list(F.unbind(hx, 0)),
            lambda x, s, k, reverse: _packed_sequence(step, x, sizes, s, groups[k], reverse),
            num_layers,
            bidirectional,
            dropout,
            train,
        )
        return out, F.stack(last, 0)

    def front(*args: Any) -> Any:
        return packed(*args) if isinstance(args[2], _dispatch.Tensor) else layers(*args)

    front.__name__ = name
    front.__doc__ = f"A stack of {name} layers over a batch of sequences, or over packed ones."
    function(name, expose="function")(front)


_declare_layers("aten::gru", _gru_step)
_declare_layers("aten::rnn_tanh", _tanh_step)
_declare_layers("aten::rnn_relu", _relu_step)
