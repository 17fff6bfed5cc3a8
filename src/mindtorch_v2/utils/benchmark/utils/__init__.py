"""The parts of torch.utils.benchmark: measurements, the timer, and the table."""
