"""torch.fx.config: settings of torch.fx."""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
