"""Inputs for rows of ops: one function tried over dtypes, layouts and pairs, with its errors; gradients once and twice.

A row file's setup says `from op_inputs import tools; globals().update(tools(torch))`. Runs with torch and with this package.
"""

from __future__ import annotations

from typing import Any

REAL = [-2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 1.0, 2.5, 7.0, float("nan"), float("inf"), -float("inf")]
WHOLE = [-7, -2, -1, 0, 1, 2, 3, 100]
UNSIGNED = [0, 1, 2, 3, 7, 100, 200, 255]
COMPLEX = [0.5 + 0.25j, -1.5 + 2j, 1j, -1 + 0j, 2 - 3j, 0j]
NAMES = [
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128",
]  # fmt: skip


def values_for(name: str) -> list:
    """Telling values of a dtype: signs, zeros, halves, what is not finite."""
    if name.startswith("complex"):
        return COMPLEX
    if "float" in name:
        return REAL
    return [False, True] if name == "bool" else UNSIGNED if name == "uint8" else WHOLE


def tools(torch: Any) -> dict[str, Any]:
    """The helpers that rows use, bound to one library."""

    def attempt(f: Any, *arguments: Any) -> Any:
        try:
            return f(*arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def sample(name: str) -> Any:
        return torch.tensor(values_for(name), dtype=getattr(torch, name))

    def every(f: Any, names: Any = None) -> list:
        """f of a sample of every dtype."""
        return [attempt(f, sample(name)) for name in (names.split() if names else NAMES)]

    def small(name: str) -> Any:
        """A 2x3 tensor of small positive and negative numbers."""
        base = (
            torch.tensor([[1, 2, 3], [3, 1, 2]]) if name == "bool" else torch.tensor([[1, -2, 3], [-3, 4, 2]])
        )
        if name == "uint8":
            base = base.abs()
        return (base > 1) if name == "bool" else base.to(getattr(torch, name))

    def smalls(f: Any, names: Any = None) -> list:
        """f of a small 2x3 tensor of every dtype."""
        return [attempt(f, small(name)) for name in (names.split() if names else NAMES)]

    def pairs(
        f: Any, names: str = "float32 float64 float16 bfloat16 int64 int32 uint8 bool complex64"
    ) -> list:
        """f of small tensors of every pair of dtypes, the second one broadcast."""
        chosen = names.split()
        return [
            attempt(f, small(a), small(b)[1] if b == "bool" else small(b)[1].abs())
            for a in chosen
            for b in chosen
        ]

    def layouts(f: Any, dtype: Any = None) -> list:
        """f of tensors that are 0-dim, empty, transposed, expanded, stepped, of one element, channels last."""
        x = torch.linspace(-2.0, 2.2, 24, dtype=dtype or torch.float32)
        forms = [
            x[5], x[:0], x[:0].reshape(2, 0, 3), x.view(4, 6).t(), x.view(2, 3, 4).permute(2, 0, 1), x[:3].expand(2, 3),
            x[::3], x[:1], x.view(4, 6)[:, ::2], x.view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
        ]  # fmt: skip
        return [attempt(f, form) for form in forms]

    def weighted(value: Any) -> Any:
        outputs = value if isinstance(value, (tuple, list)) else [value]
        total = 0
        for number, output in enumerate(outputs):
            if output.is_floating_point() or output.is_complex():
                w = (
                    torch.arange(1, output.numel() + 1, dtype=torch.float64)
                    .reshape(output.shape)
                    .mul(0.7)
                    .cos()
                    + 0.3 * number
                )
                part = (output * w).sum()
                total = total + (part.real + 0.5 * part.imag if output.is_complex() else part)
        return total

    def gradients(f: Any, *inputs: Any) -> list:
        """The gradients of f at float inputs, and the gradients of their weighted sum (second order)."""
        inputs = [
            i.detach().clone().requires_grad_() if i.is_floating_point() or i.is_complex() else i
            for i in [torch.tensor(i, dtype=torch.float64) if isinstance(i, (list, float)) else i for i in inputs]
        ]  # fmt: skip
        wanted = [i for i in inputs if i.requires_grad]
        value = f(*inputs)
        names = [type(v.grad_fn).__name__ for v in (value if isinstance(value, (tuple, list)) else [value])]
        first = torch.autograd.grad(weighted(value), wanted, create_graph=True, allow_unused=True)
        used = [g for g in first if g is not None and g.requires_grad]
        second: Any = []
        if used:
            second = torch.autograd.grad(weighted(used), wanted, allow_unused=True)
        # a missing second gradient and one of zeros say the same
        # + 0: plain tensors, neither views nor conjugates that are still to be taken
        return [names, [None if g is None else g.detach() + 0 for g in first],
                ["zero" if g is None or not g.any() else g.contiguous() + 0 for g in second]]  # fmt: skip

    def slopes(f: Any, *inputs: Any) -> Any:
        """The gradients of f at float inputs, for what torch differentiates once only."""
        inputs = [i.detach().clone().requires_grad_() for i in inputs]
        return [g.contiguous() + 0 for g in torch.autograd.grad(weighted(f(*inputs)), inputs)]

    def doubles(*shape: int, seed: int = 0) -> Any:
        """Numbers in (-1.2, 1.2), all different, none zero."""
        n = 1
        for length in shape:
            n *= length
        x = torch.arange(1, n + 1, dtype=torch.float64) * 0.754877666 + 0.137 * (seed + 1)
        return ((x - x.floor()) * 2.4 - 1.2).reshape(shape)

    def into(f: Any, *outs: Any) -> list:
        """f with out=; what the given tensors hold then, and whether they were returned."""
        made = f(outs[0] if len(outs) == 1 else outs)
        same = made is outs[0] if len(outs) == 1 else all(m is o for m, o in zip(made, outs))
        return [same, *outs]

    def dense(value: Any) -> Any:
        """What LAPACK gives lies column by column in torch; here its order in memory is not compared."""
        if isinstance(value, torch.Tensor):
            return value.detach().clone(memory_format=torch.contiguous_format)
        return [dense(v) for v in value] if isinstance(value, (tuple, list)) else value

    def warned(f: Any) -> list:
        """The warnings f gives."""
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            attempt(f)
        kinds = (UserWarning, FutureWarning, DeprecationWarning)
        return [
            f"{w.category.__name__}: {str(w.message).partition(' (Triggered internally')[0]}"
            for w in caught
            if issubclass(w.category, kinds)
        ]

    return {name: made for name, made in locals().items() if callable(made)} | {"F": torch.nn.functional}
