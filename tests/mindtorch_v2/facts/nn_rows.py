"""How a row of nn_*_rows.txt is run: a torch-like package and an expression in, plain numbers and text out.

In layer rows (constructor | arguments of the call) and function rows `x(2, 3)` is a float tensor whose values
depend on its shape alone, `i(...)` an integer tensor, `seq(...)` a packed sequence. A layer is made after
`manual_seed(0)`, so its weights are facts too. In text rows the text counts: reprs, errors, warnings.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
LAYERS, FUNCTIONS, TEXTS = (
    (HERE / f"nn_{kind}_rows.txt").read_text().splitlines() for kind in ("layer", "function", "text")
)


def namespace(torch: Any) -> dict[str, Any]:
    """The names a row may use."""
    nn = torch.nn

    def x(*shape: int) -> Any:
        numbers = np.sin(np.arange(int(np.prod(shape)), dtype=np.float64) * 1.7 + len(shape)).reshape(shape)
        return torch.tensor(numbers.astype(np.float32)).requires_grad_()

    def i(values: Any) -> Any:
        return torch.tensor(values)

    def seq(*parts: Any, enforce_sorted: bool = True) -> Any:
        return nn.utils.rnn.pack_sequence(list(parts), enforce_sorted=enforce_sorted)

    def pad(*shape: int) -> Any:
        mask = torch.zeros(shape, dtype=torch.bool)
        mask[-1, -1] = True
        return mask

    def causal(size: int) -> Any:
        return nn.Transformer.generate_square_subsequent_mask(size)

    return {
        "torch": torch,
        "nn": nn,
        "F": nn.functional,
        "x": x,
        "i": i,
        "seq": seq,
        "pad": pad,
        "causal": causal,
    }


def _numbers(tensor: Any) -> dict[str, Any]:
    """Shape, dtype and what fixes the values: the first ones and three sums."""
    flat = tensor.detach().double().reshape(-1).numpy()
    places = np.arange(flat.size)
    sums = [flat.sum(), np.abs(flat).sum(), (flat * np.cos(places)).sum()]
    values = [float(f"{v:.8g}") for v in [*flat[:6], *sums]]
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype).split(".")[-1], "values": values}


def _tensors(value: Any) -> list[Any]:
    """The tensors in a nest of tuples, in order."""
    if hasattr(value, "dtype"):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _tensors(part)]
    return []


def _gradients(outputs: list[Any], sources: list[Any], describe: Any) -> list[Any]:
    """The gradients of the weighted sum of the outputs."""
    terms = []
    for output in outputs:
        if output.requires_grad and output.is_floating_point():
            weights = output.new_tensor(np.cos(np.arange(output.numel())).reshape(tuple(output.shape)))
            terms.append((output * weights).sum())
    if not terms or not sources:
        return []
    for source in sources:
        source.grad = None
    sum(terms[1:], terms[0]).backward()
    return [None if source.grad is None else describe(source.grad) for source in sources]


def run_layer(torch: Any, row: str, describe: Any = _numbers) -> dict[str, Any]:
    """What one layer shows: repr, state, output, gradients, state after the call. describe: a tensor in, plain data out."""
    constructor, arguments = (part.strip() for part in row.split(" | "))
    names = namespace(torch)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = eval(constructor, names | {"x": lambda *shape: names["x"](*shape).detach()})
        made = repr(layer)
        lazy = "Lazy" in constructor
        state = {} if lazy else {key: describe(value) for key, value in layer.state_dict().items()}
        torch.manual_seed(1)
        inputs = eval(f"({arguments},)", names)
        outputs = _tensors(layer(*inputs))
        leaves = [t for t in _tensors(inputs) if t.requires_grad and t.is_leaf]
        leaves = list({id(leaf): leaf for leaf in leaves}.values())
        sources = [p for p in layer.parameters() if p.requires_grad] + leaves
        gradients = _gradients(outputs, sources, describe)
    after = {key: describe(value) for key, value in layer.state_dict().items()}
    return {
        "repr": [made, repr(layer)],
        "state": state,
        "outputs": [describe(output) for output in outputs],
        "gradients": gradients,
        "after": after if lazy or "Norm" in constructor or "max_norm" in constructor else {},
    }


def run_function(torch: Any, row: str, describe: Any = _numbers) -> dict[str, Any]:
    """What one function gives, and the gradients of its float arguments."""
    names = namespace(torch)
    made: list[Any] = []
    plain = names["x"]

    def x(*shape: int) -> Any:
        made.append(plain(*shape))
        return made[-1]

    names["x"] = x
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = _tensors(eval(row, names))
        return {
            "outputs": [describe(output) for output in outputs],
            "gradients": _gradients(outputs, made, describe),
        }


def run_text(torch: Any, row: str) -> list[Any]:
    """The text of an expression's value or error, and of its warnings."""
    nn = torch.nn
    names = {
        "torch": torch,
        "nn": nn,
        "F": nn.functional,
        "R": torch.rand,
        "N": torch.randn,
        "T": torch.tensor,
    }
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = str(eval(row, names))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return [text.replace("mindtorch_v2", "torch"), [f"{w.category.__name__}: {w.message}" for w in caught]]


def assert_same(ours: Any, theirs: Any, where: str) -> None:
    """Fail unless equal, numbers within float32's rounding of the tensor's size."""
    if isinstance(theirs, dict) and "values" in theirs:
        assert [ours["shape"], ours["dtype"]] == [theirs["shape"], theirs["dtype"]], where
        size = max(1.0, abs(theirs["values"][-2]))
        np.testing.assert_allclose(
            ours["values"], theirs["values"], rtol=2e-5, atol=3e-6 * size, err_msg=where
        )
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key, value in theirs.items():
            assert_same(ours[key], value, f"{where} {key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for index, value in enumerate(theirs):
            assert_same(ours[index], value, f"{where}[{index}]")
    else:
        assert ours == theirs, where
