"""torch.fx.passes.utils: helpers of passes."""
