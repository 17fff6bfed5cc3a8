"""Cases of the containers: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict, Container."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any


def _names(m: Any) -> list[str]:
    return [f"{k}:{type(v).__name__}" for k, v in m._modules.items()]


def sequentials_run_and_index_their_modules(torch: Any, show: Any) -> None:
    nn = torch.nn
    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    show(s, len(s), s[0], s[-1], s[1:], [type(m).__name__ for m in s], nn.ReLU in s, s[0] in s)
    show.raises(lambda: s[3])
    show.raises(lambda: s[-4])
    show.raises(lambda: s["0"])
    show.raises(lambda: s[1.5])
    show(s(torch.tensor([0.0, 1.0])))
    d = nn.Sequential(OrderedDict([("a", nn.ReLU()), ("b", nn.Tanh())]))
    show(d, d[0], d.a, d[:1], _names(d[1:]))
    show.raises(nn.Sequential, {"a": nn.ReLU()})
    show.raises(nn.Sequential, [nn.ReLU()])
    show.raises(nn.Sequential, 3)
    show(nn.Sequential(None))
    show.raises(nn.Sequential(), 1)
    show(nn.Sequential()(5))
    show.raises(s, 1, 2)
    show(next(reversed(list(s))), s[torch.tensor(1)])


def sequentials_change_like_lists(torch: Any, show: Any) -> None:
    nn = torch.nn
    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    s[1] = nn.ELU()
    show(_names(s))
    s[-1] = nn.GELU()
    show(_names(s))
    show.raises(s.__setitem__, 7, nn.ReLU())
    show.raises(s.__setitem__, 0, 3)
    del s[0]
    show(_names(s))
    show(s.append(nn.Tanh()) is s, _names(s))
    show(s.insert(1, nn.ReLU()) is s, _names(s))
    s.insert(-1, nn.SiLU())
    show(_names(s))
    s.insert(len(s), nn.Softplus())
    show(_names(s))
    show.raises(s.insert, 99, nn.ReLU())
    show.raises(s.insert, 0, 3)
    show(s.pop(0), _names(s))
    show(s.pop(-1), _names(s))
    show.raises(s.pop, 9)
    del s[1:3]
    show(_names(s))
    show(s.extend([nn.ReLU(), nn.Tanh()]) is s, _names(s))
    show(s.extend(nn.Sequential(nn.ELU())) is s, _names(s))
    show.raises(s.extend, [3])
    show.raises(s.extend, 3)
    show.raises(s.append, 3)
    del s[-1]
    show(_names(s))
    s.pop(slice(0, 1))
    show(_names(s))


def sequentials_add_and_multiply(torch: Any, show: Any) -> None:
    nn = torch.nn
    a, b = nn.Sequential(nn.ReLU()), nn.Sequential(nn.Tanh(), nn.ELU())
    show(_names(a + b), _names(a * 3), _names(2 * b))
    c = a + b
    show(c[0] is a[0])
    same = a
    a += b
    show(_names(a), same is a)
    a *= 2
    show(_names(a), same is a, a[0] is a[3])
    show.raises(lambda: a + 3)
    show.raises(lambda: a + [nn.ReLU()])
    show.raises(lambda: a * 2.0)
    show.raises(lambda: a * 0)
    show.raises(lambda: a * -1)
    show.raises(lambda: nn.Sequential.__imul__(a, 0))
    show.raises(lambda: nn.Sequential.__imul__(a, "x"))
    show.raises(lambda: nn.Sequential.__iadd__(a, 3))
    show.raises(lambda: "x" * a)
    d = nn.Sequential(OrderedDict([("x", nn.ReLU()), ("y", nn.Tanh())]))
    del d[0]
    show(_names(d))
    e = nn.Sequential(OrderedDict([("x", nn.ReLU())])) + nn.Sequential(OrderedDict([("y", nn.Tanh())]))
    show(_names(e))
    show.raises(d.append, nn.ELU())
    show(_names(d))


def module_lists_behave_like_lists(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.ELU()])
    show(m, len(m), m[0], m[-1], m[1:], [type(c).__name__ for c in m], m[0] in m)
    show.raises(lambda: m[3])
    show.raises(lambda: m[-4])
    show.raises(lambda: m["a"])
    m[0] = nn.GELU()
    m[-1] = nn.SiLU()
    show(_names(m))
    show.raises(m.__setitem__, 5, nn.ReLU())
    show.raises(m.__setitem__, 0, 3)
    del m[1]
    show(_names(m))
    m += [nn.ReLU(), nn.Tanh()]
    show(_names(m))
    n = m + [nn.ELU()]
    show(_names(n), type(n).__name__, n[0] is m[0])
    m.insert(1, nn.Softplus())
    show(_names(m))
    show(m.append(nn.ELU()) is m, m.extend([nn.ELU()]) is m, _names(m))
    show(m.pop(0), m.pop(-1), _names(m))
    del m[0:2]
    show(_names(m))
    show.raises(m.extend, nn.ReLU())
    show.raises(m.extend, 3)
    show.raises(m.append, 3)
    show.raises(m, 1)
    show.raises(m.__iadd__, 3)
    m[0] = None
    show(_names(m))
    show(nn.ModuleList(nn.ModuleList([nn.ReLU()])), nn.ModuleList(x for x in [nn.ReLU()]))
    show.raises(nn.ModuleList, 3)
    show.raises(nn.ModuleList, [1])
    show.raises(m.insert, "a", nn.ReLU())
    m.pop(slice(0, 1))
    show(_names(m))
    show(_names(nn.ModuleList([nn.ReLU(), nn.Tanh()])[::-1]), list(copy.deepcopy(n).state_dict()))


def module_dicts_behave_like_dicts(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    show(
        m, len(m), list(m), list(m.keys()), [k for k, _ in m.items()], [type(v).__name__ for v in m.values()]
    )
    show(m["a"], m.a, "a" in m, "z" in m)
    show.raises(lambda: m["z"])
    m["c"] = nn.ELU()
    del m["b"]
    show(_names(m))
    show.raises(m.__delitem__, "b")
    show(m.pop("a"), _names(m))
    show.raises(m.pop, "a")
    m.update({"y": nn.ReLU(), "x": nn.Tanh()})
    show(_names(m))
    m.update([("q", nn.ELU())])
    m.update(OrderedDict([("w", nn.ELU()), ("v", nn.ELU())]))
    m.update(nn.ModuleDict({"u": nn.ELU()}))
    show(_names(m))
    show.raises(m.update, 3)
    show.raises(m.update, [3])
    show.raises(m.update, [("a",)])
    show.raises(m.update, [("a", nn.ReLU(), 3)])
    show.raises(m.update, [(1, nn.ReLU())])
    show.raises(m.__setitem__, "training", nn.ReLU())
    show.raises(m.__setitem__, "keys", nn.ReLU())
    show.raises(m.__setitem__, "a.b", nn.ReLU())
    show.raises(m.__setitem__, 3, nn.ReLU())
    show.raises(m.__setitem__, "p", 3)
    m.clear()
    show(m, len(m))
    show.raises(m, 1)
    show(list(nn.ModuleDict([["k", nn.ReLU()]])))
    show(nn.ModuleDict({"n": None}))


def parameter_lists_behave_like_lists(torch: Any, show: Any) -> None:
    nn = torch.nn
    p = nn.ParameterList([torch.ones(1), nn.Parameter(torch.zeros(2)), 3, "text"])
    show(p, len(p), type(p[0]).__name__, p[-1], [type(v).__name__ for v in p])
    show([n for n, _ in p.named_parameters()], list(p.state_dict()))
    show.raises(lambda: p[4])
    show.raises(lambda: p[-5])
    show.raises(lambda: p["a"])
    q = p[1:3]
    show(type(q).__name__, q, q[0] is p[1])
    p[0] = torch.full((1,), 5.0)
    show(type(p[0]).__name__, p[0])
    p[-1] = torch.ones(3)
    show(p)
    show(p.append(torch.ones(1)) is p, len(p), p.extend([torch.ones(2)]) is p, len(p))
    p += [torch.ones(1)]
    show(len(p), [n for n in dir(p) if n.isdigit()])
    show.raises(p.extend, nn.Parameter(torch.ones(1)))
    show.raises(p.extend, 3)
    show.raises(p.__setitem__, 20, torch.ones(1))
    show.raises(p, 1)
    show(nn.ParameterList(), nn.ParameterList([nn.Parameter(torch.ones(2, 3, dtype=torch.float64))]))
    show.raises(nn.ParameterList, 3)
    show(len(copy.deepcopy(p)), nn.ParameterList([nn.Linear(1, 1)]))
    nested = nn.ParameterList([nn.ParameterList([torch.ones(1)])])
    show(nested, list(nested.state_dict()))
    show.raises(nn.ParameterList, [torch.ones(1, dtype=torch.int64)])
    show(nn.ParameterList([torch.tensor(1.0)]))


def parameter_dicts_behave_like_dicts(torch: Any, show: Any) -> None:
    nn = torch.nn
    p = nn.ParameterDict({"b": torch.ones(1), "a": nn.Parameter(torch.zeros(2)), "c": 3})
    show(p, len(p), list(p), list(p.keys()), type(p["b"]).__name__, "a" in p, "z" in p)
    show([k for k, _ in p.items()], [type(v).__name__ for v in p.values()], list(reversed(p)))
    show([n for n, _ in p.named_parameters()], list(p.state_dict()), p.a is p["a"])
    show.raises(lambda: p["z"])
    show.raises(lambda: p[3])
    show.raises(p.__delitem__, "z")
    p["d"] = torch.ones(2)
    del p["b"]
    show(list(p))
    show(
        p.get("a") is p["a"],
        p.get("z"),
        p.get("z", 5),
        p.setdefault("c", 9),
        p.setdefault("e", torch.ones(1)),
    )
    show(list(p), p.pop("c"), list(p))
    show.raises(p.pop, "nope")
    key, value = p.popitem()
    show(key, value, list(p))
    q = p.copy()
    show(type(q).__name__, list(q), q["a"] is p["a"])
    show(list(p.fromkeys(["x", "y"], 1)), p.fromkeys(["x"])["x"])
    p.update({"z": torch.ones(1), "m": torch.ones(1)})
    show(list(p))
    p.update([("k", torch.ones(1))])
    p.update(nn.ParameterDict({"pd": torch.ones(1)}))
    p.update(OrderedDict([("y2", torch.ones(1)), ("x2", torch.ones(1))]))
    show(list(p))
    show.raises(p.update, 3)
    show.raises(p.update, [3])
    show.raises(p.update, [("a",)])
    r = nn.ParameterDict({"a": torch.full((1,), 9.0), "new": torch.ones(1)})
    show(list(p | r), (p | r)["a"], list(r | p)[:3])
    p |= r
    show(list(p), p["a"])
    p.clear()
    show(p, len(p))
    show.raises(p, 1)
    show.raises(p.popitem)
    show(list(nn.ParameterDict([("q", torch.ones(1))])), list(nn.ParameterDict({"z": 1, "a": 2})))
    show(list(copy.deepcopy(r)), nn.ParameterDict({"training2": torch.ones(1)}))
    show.raises(lambda: nn.ParameterDict({"a.b": torch.ones(1)}))
    show.raises(lambda: nn.ParameterDict({3: torch.ones(1)}))
    show(nn.ParameterDict({"t": torch.ones(2, 3, dtype=torch.float64), "n": None, "m": nn.ReLU()}))


def the_old_container_warns(torch: Any, show: Any) -> None:
    nn = torch.nn
    show(show.warns(lambda: nn.Container(a=nn.ReLU())))


def subclasses_of_containers_keep_their_class_in_slices(torch: Any, show: Any) -> None:
    nn = torch.nn

    class S(nn.Sequential):
        pass

    class L(nn.ModuleList):
        pass

    show(type(S(nn.ReLU(), nn.Tanh())[:1]).__name__, type(L([nn.ReLU(), nn.Tanh()])[:1]).__name__)
    show(type(S(nn.ReLU()) + S(nn.Tanh())).__name__, type(L([nn.ReLU()]) + L([nn.Tanh()])).__name__)
    show(type(S(nn.ReLU()) * 2).__name__)
