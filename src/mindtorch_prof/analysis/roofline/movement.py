"""Ops that move data without computing: inputs of cat, fill, embedding, index_select, gather ... in; work out: bytes, and additions only."""

from __future__ import annotations

from math import prod

from ...inputs import ELEMENT_TYPES
from .work import LINK, VECTOR, Call, Model, NotModelled, Tensor, Work, contiguous, moved

CATEGORY, EMBEDDING = "copy", "embedding"


def _work(nbytes: int, tensor: Tensor, category: str = CATEGORY, flop: int = 0) -> Work:
    return Work(flop, nbytes, category, VECTOR, tensor.element.dtype)


def cat(call: Call) -> Work:
    """a list of tensors, dimension"""
    tensors = call.tensor_list(0)
    return _work(2 * sum(tensor.numel * tensor.element.nbytes for tensor in tensors), tensors[0])


def fill(call: Call) -> Work:
    """target, value"""
    target = call.tensor(0)
    return _work(moved(target), target)


def written_last(call: Call) -> Work:
    """arange ...: the target is the last tensor; nothing is read"""
    tensors = call.tensors()
    if not tensors or not tensors[-1].numel:
        raise NotModelled("the shape of the result was not recorded")
    return _work(moved(tensors[-1]), tensors[-1])


def item(call: Call) -> Work:
    """one element, to the host"""
    tensor = call.tensor(0)
    return Work(0, tensor.element.nbytes, CATEGORY, LINK, tensor.element.dtype)


def _rows(table: Tensor, indices: Tensor, dimension: int) -> Work:
    if not table.shape:
        raise NotModelled("the table has no dimensions")
    row = prod(table.shape) // max(table.shape[dimension], 1)
    picked = contiguous((indices.numel * row,), table.element)
    return _work(moved(indices, picked, picked), table, EMBEDDING)


def embedding(call: Call) -> Work:
    """table, indices, ...: each row is read as often as it is asked for"""
    return _rows(call.tensor(0), call.tensor(1), 0)


def index_select(call: Call) -> Work:
    """table, dimension, indices"""
    return _rows(call.tensor(0), call.tensor(2), call.number(1))


def gather(call: Call) -> Work:
    """table, dimension, indices"""
    table, indices = call.tensor(0), call.tensor(2)
    picked = contiguous(indices.shape, table.element)
    return _work(moved(indices, picked, picked), table, EMBEDDING)


def scatter(call: Call) -> Work:
    """target, dimension, indices, source or value"""
    target, indices = call.tensor(0), call.tensor(2)
    written = contiguous(indices.shape, target.element)
    source = call.optional(3)
    return _work(moved(indices, written, source), target, EMBEDDING)


def scatter_add(call: Call) -> Work:
    """target, dimension, indices, source: what is added to is read and written"""
    target, indices, source = call.tensor(0), call.tensor(2), call.tensor(3)
    changed = contiguous(source.shape, target.element)
    return _work(moved(indices, source, changed, changed), target, EMBEDDING, source.numel)


def embedding_backward(call: Call) -> Work:
    """gradient, indices, rows of the table, ...: the whole gradient of the table is written"""
    gradient, indices = call.tensor(0), call.tensor(1)
    table = contiguous((call.number(2), gradient.shape[-1]), gradient.element)
    return _work(moved(gradient, indices, table), gradient, EMBEDDING, gradient.numel)


def embedding_bag(call: Call) -> Work:
    """table, indices, starts of the bags, ..."""
    table, indices, starts = call.tensor(0), call.tensor(1), call.tensor(2)
    read = contiguous((indices.numel, table.shape[-1]), table.element)
    written = contiguous((starts.numel, table.shape[-1]), table.element)
    return _work(moved(indices, starts, read, written), table, EMBEDDING, read.numel)


def index_put(call: Call) -> Work:
    """target, indices, values, ...: the values are read, and written to the target"""
    target, values = call.tensor(0), call.tensor(2)
    return _work(moved(values, contiguous(values.shape, target.element)), target, EMBEDDING)


def top(call: Call) -> Work:
    """input, how many, dimension, ...: the input is read once; values and indices are written"""
    image, count = call.tensor(0), call.number(1)
    dimension = call.number(2) if len(call) > 2 else -1
    rows = image.numel // max(image.shape[dimension], 1)
    values = contiguous((rows * count,), image.element)
    indices = contiguous((rows * count,), ELEMENT_TYPES["long int"])
    return _work(moved(image, values, indices), image, EMBEDDING)


def sort(call: Call) -> Work:
    """input, ...: read and written once at least, with the indices"""
    image = call.tensor(0)
    values, indices = (contiguous(image.shape, kind) for kind in (image.element, ELEMENT_TYPES["long int"]))
    return _work(moved(image, values, indices), image, EMBEDDING)


def copied(call: Call) -> Work:
    """input, ...: read once, and written once in another order"""
    image = call.tensor(0)
    return _work(moved(image, contiguous(image.shape, image.element)), image)


def padded(call: Call) -> Work:
    """input, padding before and after each dimension from the last one on, ..."""
    image, padding = call.tensor(0), call.numbers(1)
    shape = list(image.shape)
    for place in range(len(padding) // 2):
        shape[-1 - place] += padding[2 * place] + padding[2 * place + 1]
    if min(shape, default=0) < 0:
        raise NotModelled("the padding cuts off more than there is")
    return _work(moved(image, contiguous(shape, image.element)), image)


def enlarged(call: Call) -> Work:
    """input, sizes of the result or nothing, factors ...: each element of input and result is moved once"""
    image = call.tensor(0)
    sizes = call.value(1)
    if not isinstance(sizes, tuple) or not sizes:
        factors = call.value(2)
        if not isinstance(factors, tuple) or not factors:
            raise NotModelled("the size of the result was not recorded")
        sizes = tuple(
            int(size * float(factor))
            for size, factor in zip(image.shape[-len(factors) :], factors)
            if isinstance(factor, (int, float))
        )
    result = (*image.shape[: -len(sizes)], *(size for size in sizes if isinstance(size, int)))
    return _work(moved(image, contiguous(result, image.element)), image)


def repeated(call: Call) -> Work:
    """input, how often in each dimension of the result"""
    image, repeats = call.tensor(0), call.numbers(1)
    return _work(moved(image, contiguous((image.numel * prod(repeats),), image.element)), image)


MODELS: dict[str, Model] = {
    "aten::index_put_": index_put,
    "aten::_index_put_impl_": index_put,
    "aten::topk": top,
    "aten::sort": sort,
    "aten::argsort": sort,
    "aten::cat": cat,
    "aten::stack": cat,
    "aten::flip": copied,
    "aten::roll": copied,
    "aten::tril": copied,
    "aten::triu": copied,
    "aten::repeat": repeated,
    "aten::constant_pad_nd": padded,
    "aten::reflection_pad1d": padded,
    "aten::reflection_pad2d": padded,
    "aten::reflection_pad3d": padded,
    "aten::replication_pad1d": padded,
    "aten::replication_pad2d": padded,
    "aten::replication_pad3d": padded,
    "aten::upsample_nearest1d": enlarged,
    "aten::upsample_nearest2d": enlarged,
    "aten::upsample_nearest3d": enlarged,
    "aten::_upsample_nearest_exact1d": enlarged,
    "aten::_upsample_nearest_exact2d": enlarged,
    "aten::_upsample_nearest_exact3d": enlarged,
    "aten::fill_": fill,
    "aten::zero_": fill,
    "aten::normal_": fill,
    "aten::uniform_": fill,
    "aten::bernoulli_": fill,
    "aten::random_": fill,
    "aten::exponential_": fill,
    "aten::arange": written_last,
    "aten::item": item,
    "aten::_local_scalar_dense": item,
    "aten::embedding": embedding,
    "aten::index_select": index_select,
    "aten::gather": gather,
    "aten::scatter": scatter,
    "aten::scatter_": scatter,
    "aten::scatter_add": scatter_add,
    "aten::scatter_add_": scatter_add,
    "aten::index_add": scatter_add,
    "aten::index_add_": scatter_add,
    "aten::embedding_dense_backward": embedding_backward,
    "aten::embedding_bag": embedding_bag,
    "aten::_embedding_bag": embedding_bag,
    "aten::_embedding_bag_forward_only": embedding_bag,
}
