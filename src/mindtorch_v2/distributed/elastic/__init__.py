"""torch.distributed.elastic: names only. `torch.distributed.run` starts processes; none is restarted."""
