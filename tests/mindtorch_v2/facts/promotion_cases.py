"""Type promotion: every pair of dtypes, ranks and Python numbers in, the result's dtype (or the error) out. Runs with torch and with
this package."""

from __future__ import annotations

from typing import Any

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
NUMBERS: dict[str, Any] = {"True": True, "3": 3, "2.5": 2.5, "1j": 1j}
FORMS = [*[f"{name} {rank}" for name in DTYPES for rank in ("0-dim", "1-dim")], *NUMBERS]
# torch does not add the larger unsigned integers
SUMMED = [form for form in FORMS if not form.startswith(("uint16", "uint32", "uint64"))]
DEFAULTS = ["float32", "float64", "float16"]


def operand(torch: Any, form: str) -> Any:
    """The tensor or number that a form names."""
    if form in NUMBERS:
        return NUMBERS[form]
    name, rank = form.split()
    return torch.ones((1,) if rank == "1-dim" else (), dtype=getattr(torch, name))


def answer(f: Any, *arguments: Any) -> str:
    """What f gives, as text; its error's type where it refuses."""
    try:
        return str(f(*arguments)).removeprefix("torch.")
    except Exception as error:
        return type(error).__name__


def result_type(torch: Any, default: str, first: str, second: str) -> str:
    """torch.result_type of two forms while `default` is the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        return answer(torch.result_type, operand(torch, first), operand(torch, second))
    finally:
        torch.set_default_dtype(before)


def of_sum(torch: Any, first: str, second: str) -> str:
    """The dtype that the sum of two forms has."""
    return answer(lambda: torch.add(operand(torch, first), operand(torch, second)).dtype)


def table(torch: Any) -> dict[str, Any]:
    """All answers."""
    return {
        "promote_types": [
            [answer(torch.promote_types, getattr(torch, a), getattr(torch, b)) for b in DTYPES]
            for a in DTYPES
        ],
        "can_cast": [
            [answer(torch.can_cast, getattr(torch, a), getattr(torch, b)) for b in DTYPES] for a in DTYPES
        ],
        "result_type": {d: [[result_type(torch, d, a, b) for b in FORMS] for a in FORMS] for d in DEFAULTS},
        "of_sum": [[of_sum(torch, a, b) for b in SUMMED] for a in SUMMED if a not in NUMBERS],
    }
