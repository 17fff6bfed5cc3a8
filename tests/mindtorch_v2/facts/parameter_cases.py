"""Cases of parameters, buffers, and lazy modules."""

from __future__ import annotations

import copy
import pickle
from typing import Any


def parameters_are_tensors_with_their_own_repr(torch: Any, show: Any) -> None:
    nn = torch.nn
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    show(p, repr(p), p.requires_grad, p.is_leaf, type(p).__name__)
    show(nn.Parameter(torch.tensor([1, 2]), requires_grad=False))
    show.raises(nn.Parameter, torch.tensor([1, 2]))
    show(nn.Parameter(), nn.Parameter(requires_grad=False))
    show.raises(nn.Parameter, [1.0, 2.0])
    show.raises(nn.Parameter, 3)
    t = torch.ones(2)
    show(
        nn.Parameter(t).data_ptr() == t.data_ptr(),
        nn.Parameter(p) is p,
        nn.Parameter(p).data_ptr() == p.data_ptr(),
    )
    y = torch.ones(2, requires_grad=True) * 2
    q = nn.Parameter(y)
    show(q.is_leaf, q.grad_fn, q)
    show(type(p + 1).__name__, type(p.data).__name__, type(p.detach()).__name__, type(p.clone()).__name__)
    show(
        isinstance(p, torch.Tensor),
        isinstance(p, nn.Parameter),
        isinstance(t, nn.Parameter),
        isinstance(p, nn.Buffer),
    )
    t._is_param = True
    show(isinstance(t, nn.Parameter))
    show(
        type(p[0]).__name__,
        type(p.view(2, 1)).__name__,
        type(p.requires_grad_()).__name__,
    )


def parameters_copy_and_pickle_as_parameters(torch: Any, show: Any) -> None:
    nn = torch.nn
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    p.grad = torch.ones(2)
    p.tag = "note"
    for twin in (copy.deepcopy(p), copy.copy(p), pickle.loads(pickle.dumps(p))):
        show(
            type(twin).__name__, twin, twin.grad, getattr(twin, "tag", None), twin.data_ptr() == p.data_ptr()
        )
    q = nn.Parameter(torch.ones(1), requires_grad=False)
    show(copy.deepcopy(q).requires_grad, pickle.loads(pickle.dumps(q)).requires_grad)
    memo: dict[int, Any] = {}
    show(copy.deepcopy([p, p], memo)[0] is not p)
    a, b = copy.deepcopy([p, p])
    show(a is b)

    show(p.__reduce_ex__(2)[0].__name__, nn.Parameter(torch.ones(1)).__reduce_ex__(2)[0].__name__)


def buffers_are_tensors_with_a_persistent_mark(torch: Any, show: Any) -> None:
    nn = torch.nn
    b = nn.Buffer(torch.tensor([1.0]))
    show(type(b).__name__, b.persistent, isinstance(b, nn.Buffer), b.requires_grad, repr(b))
    show(
        nn.Buffer(torch.ones(1), persistent=False).persistent,
        isinstance(torch.ones(1), nn.Buffer),
        nn.Buffer(),
    )
    show(type(b + 1).__name__, isinstance(b, nn.Parameter))
    m = nn.Module()
    m.b = nn.Buffer(torch.ones(1), persistent=False)
    m.c = nn.Buffer(torch.ones(1))
    show(list(m.state_dict()), [n for n, _ in m.named_buffers()], type(m.b).__name__)


def uninitialized_parameters_materialize_once(torch: Any, show: Any) -> None:
    parameter = torch.nn.parameter
    p = parameter.UninitializedParameter()
    show(p, parameter.is_lazy(p), isinstance(p, torch.nn.Parameter), p.requires_grad, p.dtype, p.device)
    show.raises(lambda: p.shape)
    show.raises(lambda: p + 1)
    show.raises(lambda: p.view(2))
    show.raises(p.sum)
    show.raises(p.share_memory_)
    twin = copy.deepcopy(p)
    show(type(twin).__name__, pickle.loads(pickle.dumps(p)))
    p.materialize((2, 3))
    show(type(p).__name__, tuple(p.shape), p.requires_grad, parameter.is_lazy(p))
    b = parameter.UninitializedBuffer(dtype=torch.float64)
    show(b, b.requires_grad, b.persistent)
    b.materialize((2,), dtype=torch.float32)
    show(type(b).__name__, b.dtype, tuple(b.shape))
    show(parameter.UninitializedParameter(requires_grad=False, dtype=torch.float16).dtype)


def lazy_modules_infer_their_shapes_at_the_first_call(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.LazyLinear(3)
    show(m, m.has_uninitialized_params(), type(m).__name__)
    show(m.state_dict())
    show(len(m._forward_pre_hooks), len(m._load_state_dict_pre_hooks), hasattr(m, "_initialize_hook"))
    m(torch.ones(2, 4))
    show(
        m,
        type(m).__name__,
        tuple(m.weight.shape),
        m.has_uninitialized_params() if hasattr(m, "has_uninitialized_params") else "gone",
    )
    show(len(m._forward_pre_hooks), len(m._load_state_dict_pre_hooks), hasattr(m, "_initialize_hook"))
    source = nn.Linear(5, 3)
    m = nn.LazyLinear(3)
    show(
        m.load_state_dict(source.state_dict()),
        tuple(m.weight.shape),
        m.has_uninitialized_params(),
        type(m).__name__,
    )
    m(torch.ones(1, 5))
    show(type(m).__name__)
    m = nn.LazyLinear(3)
    show(source.load_state_dict(source.state_dict()))
    show.raises(source.load_state_dict, m.state_dict())
    twin = nn.LazyLinear(3)
    show(twin.load_state_dict(m.state_dict()), twin.has_uninitialized_params())
    show(copy.deepcopy(m), pickle.loads(pickle.dumps(m)).has_uninitialized_params())
    show(m.double().weight.dtype, m.to("cpu").weight)
    show.warns(lambda: nn.LazyLinear(3))
    show.raises(m.share_memory)
    show.raises(lambda: m.weight.shape)


def a_lazy_mixin_of_the_user_works(torch: Any, show: Any) -> None:
    nn = torch.nn

    class LazyScale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.parameter.UninitializedParameter()
            self.b = nn.parameter.UninitializedBuffer()

        def initialize_parameters(self, x: Any) -> None:
            if self.has_uninitialized_params():
                with torch.no_grad():
                    self.w.materialize(x.shape[1:])
                    self.w.fill_(2)
                self.b.materialize((1,))

        def forward(self, x: Any) -> Any:
            return x * self.w

    m = LazyScale()
    show(m.has_uninitialized_params(), m(torch.ones(1, 2)), m.has_uninitialized_params(), type(m.b).__name__)

    class Bad(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.parameter.UninitializedParameter()

        def forward(self, x: Any) -> Any:
            return x

    show.raises(Bad(), torch.ones(1))

    class Half(Bad):
        def initialize_parameters(self, x: Any) -> None:
            pass

    show.raises(Half(), torch.ones(1))
    seq = nn.Sequential(nn.LazyLinear(2), nn.ReLU(), nn.LazyLinear(1))
    seq(torch.ones(3, 4))
    show(seq)
