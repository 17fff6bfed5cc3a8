"""Cases of nn.Module's state_dict and load_state_dict."""

from __future__ import annotations

from typing import Any

import module_net


def state_dict_has_torchs_keys_and_metadata(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    sd = net.state_dict()
    show(type(sd).__name__, list(sd))
    show(sd._metadata)
    show(sd["first.scale"], sd["first.scale"].requires_grad, type(sd["first.scale"]).__name__)
    show(sd["first.scale"].data_ptr() == net.first.scale.data_ptr())
    kept = net.state_dict(keep_vars=True)
    show(kept["first.scale"] is net.first.scale, type(kept["first.scale"]).__name__)
    show(list(net.state_dict(prefix="a.")), net.state_dict(prefix="a.")._metadata)
    dest: dict[str, Any] = {}
    out = show.warns(lambda: net.state_dict(dest))
    show(out is dest, list(dest), hasattr(out, "_metadata"))
    show.warns(lambda: net.state_dict(dest, "q."))
    show(list(dest)[-3:])
    show.warns(lambda: net.state_dict(destination=dest, prefix="r."))
    show(torch.nn.Module().state_dict(), torch.nn.Module().state_dict()._metadata)


def load_state_dict_reports_missing_and_unexpected_keys(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    sd = net.state_dict()
    result = net.load_state_dict(sd)
    show(result, repr(result), type(result).__name__, result.missing_keys)
    del sd["first.scale"], sd["last.0.bias"]
    sd["extra"] = torch.ones(1)
    sd["first.lin.more"] = torch.ones(1)
    sd["first.count.x"] = torch.ones(1)
    sd["nowhere.weight"] = torch.ones(1)
    show.raises(net.load_state_dict, sd)
    result = net.load_state_dict(sd, strict=False)
    show(result, result.missing_keys, result.unexpected_keys)
    show.raises(net.load_state_dict, {})
    show.raises(net.load_state_dict, 3)
    show.raises(net.load_state_dict, [])
    show.raises(net.load_state_dict, None)
    sd = dict(net.state_dict().items())
    show(net.load_state_dict(sd))


def load_state_dict_reports_wrong_sizes_and_values(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    sd = net.state_dict()
    sd["first.lin.weight"] = torch.ones(3, 5)
    sd["first.scale"] = torch.ones(())
    sd["last.0.bias"] = 3
    show.raises(net.load_state_dict, sd)
    show.raises(net.load_state_dict, sd, strict=False)
    sd = net.state_dict()
    sd["first.lin.bias"] = [1.0, 2.0, 3.0]
    sd["first.count"] = None
    show.raises(net.load_state_dict, sd)
    one = torch.nn.Module()
    one.p = torch.nn.Parameter(torch.tensor(1.0))
    show(one.load_state_dict({"p": torch.tensor([4.0])}), one.p)
    show.raises(one.load_state_dict, {"p": torch.tensor([4.0, 5.0])})
    show.raises(one.load_state_dict, {"p": torch.tensor([[4.0]])})
    show(one.load_state_dict({"p": torch.tensor(3, dtype=torch.int64)}), one.p)


def load_state_dict_copies_or_assigns(torch: Any, show: Any) -> None:
    nn = torch.nn
    lin = nn.Linear(2, 1)
    weight = lin.weight
    new = {"weight": torch.full((1, 2), 3.0, dtype=torch.float64), "bias": nn.Parameter(torch.zeros(1))}
    lin.load_state_dict(new)
    show(lin.weight is weight, lin.weight)
    lin.load_state_dict(new, assign=True)
    show(lin.weight is weight, lin.weight, lin.bias is new["bias"])
    lin.requires_grad_(False)
    lin.load_state_dict(new, assign=True)
    show(lin.weight, lin.bias)
    bn = nn.BatchNorm1d(2)
    bn.load_state_dict({k: v + 1 for k, v in bn.state_dict().items()}, assign=True)
    show(bn.state_dict())
    meta = nn.Linear(2, 1, device="meta")
    show.warns(lambda: meta.load_state_dict({k: v.float() for k, v in new.items()}))
    show(meta.weight.device)
    meta.load_state_dict({k: v.float() for k, v in new.items()}, assign=True)
    show(meta.weight, meta.weight.requires_grad)
    show.raises(lin.load_state_dict, nn.Linear(2, 1, device="meta").state_dict())


def load_state_dict_keeps_requires_grad_and_in_place_identity(torch: Any, show: Any) -> None:
    nn = torch.nn
    lin = nn.Linear(2, 1)
    lin.weight.requires_grad_(False)
    version = lin.bias._version
    lin.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.ones(1)})
    show(lin.weight, lin.bias, lin.bias._version - version)
    lin.register_buffer("b", torch.ones(2, dtype=torch.int64))
    lin.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.ones(1), "b": torch.tensor([1.7, 2.2])})
    show(lin.b)


def extra_state_travels_with_the_state_dict(torch: Any, show: Any) -> None:
    class E(torch.nn.Module):
        def __init__(self, state: Any) -> None:
            super().__init__()
            self.state = state

        def get_extra_state(self) -> Any:
            return self.state

        def set_extra_state(self, state: Any) -> None:
            self.state = state

    class Box(torch.nn.Module):
        def __init__(self, state: Any) -> None:
            super().__init__()
            self.e = E(state)
            self.lin = torch.nn.Linear(1, 1, bias=False)

    box, other = Box({"a": 1}), Box(None)
    show(list(box.state_dict()), box.state_dict()["e._extra_state"])
    show(other.load_state_dict(box.state_dict()), other.e.state)
    sd = box.state_dict()
    del sd["e._extra_state"]
    show.raises(other.load_state_dict, sd)
    plain = torch.nn.Module()
    show.raises(plain.load_state_dict, {"_extra_state": 3})
    show.raises(plain.get_extra_state)
    show.raises(plain.set_extra_state, 1)

    class OnlyGet(torch.nn.Module):
        def get_extra_state(self) -> Any:
            return 5

    g = OnlyGet()
    show.raises(g.load_state_dict, g.state_dict())


def users_may_override_saving_and_loading(torch: Any, show: Any) -> None:
    class V(torch.nn.Module):
        _version = 3

        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(1))

        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "added"] = torch.zeros(1)

        def _load_from_state_dict(
            self,
            state_dict: Any,
            prefix: str,
            local_metadata: Any,
            strict: bool,
            missing_keys: Any,
            unexpected_keys: Any,
            error_msgs: Any,
        ) -> None:
            show(prefix, local_metadata, strict, sorted(state_dict))
            state_dict.pop(prefix + "added", None)
            if local_metadata.get("version", 0) < 3:
                error_msgs.append("too old")
            super()._load_from_state_dict(
                state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
            )

    box = torch.nn.Module()
    box.v = V()
    sd = box.state_dict()
    show(sd, sd._metadata)
    before = list(sd)
    show(box.load_state_dict(sd), list(sd) == before)
    show.raises(box.load_state_dict, dict(sd))


def state_dict_of_a_child_can_be_loaded_into_it(torch: Any, show: Any) -> None:
    net, other = module_net.make_net(torch), module_net.make_net(torch)
    other.first.load_state_dict(net.first.state_dict())
    show(torch.equal(net.first.lin.weight, other.first.lin.weight))
    sd = {"module." + k: v for k, v in net.state_dict().items()}
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(sd, "module.")
    show(list(sd))
    sd2 = net.state_dict(prefix="module.")
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(sd2, "module.")
    show(list(sd2), sd2._metadata)
