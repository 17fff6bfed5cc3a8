"""torch.distributed.elastic.multiprocessing: the decorator of entry points."""
