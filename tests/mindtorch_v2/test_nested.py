"""torch.nested: parts of different sizes as one tensor; values and texts are torch's."""

import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
        yield


def _parts():
    return [torch.arange(6.0).view(2, 3), torch.ones(1, 3)]


LAYOUTS = [torch.strided, torch.jagged]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_functions_work_on_each_part(layout):
    nested = torch.nested.nested_tensor(_parts(), layout=layout)
    weight = torch.ones(2, 3)
    for make in (
        lambda t: t.sin(),
        lambda t: torch.relu(-t),
        lambda t: t * 2 + t,
        lambda t: 1 - t,
        lambda t: torch.nn.functional.linear(t, weight),
        lambda t: torch.nn.functional.softmax(t, -1),
        lambda t: t.to(torch.float64),
    ):
        made = make(nested)
        assert made.is_nested
        assert made.layout is layout
        for got, part in zip(made.unbind(), _parts()):
            torch.testing.assert_close(got, make(part))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_reach_the_parts(layout):
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(1, 3, requires_grad=True)
    nested = torch.nested.as_nested_tensor([x, y], layout=layout)
    assert nested.requires_grad
    (nested * 2).unbind()[0].sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([[2, 2, 2]] * 2, [[0, 0, 0]])
    assert not torch.nested.nested_tensor([x, y], layout=layout).requires_grad


def test_sizes_that_differ_have_no_number():
    nested = torch.nested.nested_tensor(_parts())
    assert (nested.size(0), nested.size(2), nested.dim(), nested.numel()) == (2, 3, 3, 9)
    with pytest.raises(RuntimeError, match="Given dimension 1 is irregular"):
        nested.size(1)
    with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support sizes"):
        nested.size()
    jagged = torch.nested.nested_tensor(_parts(), layout=torch.jagged)
    assert jagged.shape[0] == 2
    assert jagged.shape[2] == 3
    assert jagged.offsets().tolist() == [0, 2, 3]
    assert jagged.values().shape == (3, 3)
    assert (
        str(jagged)
        == f"NestedTensor(size=(2, {jagged.size(1)}, 3), offsets=tensor([0, 2, 3]), contiguous=True)"
    )


def test_a_nested_tensor_prints_its_parts():
    text = repr(torch.nested.nested_tensor([torch.ones(1), torch.zeros(2)]))
    assert text == "nested_tensor([\n  tensor([1.]),\n  tensor([0., 0.])\n])"


def test_padding_makes_parts_equally_large():
    nested = torch.nested.nested_tensor(_parts())
    padded = torch.nested.to_padded_tensor(nested, -1.0)
    assert padded.shape == (2, 2, 3)
    assert padded[1].tolist() == [[1, 1, 1], [-1, -1, -1]]
    assert nested.to_padded_tensor(0.0, (2, 4, 3)).shape == (2, 4, 3)


def test_parts_may_lie_in_one_tensor():
    values = torch.arange(10.0).view(5, 2)
    by_offsets = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5]))
    by_lengths = torch.nested.nested_tensor_from_jagged(values, lengths=torch.tensor([2, 3]))
    for nested in (by_offsets, by_lengths):
        assert [tuple(part.shape) for part in nested.unbind()] == [(2, 2), (3, 2)]
        assert nested[1].tolist() == values[2:].tolist()
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add"):
        by_offsets + by_lengths


def test_what_is_not_there_is_refused():
    nested = torch.nested.nested_tensor(_parts())
    for refused in (
        lambda: torch.mm(nested, nested),
        lambda: nested.cumsum(0),
        lambda: torch.cat([nested, nested]),
    ):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):
        nested + torch.ones(3)


def test_a_profile_shows_what_ran_on_the_parts():
    nested = torch.nested.nested_tensor([torch.ones(4, 4), torch.ones(4, 4)])
    with profile(record_shapes=True, with_flops=True) as prof:
        torch.nn.functional.linear(nested, torch.ones(4, 4))
        nested + nested
    shapes = {event.name: event.input_shapes for event in prof.events()}
    assert shapes["aten::mm"][0] == [8, 4]
    flops = {event.name: event.flops for event in prof.events()}
    assert (flops["aten::mm"], flops["aten::add"]) == (2 * 8 * 4 * 4, 2 * 4 * 4)
