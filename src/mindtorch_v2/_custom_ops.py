"""torch._custom_ops: the old names of torch.library's decorators."""

from .library import get_ctx, impl_abstract

__all__ = ["get_ctx", "impl_abstract"]
