"""torch.distributed._composable: the old place of names of torch.distributed.fsdp."""
