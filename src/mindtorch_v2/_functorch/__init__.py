"""torch._functorch: parts of torch.func under their internal names."""
