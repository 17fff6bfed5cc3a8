"""Cases of nn.Module: registration, attributes, traversal, conversion, repr, copying."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import module_net


def a_new_module_has_torchs_attributes(torch: Any, show: Any) -> None:
    m = torch.nn.Module()
    show(list(vars(m)))
    show({k: type(v).__name__ for k, v in vars(m).items()})
    show(m.training, m.dump_patches, m._version, m.call_super_init, m._is_full_backward_hook)
    show.raises(m, 1)
    show.raises(m.forward)
    show([n for n in dir(torch.nn.Module) if not n.startswith("_")])


def init_takes_arguments_as_torch_does(torch: Any, show: Any) -> None:
    class A(torch.nn.Module):
        pass

    show.raises(A, 1)
    show.raises(A, x=1)
    show.raises(torch.nn.Module, 1)

    class Base:
        def __init__(self, a: Any) -> None:
            self.a = a

    class B(torch.nn.Module, Base):
        call_super_init = True

    show(B(5).a)

    class C(torch.nn.Module):
        call_super_init = True

    show.raises(C, 3)


def assignments_before_init_are_refused(torch: Any, show: Any) -> None:
    nn = torch.nn

    class A(nn.Module):
        def __init__(self, value: Any, how: str = "set") -> None:
            if how == "set":
                self.x = value
            elif how == "buffer":
                self.register_buffer("x", value)
            elif how == "param":
                self.register_parameter("x", value)
            elif how == "module":
                self.add_module("x", value)
            elif how == "get":
                self.missing  # noqa: B018
            elif how == "del":
                del self.missing

    show.raises(A, nn.Parameter(torch.ones(1)))
    show.raises(A, nn.Linear(1, 1))
    show.raises(A, nn.Buffer(torch.ones(1)))
    show(type(A(torch.ones(1))).__name__, type(A(3)).__name__)
    show.raises(A, torch.ones(1), "buffer")
    show.raises(A, nn.Parameter(torch.ones(1)), "param")
    show.raises(A, nn.Linear(1, 1), "module")
    show.raises(A, None, "get")
    show.raises(A, None, "del")
    show.raises(A(3).parameters)
    show.raises(lambda: list(A(3).parameters()))
    show.raises(lambda: repr(A(3)))
    show.raises(A(3), 1)
    show.raises(A(3).state_dict)


def register_buffer_checks_its_arguments(torch: Any, show: Any) -> None:
    m = torch.nn.Module()
    t = torch.ones(1)
    show.raises(m.register_buffer, 3, t)
    show.raises(m.register_buffer, None, t)
    show.raises(m.register_buffer, "a.b", t)
    show.raises(m.register_buffer, "", t)
    show.raises(m.register_buffer, "training", t)
    show.raises(m.register_buffer, "forward", t)
    show.raises(m.register_buffer, "x", 3)
    show.raises(m.register_buffer, "x", [1, 2])
    show.raises(m.register_buffer, "x", "text")
    m.register_buffer("x", t)
    m.register_buffer("x", None)
    m.register_buffer("y", t, persistent=False)
    show(m._buffers, m._non_persistent_buffers_set)
    m.register_buffer("y", t)
    show(m._non_persistent_buffers_set)
    m.p = torch.nn.Parameter(t)
    show.raises(m.register_buffer, "p", t)
    m.register_buffer("q", torch.nn.Parameter(t))
    show(list(m._buffers), list(m._parameters))


def register_parameter_checks_its_arguments(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Module()
    p = nn.Parameter(torch.ones(1))
    show.raises(m.register_parameter, 3, p)
    show.raises(m.register_parameter, "a.b", p)
    show.raises(m.register_parameter, "", p)
    show.raises(m.register_parameter, "training", p)
    show.raises(m.register_parameter, "x", 3)
    show.raises(m.register_parameter, "x", torch.ones(1))
    nonleaf = torch.ones(1, requires_grad=True) * 2
    show.raises(m.register_parameter, "x", nonleaf)

    class Sub(nn.Parameter):
        pass

    m.register_parameter("s", Sub(torch.ones(1)))
    m.register_parameter("x", None)
    m.register_parameter("x", p)
    show(list(m._parameters), type(m.s).__name__)
    m.register_buffer("b", None)
    show.raises(m.register_parameter, "b", p)


def add_module_checks_its_arguments(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Module()
    r = nn.ReLU()
    show.raises(m.add_module, 3, r)
    show.raises(m.add_module, "a.b", r)
    show.raises(m.add_module, "", r)
    show.raises(m.add_module, "training", r)
    show.raises(m.add_module, "x", 3)
    show.raises(m.add_module, "x", torch.ones(1))
    show.raises(m.add_module, "x", nn.ReLU)
    m.add_module("x", None)
    m.add_module("x", r)
    m.register_module("y", r)
    show(m)
    m.p = nn.Parameter(torch.ones(1))
    show.raises(m.add_module, "p", r)


def setattr_sorts_values_into_the_right_dictionary(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Module()

    def where(name: str) -> list[str]:
        places = [k for k in ("_parameters", "_buffers", "_modules") if name in getattr(m, k)]
        return places + ["plain"] * (name in vars(m))

    m.a = nn.Parameter(torch.ones(1))
    show(where("a"))
    m.a = None
    show(where("a"), m.a)
    show.raises(setattr, m, "a", torch.ones(1))
    show.raises(setattr, m, "a", 3)
    show.raises(setattr, m, "a", nn.ReLU())
    show.raises(setattr, m, "a", nn.Buffer(torch.ones(1)))
    del m.a
    m.a = nn.ReLU()
    show(where("a"))
    show.raises(setattr, m, "a", 3)
    show.raises(setattr, m, "a", torch.ones(1))
    show.raises(setattr, m, "a", nn.Buffer(torch.ones(1)))
    m.a = nn.Parameter(torch.ones(1))
    show(where("a"))
    m.h = nn.Buffer(torch.ones(1))
    show(where("h"), type(m.h).__name__)
    show.raises(setattr, m, "h", 3)
    show.raises(setattr, m, "h", "text")
    m.h = torch.zeros(1)
    show(where("h"), m.h)
    m.h = None
    show(where("h"), m.h)
    m.h = nn.Parameter(torch.ones(1))
    show(where("h"))
    m.b = 3
    show(where("b"))
    m.b = nn.Parameter(torch.ones(1))
    show(where("b"))
    m.c = torch.ones(1)
    show(where("c"))
    m.c = nn.Parameter(torch.ones(1))
    show(where("c"))
    m.d = nn.Buffer(torch.ones(1), persistent=False)
    show(where("d"), m._non_persistent_buffers_set)
    m.d = nn.ReLU()
    show(where("d"), m._non_persistent_buffers_set)
    m.e = nn.ReLU()
    m.e = None
    show(where("e"), m.e)
    m.e = nn.Parameter(torch.ones(1))
    show(where("e"))
    m.f = 3
    m.f = nn.ReLU()
    show(where("f"))
    m.g = 3
    show.raises(setattr, m, "g", nn.Buffer(torch.ones(1)))
    show.raises(setattr, m, "x.y", nn.Parameter(torch.ones(1)))
    show.raises(setattr, m, "x.y", nn.Buffer(torch.ones(1)))
    setattr(m, "x.y", nn.ReLU())
    show(where("x.y"))
    m.training = nn.Parameter(torch.ones(1))
    show(where("training"))


def delattr_removes_from_the_right_dictionary(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Module()
    m.p, m.m, m.v = nn.Parameter(torch.ones(1)), nn.ReLU(), 3
    m.register_buffer("b", torch.ones(1), persistent=False)
    for name in ("p", "m", "v", "b"):
        delattr(m, name)
        show(name, hasattr(m, name), m._non_persistent_buffers_set)
    show.raises(delattr, m, "p")
    show.raises(getattr, m, "p")
    show.raises(lambda: nn.Linear(1, 1).wieght)
    del nn.Linear(1, 1).bias


def an_attribute_error_inside_a_property_is_reported_as_torch_does(torch: Any, show: Any) -> None:
    class A(torch.nn.Module):
        @property
        def size(self) -> Any:
            return self.not_there

    show.raises(lambda: A().size)

    class B(torch.nn.Module):
        @property
        def size(self) -> int:
            return 3

    show(B().size)
    show.raises(setattr, B(), "size", 4)
    show.raises(setattr, B(), "size", torch.nn.Parameter(torch.ones(1)))


def class_attributes_hide_registered_members(torch: Any, show: Any) -> None:
    nn = torch.nn

    class A(nn.Module):
        weight = None
        act = None

    a = A()
    show.raises(setattr, a, "weight", nn.Parameter(torch.ones(1)))
    a.weight = nn.ReLU()
    show(a.weight, a._modules)
    show.raises(a.register_parameter, "act", nn.Parameter(torch.ones(1)))
    show.raises(a.add_module, "act", nn.ReLU())
    show.raises(a.register_buffer, "act", torch.ones(1))


def dir_lists_parameters_modules_and_buffers(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    names = dir(net.first)
    show(
        [
            n
            for n in names
            if n in ("lin", "scale", "count", "hidden", "absent", "nothing", "training", "forward")
        ]
    )
    show(names == sorted(names))
    show([n for n in dir(torch.nn.Sequential(torch.nn.ReLU())) if n[0].isdigit()])
    show(
        [
            n
            for n in dir(torch.nn.ModuleDict({"a": torch.nn.ReLU(), "1b": torch.nn.ReLU()}))
            if n in ("a", "1b")
        ]
    )


def traversal_orders_and_prefixes_are_torchs(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    show([n for n, _ in net.named_parameters()])
    show([n for n, _ in net.named_parameters("pre")])
    show([n for n, _ in net.named_parameters(recurse=False)])
    show([n for n, _ in net.first.named_parameters(recurse=False)])
    show([n for n, _ in net.named_buffers()])
    show([n for n, _ in net.named_buffers(prefix="x")])
    show([n for n, _ in net.named_children()])
    show([n for n, _ in net.named_modules()])
    show([n for n, _ in net.named_modules(prefix="top")])
    show([type(m).__name__ for m in net.modules()])
    show([type(m).__name__ for m in net.children()])
    show([tuple(p.shape) for p in net.parameters()], [tuple(b.shape) for b in net.buffers()])
    memo = {net.last}
    show([n for n, _ in net.named_modules(memo)], len(memo))


def shared_members_are_listed_once_unless_asked(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Module()
    lin = nn.Linear(2, 2, bias=False)
    m.a, m.b = lin, lin
    m.c = nn.Linear(2, 2, bias=False)
    m.c.weight = lin.weight
    m.register_buffer("p", torch.ones(1))
    m.register_buffer("q", m.p)
    show([n for n, _ in m.named_parameters()], [n for n, _ in m.named_parameters(remove_duplicate=False)])
    show([n for n, _ in m.named_buffers()], [n for n, _ in m.named_buffers(remove_duplicate=False)])
    show([n for n, _ in m.named_modules()], [n for n, _ in m.named_modules(remove_duplicate=False)])
    show(len(list(m.modules())), len(list(m.modules(remove_duplicate=False))))
    show([n for n, _ in m.named_children()], len(list(m.children())))
    show(list(m.state_dict()))


def get_and_set_submodule_follow_dotted_paths(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    show(net.get_submodule("last.0"), net.get_submodule("") is net)
    show.raises(net.get_submodule, "last.5")
    show.raises(net.get_submodule, "nope.x")
    show.raises(net.get_submodule, "first.scale")
    show(tuple(net.get_parameter("first.lin.weight").shape), tuple(net.get_buffer("first.count").shape))
    show.raises(net.get_parameter, "first.lin.nope")
    show.raises(net.get_parameter, "first.count")
    show.raises(net.get_parameter, "nope.weight")
    show.raises(net.get_buffer, "first.nope")
    show.raises(net.get_buffer, "first.scale")
    show.raises(net.get_parameter, "")
    show.raises(net.get_buffer, "first.lin")
    net.set_submodule("last.1", torch.nn.Tanh())
    net.set_submodule("last.new", torch.nn.Tanh())
    show(net.last)
    show.raises(net.set_submodule, "last.absent", torch.nn.Tanh(), strict=True)
    show.raises(net.set_submodule, "", torch.nn.Tanh())
    show.raises(net.set_submodule, "absent.x", torch.nn.Tanh())
    show.raises(net.set_submodule, "first.scale", torch.nn.Tanh())
    show.raises(net.set_submodule, "first.scale.x", torch.nn.Tanh())
    show.raises(net.set_submodule, "last.0", 3)
    net.set_submodule("top", torch.nn.Tanh())
    show(net.top)
    show.raises(net.set_submodule, "toptop", torch.nn.Tanh(), True)
    show.raises(net.get_submodule, "last..0")


def train_eval_apply_and_requires_grad_return_self(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    show(net.eval() is net, [m.training for m in net.modules()])
    show(net.train() is net, [m.training for m in net.modules()])
    show.raises(net.train, 1)
    show.raises(net.train, "yes")
    show(net.requires_grad_(False) is net, [p.requires_grad for p in net.parameters()])
    show(net.requires_grad_() is net, [p.requires_grad for p in net.parameters()])
    names: list[str] = []
    show(net.apply(lambda m: names.append(type(m).__name__)) is net, names)


def zero_grad_sets_none_or_zero(torch: Any, show: Any) -> None:
    net = torch.nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    show(net.weight.grad, net.bias.grad)
    net.zero_grad(set_to_none=False)
    show(net.weight.grad, net.bias.grad)
    net.zero_grad()
    show(net.weight.grad)
    net.weight.grad = torch.ones(1, 2, requires_grad=True) * 2
    net.zero_grad(set_to_none=False)
    show(net.weight.grad)


def reprs_are_torchs(torch: Any, show: Any) -> None:
    nn = torch.nn
    show(module_net.make_net(torch))
    show(
        nn.Module(), nn.Sequential(), nn.ModuleList(), nn.ModuleDict(), nn.ParameterList(), nn.ParameterDict()
    )

    class A(nn.Module):
        def extra_repr(self) -> str:
            return "a=1"

    class B(nn.Module):
        def __init__(self, extra: str, children: int) -> None:
            super().__init__()
            self.extra = extra
            for i in range(children):
                setattr(self, f"c{i}", A())

        def extra_repr(self) -> str:
            return self.extra

        def _get_name(self) -> str:
            return "Renamed"

    show(A())
    show(B("", 0))
    show(B("x=1", 1))
    show(B("x=1\ny=2", 1))
    show(B("x=1\ny=2", 0))
    show(B("", 2))


def module_lists_group_equal_neighbours_in_their_repr(torch: Any, show: Any) -> None:
    nn = torch.nn
    show(nn.ModuleList([nn.Linear(2, 2) for _ in range(4)]))
    show(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)]))
    show(nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(2)] + [nn.ReLU()] * 3))
    show(nn.Sequential(nn.ModuleList([nn.ModuleList([nn.ReLU()] * 2)] * 2), nn.ReLU()))

    class L(nn.ModuleList):
        def extra_repr(self) -> str:
            return "extra"

    show(L([nn.ReLU()]))
    show(nn.ModuleList([None, nn.ReLU()]))


def deepcopy_and_pickle_keep_structure_and_sharing(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    m.eval()
    twin = copy.deepcopy(m)
    show(twin[0].weight is twin[1].weight, twin[0].weight is not m[0].weight, twin.training, twin)
    show(
        torch.equal(twin[0].weight, m[0].weight), type(twin[0].weight).__name__, twin[0].weight.requires_grad
    )
    back = pickle.loads(pickle.dumps(m))
    show(back[0].weight is back[1].weight, back.training, torch.equal(back[0].weight, m[0].weight), back)
    show(list(back.state_dict()) == list(m.state_dict()), type(back[0].bias).__name__)
    out = io.BytesIO()
    torch.save(m, out)
    out.seek(0)
    again = torch.load(out, weights_only=False)
    show(again, again[0].weight is again[1].weight)


def old_pickles_without_newer_fields_get_them(torch: Any, show: Any) -> None:
    m = torch.nn.ReLU()
    state = {
        k: v
        for k, v in vars(m).items()
        if k in ("training", "_parameters", "_buffers", "_modules", "inplace")
    }
    state.update(_backward_hooks=m._backward_hooks, _forward_hooks=m._forward_hooks)
    old = torch.nn.ReLU.__new__(torch.nn.ReLU)
    old.__setstate__(state)
    show(sorted(vars(old)))
    show(old(torch.tensor([-1.0, 1.0])))


def an_overridden_call_or_forward_on_the_instance_is_used(torch: Any, show: Any) -> None:
    m = torch.nn.Identity()
    m.forward = lambda x: x * 3
    show(m(2))

    class A(torch.nn.Identity):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return "called", super().__call__(*args, **kwargs)

    show(A()(5))
    show.raises(torch.nn.Identity(), 1, 2)


def to_takes_every_call_form(torch: Any, show: Any) -> None:
    def fresh() -> Any:
        m = torch.nn.Linear(2, 1)
        m.register_buffer("n", torch.ones(1, dtype=torch.int64))
        m.register_buffer("f", torch.ones(1))
        return m

    def kinds(m: Any) -> Any:
        return [str(t.dtype) for t in m.state_dict().values()]

    m = fresh()
    show(m.to("cpu") is m, kinds(m))
    show(kinds(m.to(torch.float64)), kinds(m.to(dtype=torch.float32)), kinds(m.to("cpu", torch.float64)))
    show(kinds(m.to(torch.device("cpu"), torch.float16, non_blocking=True)), kinds(m.to(torch.ones(1))))
    show(kinds(m.to(memory_format=torch.contiguous_format)))
    show(kinds(m.to()))
    show.raises(m.to, torch.int64)
    show.raises(m.to, "nowhere")
    show.raises(m.to, torch.float32, "cpu")
    show.raises(m.to, bogus=1)
    w = m.weight
    m.to(torch.float64)
    show(m.weight is w, m.weight.dtype, m.weight.requires_grad, m.weight.is_leaf)
    m(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    m.to(torch.float32)
    show(m.weight.grad.dtype, m.weight is w)
    show.warns(lambda: fresh().to(torch.complex64))
    show(m.to("meta").weight.device, m.n.device)


def dtype_methods_touch_floating_members_only(torch: Any, show: Any) -> None:
    m = torch.nn.Linear(2, 1)
    m.register_buffer("n", torch.ones(1, dtype=torch.int64))
    for name in ("double", "half", "bfloat16", "float", "cpu"):
        out = getattr(m, name)()
        show(name, out is m, [str(t.dtype) for t in m.state_dict().values()])
    show([str(t.dtype) for t in torch.nn.Linear(1, 1).type(torch.float64).state_dict().values()])
    show([str(t.dtype) for t in torch.nn.Linear(1, 1).type("torch.DoubleTensor").state_dict().values()])
    m.type(torch.float64)
    show([str(t.dtype) for t in m.state_dict().values()])
    show.raises(torch.nn.Linear(1, 1).type, torch.int64)


def to_empty_gives_storage_without_values(torch: Any, show: Any) -> None:
    m = torch.nn.Sequential(torch.nn.Linear(2, 1, device="meta"), torch.nn.BatchNorm1d(1, device="meta"))
    show(
        m.to_empty(device="cpu") is m, [(k, tuple(v.shape), str(v.device)) for k, v in m.state_dict().items()]
    )
    show(m[0].weight.requires_grad, type(m[0].weight).__name__)
    n = torch.nn.Sequential(torch.nn.Linear(2, 1, device="meta"))
    n.to_empty(device="cpu", recurse=False)
    show(n[0].weight.device)
    show.raises(torch.nn.Linear(2, 1, device="meta").to, "cpu")
    show.raises(m.to_empty, "cpu")


def share_memory_marks_every_tensor(torch: Any, show: Any) -> None:
    m = torch.nn.Linear(2, 1)
    show(m.share_memory() is m, m.weight.is_shared())


def apply_keeps_gradients_and_identity(torch: Any, show: Any) -> None:
    lin = torch.nn.Linear(2, 1)
    lin(torch.ones(1, 2)).sum().backward()
    w, g = lin.weight, lin.weight.grad
    lin._apply(lambda t: t * 2)
    show(lin.weight is w, lin.weight.grad is g, lin.weight.grad, lin.weight.is_leaf)

    tied = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    tied.double()
    show(tied[0].weight is tied[1].weight, tied[1].weight.dtype)


def methods_of_other_devices_fail_clearly(torch: Any, show: Any) -> None:
    m = torch.nn.Linear(2, 1)
    for name in ("cuda", "xpu"):
        show.raises(getattr(m, name))
    for device in ("cuda", "cuda:1"):
        show.raises(m.to, device)
    show(torch.nn.ReLU().cuda())


def compile_of_a_module_keeps_it_callable(torch: Any, show: Any) -> None:
    m = torch.nn.Identity()
    show(list(m.__getstate__()) == list(vars(m)), "_compiled_call_impl" in vars(m))
