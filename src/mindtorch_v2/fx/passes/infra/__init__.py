"""torch.fx.passes.infra: the base class of passes."""
