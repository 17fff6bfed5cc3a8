"""torch.fx.passes: analyses and transformations of graphs."""
