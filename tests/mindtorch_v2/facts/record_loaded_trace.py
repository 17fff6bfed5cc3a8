"""Records what `torch.profiler.load` is measured by: a trace that torch wrote, and the tables that torch printed of the same recording.

Run with real torch: python record_loaded_trace.py. Writes torch_trace.json.gz and torch_trace_tables.json.gz beside itself.
"""

import gzip
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = {"plain": {}, "shapes": {"group_by_input_shape": True}}
FIELDS = (
    "key",
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "flops",
    "input_shapes",
    "scope",
    "is_user_annotation",
)


def train_step(torch, net, optimizer, x, y):
    with torch.profiler.record_function("forward"):
        loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cat([x, x])
    return torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)) * 2


def run(path, **settings):
    """Record three steps of a small net; its rows and tables by grouping, and the trace in `path`."""
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 5)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1), **settings
    ) as prof:
        for _ in range(3):
            train_step(torch, net, optimizer, x, y)
            prof.step()
    prof.export_chrome_trace(path)
    found = {}
    for name, how in GROUPS.items():
        averages = prof.key_averages(**how)
        rows = [[getattr(row, field) for field in FIELDS] for row in averages]
        found[name] = {"rows": rows, "table": averages.table(sort_by="cpu_time_total", row_limit=20)}
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "trace.json")
        found = run(path, record_shapes=True, profile_memory=True, with_flops=True)
        with open(path, encoding="utf-8") as file:
            text = file.read()
    text = re.sub(r'"host_name": "[^"]*"', '"host_name": "here"', text)
    text = re.sub(r'"traceName": "[^"]*"', '"traceName": "trace.json"', text)
    for name, content in (("torch_trace", text), ("torch_trace_tables", json.dumps(found))):
        with open(os.path.join(HERE, f"{name}.json.gz"), "wb") as file:
            file.write(gzip.compress(content.encode(), 9, mtime=0))
    print(f"{len(text):,} characters", file=sys.stderr)
