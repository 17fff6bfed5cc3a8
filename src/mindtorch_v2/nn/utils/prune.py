"""Pruning: replaces a module's tensor `name` by `name_orig * name_mask`, computed before each call."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import mindtorch_v2 as torch


class BasePruningMethod(ABC):
    """A rule that computes masks, and the forward pre-hook that applies them.

    A subclass sets `PRUNING_TYPE` ("unstructured", "structured" or "global") and defines `compute_mask`.
    """

    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for the scores `t`, on top of a default mask."""

    def apply_mask(self, module: Any) -> Any:
        """The pruned tensor."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of the module and register the hook; earlier methods of this parameter stay."""
        old_method, hook_id = _find_pruning_method(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old_method is not None:
            container = old_method
            if not isinstance(old_method, PruningContainer):
                container = PruningContainer(old_method)
                container._tensor_name = name
            container.add_pruning_method(method)
            method = container
            del module._forward_pre_hooks[hook_id]

        orig = getattr(module, name)
        if importance_scores is not None:
            if importance_scores.shape != orig.shape:
                raise AssertionError(
                    f"importance_scores should have the same shape as parameter {name} of {module}, "
                    f"got {importance_scores.shape} vs {orig.shape}"
                )
        else:
            importance_scores = orig
        if not isinstance(method, PruningContainer):
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
            default_mask = torch.ones_like(orig)
        else:
            default_mask = (
                getattr(module, name + "_mask").detach().clone(memory_format=torch.contiguous_format)
            )

        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not isinstance(method, PruningContainer):
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned copy of a tensor, without any module."""
        if importance_scores is not None:
            if importance_scores.shape != t.shape:
                raise AssertionError(
                    "importance_scores should have the same shape as tensor t, "
                    f"got {importance_scores.shape} vs {t.shape}"
                )
        else:
            importance_scores = t
        default_mask = default_mask if default_mask is not None else torch.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor an ordinary parameter again. Pruned elements stay zero."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        orig = module._parameters[self._tensor_name + "_orig"]
        orig.data = weight.data
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, orig)


def _find_pruning_method(module: Any, name: str) -> tuple[Any, Any]:
    """The pruning hook of a parameter and its id, or None."""
    methods = [
        (hook, k)
        for k, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]
    if len(methods) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
            "Use a PruningContainer."
        )
    return methods[0] if methods else (None, None)


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one parameter, each applied to what the earlier ones left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if not isinstance(args, Iterable):
            self._tensor_name = args._tensor_name
            self.add_pruning_method(args)
        elif len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add another method for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of the last method, applied to what the current mask leaves."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            where: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined."
                )
            dim = method.dim
            if dim < 0:
                dim += t.dim()
                if dim < 0:
                    raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
            # Only channels that are not completely pruned yet.
            keep_channel = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
            where = [slice(None)] * t.dim()
            where[dim] = keep_channel
            where = tuple(where)
        elif method.PRUNING_TYPE == "global":
            where = tuple([slice(None)] * t.dim())
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new_mask = mask.clone()
        new_mask[where] = method.compute_mask(t[where], default_mask=mask[where]).to(dtype=mask.dtype)
        return new_mask


class Identity(BasePruningMethod):
    """Prunes nothing: only splits the parameter."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:
        """Split a parameter and register the hook."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask with random elements set to zero."""
        tensor_size = t.nelement()
        n = _compute_nparams_toprune(self.amount, tensor_size)
        _validate_pruning_amount(n, tensor_size)
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if n != 0:
            prob = torch.rand_like(t)
            topk = torch.topk(prob.view(-1), k=n)
            mask.view(-1)[topk.indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:
        """Prune a parameter and register the hook."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of smallest absolute value."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask with the smallest elements set to zero."""
        tensor_size = t.nelement()
        n = _compute_nparams_toprune(self.amount, tensor_size)
        _validate_pruning_amount(n, tensor_size)
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if n != 0:
            topk = torch.topk(torch.abs(t).view(-1), k=n, largest=False)
            mask.view(-1)[topk.indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
        """Prune a parameter and register the hook."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Prunes whole channels at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask with random channels along `dim` set to zero."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        tensor_size = t.shape[self.dim]
        n = _compute_nparams_toprune(self.amount, tensor_size)
        _validate_pruning_amount(n, tensor_size)
        prob = torch.rand(tensor_size)
        threshold = torch.kthvalue(prob, k=n).values if n != 0 else None
        if threshold is None:
            return default_mask
        return _keep_channels(t, self.dim, prob > threshold) * default_mask.to(dtype=t.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:
        """Prune a parameter and register the hook."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the channels of smallest norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask with the channels of smallest norm along `dim` set to zero."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        tensor_size = t.shape[self.dim]
        nparams_toprune = _compute_nparams_toprune(self.amount, tensor_size)
        nparams_tokeep = tensor_size - nparams_toprune
        _validate_pruning_amount(nparams_toprune, tensor_size)
        norm = _compute_norm(t, self.n, self.dim)
        topk = torch.topk(norm, k=nparams_tokeep, largest=True)
        if nparams_toprune == 0:
            return default_mask
        return _keep_channels(t, self.dim, topk.indices) * default_mask.to(dtype=t.dtype)

    @classmethod
    def apply(
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        """Prune a parameter and register the hook."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The default mask times the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask and mask should have the same shape, got {default_mask.shape} vs "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:
        """Prune a parameter and register the hook."""
        return super().apply(module, name, mask=mask)


def _keep_channels(t: Any, dim: int, channels: Any) -> Any:
    """A mask with ones in the channels along `dim` and zeros elsewhere."""
    mask = torch.zeros_like(t)
    where: list[Any] = [slice(None)] * t.dim()
    where[dim] = channels
    mask[tuple(where)] = 1
    return mask


def identity(module: Any, name: str) -> Any:
    """Split a parameter into `name_orig` and a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune an amount (a number, or a fraction) of the elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements of smallest absolute value (or score)."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune channels along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels along a dimension that have the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters as if they were one tensor: `parameters` are (module, name) pairs."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    importance_scores = importance_scores if importance_scores is not None else {}
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    vector = torch.nn.utils.parameters_to_vector
    relevant = vector(
        [importance_scores.get((module, name), getattr(module, name)) for module, name in parameters]
    )
    default_mask = vector(
        [
            getattr(module, name + "_mask", torch.ones_like(getattr(module, name)))
            for module, name in parameters
        ]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    final_mask = container.compute_mask(relevant, default_mask)
    pointer = 0
    for module, name in parameters:
        param = getattr(module, name)
        num_param = param.numel()
        custom_from_mask(module, name, mask=final_mask[pointer : pointer + num_param].view_as(param))
        pointer += num_param


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter ordinary again. Pruned elements stay zero."""
    for k, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[k]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a module or one below it has a pruned parameter."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, submodule in module.named_modules()
        for hook in submodule._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and float(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _validate_structured_pruning(t: Any) -> None:
    shape = t.shape
    if len(shape) <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {shape} with {len(shape)} dims"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> Any:
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Any, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Any, n: Any, dim: int) -> Any:
    """The n-norms of the channels along `dim`."""
    dims = list(range(t.dim()))
    if dim < 0:
        dim = dims[dim]
    dims.remove(dim)
    return torch.norm(t, p=n, dim=dims)
