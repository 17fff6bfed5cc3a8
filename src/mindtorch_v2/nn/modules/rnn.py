"""Recurrent layers and cells: sizes in, modules whose forward is one recurrent aten op out."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import mindtorch_v2 as torch

from ..._ops import functions as ops
from ..._tensor import Tensor
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

# Rows of weight_ih and weight_hh, in units of hidden_size.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated name of tensor.index_select(dim, permutation)."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights per layer and direction, and input checks."""

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weights: list[Any] = []
        self._check_options(dropout)
        num_directions = 2 if bidirectional else 1
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        gate_size = _GATES[mode] * hidden_size
        real_hidden_size = proj_size if proj_size > 0 else hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            layer_input_size = input_size if layer == 0 else real_hidden_size * num_directions
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (gate_size, layer_input_size),
                "weight_hh": (gate_size, real_hidden_size),
            }
            shapes |= {"bias_ih": (gate_size,), "bias_hh": (gate_size,)}
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:num_directions]:
                parameters = {
                    kind: Parameter(torch.empty(shape, device=device, dtype=dtype))
                    for kind, shape in shapes.items()
                }
                # torch creates biases in any case and drops them here
                kinds = [kind for kind in parameters if bias or not kind.startswith("bias")]
                names = [f"{kind}_l{layer}{suffix}" for kind in kinds]
                for name, kind in zip(names, kinds):
                    setattr(self, name, parameters[kind])
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        for name in ("bias", "batch_first"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        if not isinstance(dropout, numbers.Number) or not 0 <= self.dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] "
                "representing the probability of an element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=3,
            )
        for name in ("input_size", "hidden_size"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]

    def _update_flat_weights(self) -> None:
        """Update the list of weights that the op takes."""
        held = self._parameters
        for name, weight in zip(self._flat_weights_names, self._flat_weights):
            if held.get(name) is not weight:
                self._init_flat_weights()
                return

    def __setattr__(self, attr: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and attr in names:
            index = names.index(attr)
            if index < len(self._flat_weights):
                self._flat_weights[index] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """No effect: only GPU libraries need all weights in one block."""

    def _apply(self, fn: Any, recurse: bool = True) -> RNNBase:
        super()._apply(fn, recurse)
        self._init_flat_weights()
        return self

    def reset_parameters(self) -> None:
        """Initialise all weights uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise if dtype, dimensions or features do not match the layer."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not torch.is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.size(-1)}"
            )

    def _expected_size(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of the hidden state for this input."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise if the hidden state has another size."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if input and hidden state do not match the layer or each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with the batch permuted."""
        if permutation is None:
            return hx
        return _apply_permutation(hx, permutation)

    def extra_repr(self) -> str:
        """Sizes, and options that differ from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        self._init_flat_weights()

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _zeros(self, like: Tensor, batch: Any, size: int) -> Tensor:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        return torch.zeros(layers, batch, size, dtype=like.dtype, device=like.device)

    def _run(self, op: Any, input: Any, hx: Tensor | None, name: str, error_suffix: str) -> Any:
        """The forward pass of RNN and GRU, which differ in the op only."""
        self._update_flat_weights()
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            largest = batch_sizes[0]
            if hx is None:
                hx = self._zeros(data, largest, self.hidden_size)
            else:
                hx = self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, hx, batch_sizes)
            output, hidden = op(data, batch_sizes, hx, self._flat_weights, *options)
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(hidden, unsorted_indices)
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D {error_suffix}")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zeros(input, input.size(batch_dim), self.hidden_size)
        elif batched:
            if hx.dim() != 3:
                raise RuntimeError(
                    f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor"
                )
        else:
            if hx.dim() != 2:
                raise RuntimeError(
                    f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor"
                )
            hx = hx.unsqueeze(1)
        self.check_forward_args(input, hx, None)
        output, hidden = op(input, hx, self._flat_weights, *options, self.batch_first)
        if batched:
            return output, hidden
        return output.squeeze(batch_dim), hidden.squeeze(1)


class RNN(RNNBase):
    """h' = tanh or relu of (W_ih x + b_ih + W_hh h + b_hh), over a sequence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity == "tanh":
            mode = "RNN_TANH"
        elif self.nonlinearity == "relu":
            mode = "RNN_RELU"
        else:
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(mode, *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        """The output of every step and the last hidden state."""
        op = ops.rnn_tanh if self.mode == "RNN_TANH" else ops.rnn_relu
        return self._run(op, input, hx, "RNN", "tensor instead")


class GRU(RNNBase):
    """A gated recurrent unit over a sequence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        """The output of every step and the last hidden state."""
        return self._run(ops.gru, input, hx, "GRU", "instead")


class LSTM(RNNBase):
    """A long short-term memory over a sequence, with projections if proj_size > 0."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of the cell state for this input."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise if input and states do not match the layer or each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Both states with the batch permuted."""
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def _zero_states(self, like: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        return (
            self._zeros(like, batch, self.proj_size or self.hidden_size),
            self._zeros(like, batch, self.hidden_size),
        )

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        """The output of every step, and the last hidden and cell state."""
        self._update_flat_weights()
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            largest = batch_sizes[0]
            if hx is None:
                hx = self._zero_states(data, largest)
            else:
                hx = self.permute_hidden(hx, sorted_indices)
            output, h, c = ops.lstm(data, batch_sizes, hx, self._flat_weights, *options)
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden((h, c), unsorted_indices)
        if input.dim() not in (2, 3):
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zero_states(input, input.size(batch_dim))
        else:
            expected_dim, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
            if hx[0].dim() != expected_dim or hx[1].dim() != expected_dim:
                raise RuntimeError(
                    f"For {kind} input, hx and cx should also be {expected_dim}-D but got "
                    f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
                )
            if not batched:
                hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        self.check_forward_args(input, hx, None)
        output, h, c = ops.lstm(input, hx, self._flat_weights, *options, self.batch_first)
        if batched:
            return output, (h, c)
        return output.squeeze(batch_dim), (h.squeeze(1), c.squeeze(1))


class RNNCellBase(Module):
    """What the cells share: the weights of one step."""

    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((rows, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(torch.empty(rows, device=device, dtype=dtype))
            self.bias_hh = Parameter(torch.empty(rows, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        """Sizes, and options that differ from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        if nonlinearity != "tanh":
            text += f", nonlinearity={nonlinearity}"
        return text

    def reset_parameters(self) -> None:
        """Initialise all weights uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dims(self, tensor: Tensor, what: str) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, op: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """The forward pass of RNNCell and GRUCell, which differ in the op only."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        hidden = op(input, hx, *self._weights())
        return hidden if batched else hidden.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of RNN."""

    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        if self.nonlinearity == "tanh":
            return self._step(ops.rnn_tanh_cell, input, hx)
        if self.nonlinearity == "relu":
            return self._step(ops.rnn_relu_cell, input, hx)
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of LSTM."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next hidden and cell state."""
        self._check_dims(input, "input")
        if hx is not None:
            for index, state in enumerate(hx):
                self._check_dims(state, f"hx[{index}]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = ops.lstm_cell(input, hx, *self._weights())
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of GRU."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        return self._step(ops.gru_cell, input, hx)
