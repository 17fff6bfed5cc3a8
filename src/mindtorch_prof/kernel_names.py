"""Kernel names: names of kernels in, short names out that stay distinct. For tables, the report and notebooks; data formats keep full names.

    at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(...)::{lambda()#1}..., std::array<char*, 2ul> >(int, ...)
    vectorized_elementwise<4, silu>

A C++ name loses its return type, parameters, namespaces and those template arguments that do not say what the kernel does; a name of
AMD's Tensile loses its tuning parameters, a step of the backward pass the namespace of the engine. Other names (Triton, Ascend, NCCL,
ops) stay. Where two names would look the same, both keep
more of what they have, until they differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from .text_width import cut, cut_middle, text_width

__all__ = ["LONG", "fit_names", "short_name", "short_names"]

LONG = 40  # characters; shorter names are shown as they are
_LEVELS = 4  # 0: what the kernel does; 1: with types; 2: with everything but namespaces and parameters; 3: the full name
_MOST_WORDS = 4  # of what tells two names apart, in brackets behind the short name

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w+::|\(anonymous class\)::")
_NSIGHT_LAMBDA = re.compile(r"\[lambda(\([^][]*\)) \(instance (\d+)\)\]")
_CAST = re.compile(r"\((?:unsigned |signed )?(?:int|long|short|char|bool|long long)\)(?=-?\d)")
_SUFFIXED_NUMBER = re.compile(r"(?<![\w.])(-?\d+)(?:ul|ull|u|l|ll)\b", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+")
_CLONE = re.compile(r"( \[clone [^]]*\]|\.kd)+$")
_PARAMETER_TYPE = re.compile(
    r"\b(int|float|double|long|bool|char|unsigned|short|half|void|Params?|Args?)\b|[*&]"
)
_PLAIN_TYPES = frozenset(
    "int float double long short char bool void half unsigned signed size_t __half __nv_bfloat16 Half BFloat16 int8_t uint8_t"
    " int16_t int32_t int64_t uint32_t uint64_t float2 float4 half2 complex nullptr_t".split()
)
# classes that only wrap what the kernel computes: their arguments stand for them
_WRAPPERS = frozenset(
    "AUnaryFunctor BUnaryFunctor BinaryFunctor ReduceOp func_wrapper_t gpu_kernel_impl gpu_kernel_impl_nocast"
    " gpu_kernel_with_scalars opmath_gpu_kernel_with_scalars opmath_symmetric_gpu_kernel_with_scalars"
    " _cuda_scatter_gather_internal_kernel".split()
)
_ARITIES = frozenset(("AUnaryFunctor", "BUnaryFunctor", "BinaryFunctor"))  # which operand is a scalar
# functions that only hold their template argument: it is the kernel
_HOLDERS = frozenset(("Kernel", "Kernel2", "device_kernel", "kernel_forward_wrapper"))
# arguments that say how data is passed, not what is computed
_PLUMBING = frozenset(
    "Array array TrivialOffsetCalculator OffsetCalculator LoadWithoutCast StoreWithoutCast LoadWithCast StoreWithCast"
    " TensorListMetadata TensorListScalarListMetadata OpaqueType RestrictPtrTraits DefaultPtrTraits NullType cublasGemvTensorStridedBatched cublasGemvTensor".split()
)
_PREFIX = re.compile(r"^CUDAFunctor(?:OnSelf|OnOther)?_")
_SUFFIX = re.compile(
    r"(?:_kernel_cuda_impl|_kernel_cuda|_kernel_impl|_kernel|(?<=\w{8})Kernel|_functor|Functor|_cuda_out|_cuda)$"
)
_ENGINE = "autograd::engine::"  # before the names of the steps of the backward pass
_TENSILE = re.compile(
    r"^(Cijk(?:_[A-Z][a-z]+){2,3}_[A-Z0-9]+?(?:_BH)?)_.*?(MT\d+x\d+x\d+)(?:_(MI\d+x\d+x\d+))?"
)


# ---------------------------------------------------------------------------------------------------- one name


@lru_cache(maxsize=8192)
def short_name(name: str, level: int = 0) -> str:
    """The short form of a kernel's name; any other name as it is. A higher level, up to 3, keeps more."""
    if level >= _LEVELS - 1:
        return name
    if name.startswith(_ENGINE):
        return name.removeprefix(_ENGINE)
    tensile = _TENSILE.match(name)
    if tensile:
        return "_".join(part for part in tensile.groups() if part) if level == 0 else name
    if name.startswith("_Z"):
        return _mangled(name, level)
    text = _normalized(name)
    if not _is_cpp(text):
        return name
    try:
        declarator = _declarator(text)
        return _expression(declarator, level, outermost=True) or name
    except (_UnbalancedError, RecursionError):
        return name


class _UnbalancedError(ValueError):
    """A name whose brackets do not match."""


def _normalized(name: str) -> str:
    """One spelling for what compilers and tools write in different ways."""
    text = _CLONE.sub("", name)
    text = _ANONYMOUS.sub("", text)
    for _ in range(8):  # lambdas inside lambdas
        text, count = _NSIGHT_LAMBDA.subn(r"{lambda\1#\2}", text)
        if not count:
            break
    text = _CAST.sub("", text)
    text = _SUFFIXED_NUMBER.sub(r"\1", text)
    return text.replace("operator ()", "operator()").replace(" const::", "::").replace("->", "_to_")


def _is_cpp(text: str) -> bool:
    """Whether a name is a C++ declaration: it ends in parameters or template arguments that belong to an identifier."""
    if not text.endswith((")", ">", "const")) or "/" in text:
        return False
    opening = re.search(r"[<(]", text)
    if opening is None or opening.start() == 0 or not re.match(r"[\w)>]", text[opening.start() - 1]):
        return False
    return "<" in text or "::" in text or bool(_PARAMETER_TYPE.search(text[opening.start() :]))


_OPEN, _CLOSE = "<({[", ">)}]"


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand outside of all brackets."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        char = text[i]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth < 0:
                raise _UnbalancedError
        elif depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i])
            i += len(separator)
            start = i
            continue
        i += 1
    if depth:
        raise _UnbalancedError
    return [*parts, text[start:]]


def _declarator(text: str) -> str:
    """The function's qualified name with its template arguments and parameters, without the type it returns."""
    words = [word for word in _split(text.removesuffix(" const"), " ") if word and word != "const"]
    return words[-1] if words else text


def _parts(component: str) -> tuple[str, list[str], bool]:
    """A component of a qualified name: identifier, template arguments, and whether it has parameters."""
    opening = re.search(r"[<(]", component)
    if opening is None:
        return component, [], False
    name, rest = component[: opening.start()], component[opening.start() :]
    if rest[0] == "(":
        return name, [], True
    end = _closing(rest)
    arguments = [argument.strip() for argument in _split(rest[1:end], ",")]
    return name, arguments, rest[end + 1 :].lstrip().startswith("(")


def _closing(text: str) -> int:
    depth = 0
    for place, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return place
    raise _UnbalancedError


def _expression(text: str, level: int, *, outermost: bool = False) -> str:
    """A type, function or value as a level shows it; empty if the level does not show it."""
    text = text.strip().removesuffix(" const").removeprefix("const ").rstrip("*& ").removesuffix(" const")
    if not text:
        return ""
    if _NUMBER.fullmatch(text):
        return text
    if text in ("true", "false"):
        return text if level >= 2 or outermost else ""
    components = _split(text, "::")
    named = [part for part in components if not part.startswith(("{", "operator", "[", "'"))]
    if not named:
        return ""
    name, arguments, _ = _parts(named[-1])
    if named[-1] in ("type", "Params", "Arguments", "Policy") and len(named) > 1:
        name, arguments, _ = _parts(named[-2])
    name = name.rpartition(" ")[2]
    # operator()<T> of a functor: what it is instantiated with
    arguments = arguments + [
        argument for part in components if part.startswith("operator()<") for argument in _parts(part)[1]
    ]
    if level == 1 and not arguments and (types := _lambda_types(components[-1])):
        arguments = types
    if outermost and name in _HOLDERS and arguments and level < 2:
        return _expression(arguments[0], level, outermost=True) or name
    if level < 2 and not outermost:
        if name in _PLUMBING:
            return ""
        if name in _PLAIN_TYPES or text in _PLAIN_TYPES or text.startswith(("unsigned", "signed", "long ")):
            return name if level else ""
        if name in _WRAPPERS:
            inner = [_expression(argument, level) for argument in arguments]
            shown = [part for part in inner if part and not _NUMBER.fullmatch(part)]
            functions = [part for part in shown if part not in _PLAIN_TYPES]
            held = functions[-1] if functions else shown[-1] if shown else ""
            if not held:
                return _plain(name)
            return f"{_plain(name)}<{held}>" if level and name in _ARITIES else held
    shown_arguments = [_expression(argument, level) for argument in arguments]
    if level == 0 and not outermost:
        shown_arguments = []
    shown_arguments = [argument for argument in shown_arguments if argument]
    short = _plain(name) if level < 2 else name
    return f"{short}<{', '.join(shown_arguments)}>" if shown_arguments else short


def _lambda_types(component: str) -> list[str]:
    """The first type that a lambda takes, which is the type a kernel of torch computes in."""
    if not component.startswith("{lambda("):
        return []
    first = _split(component[len("{lambda(") : component.rindex(")")], ",")[0].strip()
    return [first] if first and first != "int" else []


def _plain(name: str) -> str:
    """An identifier without `kernel`, `functor` and the like, unless nothing would be left."""
    short = _PREFIX.sub("", name)
    while True:
        shorter = _SUFFIX.sub("", short).rstrip("_")
        if shorter == short or len(shorter) < 3:
            return short if len(short) >= 2 else name
        short = shorter


def _mangled(name: str, level: int) -> str:
    """The function's identifier of a mangled name (`_ZN2ck...`); with level 1 the identifiers in it, too."""
    match = re.match(r"_Z(N?)", name)
    assert match
    place = match.end()
    identifiers: list[str] = []
    while True:
        number = re.compile(r"[KrV]*(\d{1,3})").match(name, place)
        if number is None:
            break
        start = number.end()
        identifiers.append(name[start : start + int(number[1])])
        place = start + int(number[1])
        if not match[1]:
            break
    known = [text for text in identifiers if not text.startswith("_GLOBAL__N")]
    if not known:
        return name
    if level == 0:
        return _plain(known[-1])
    if level == 1:
        numbers = re.findall(r"L[ijlmb](\d+)E", name[place:])
        return f"{_plain(known[-1])}<{', '.join(numbers)}>" if numbers else _plain(known[-1])
    return name


# ---------------------------------------------------------------------------------------------------- many names


def short_names(names: Sequence[str], width: int | None = None) -> list[str]:
    """Short forms of the names of one table: equal names stay equal, different ones different. width: the most characters of each
    (if it leaves room for telling them apart)."""
    full = list(dict.fromkeys(names))
    shown = {
        name: name if text_width(name) <= min(LONG, width or LONG) else short_name(name) for name in full
    }
    for level in range(1, _LEVELS):
        colliding = _colliding(shown)
        if not colliding:
            break
        for group in colliding:
            longer = {name: short_name(name, level) for name in group if len(name) > LONG}
            # a level that tells them apart only by becoming unreadable does not help
            if len(set(longer.values())) > 1 and max(map(len, longer.values())) <= (width or 2 * LONG):
                shown.update(longer)
    for group in _colliding(shown):
        shown.update(_told_apart(group, shown[group[0]]))
    if width is not None:
        shown = _cut(shown, width)
    return [shown[name] for name in names]


def _colliding(shown: dict[str, str]) -> list[list[str]]:
    """Groups of different names that are shown alike."""
    groups: dict[str, list[str]] = {}
    for name, text in shown.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _told_apart(group: list[str], short: str) -> dict[str, str]:
    """Names that look alike, each with the first words by which it differs from the others."""
    words = [re.findall(r"[A-Za-z0-9]+", _normalized(name)) for name in group]
    if len({len(each) for each in words}) == 1:
        different = [column for column in zip(*words) if len(set(column)) > 1]
        for count in range(1, min(len(different), _MOST_WORDS) + 1):
            texts = [" ".join(each) for each in zip(*different[:count])]
            if len(set(texts)) == len(texts):
                return {name: f"{short} [{text}]" for name, text in zip(group, texts)}
    else:
        common = set(words[0]).intersection(*words[1:])
        own = [[word for word in dict.fromkeys(each) if word not in common] for each in words]
        for count in range(1, _MOST_WORDS + 1):
            texts = [" ".join(each[:count]) for each in own]
            if len(set(texts)) == len(texts):
                return {name: f"{short} [{text}]" if text else short for name, text in zip(group, texts)}
    return {name: f"{short} #{number}" for number, name in enumerate(group, start=1)}


def fit_names(names: Sequence[str], width: int) -> list[str]:
    """Any texts, each in at most `width` characters; different texts stay different."""
    shown = _cut({name: name for name in names}, width)
    return [shown[name] for name in names]


def _cut(shown: dict[str, str], width: int) -> dict[str, str]:
    """Names of at most `width` characters: cut at the end; where that makes two alike, in the middle; else with a number."""
    result = {name: cut(text, width) for name, text in shown.items()}
    for group in _colliding(result):
        middle = {name: cut_middle(shown[name], width) for name in group}
        others = {text for name, text in result.items() if name not in middle}
        if len(set(middle.values())) == len(group) and not others & set(middle.values()):
            result.update(middle)
            continue
        taken = set(result.values())
        number = 0
        for name in group:
            while True:
                number += 1
                mark = f" #{number}"
                text = cut(shown[name], max(width - len(mark), 1)) + mark
                if text not in taken:
                    break
            taken.add(text)
            result[name] = text
    return result
