"""torch.fx.experimental: further transformations of graphs."""
