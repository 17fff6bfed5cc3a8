"""Time ops of this library beside torch's: an interpreter with torch in, a table of times and ratios out.

    python benchmarks/ops_beside_torch.py --torch-python /path/to/python [--op gelu ...] [--rounds 5]

Each package has one process with one thread; they take turns, and the best processor time of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
WORKER = """
import importlib, json, sys, time, warnings
warnings.simplefilter("ignore")
torch = importlib.import_module(sys.argv[1])
F = torch.nn.functional
torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(1024, 1024)
images = torch.randn(8, 16, 64, 64)
scope = {
    "torch": torch, "F": F, "x": x, "images": images, "labels": torch.randint(1024, (1024,)),
    "line": torch.randn(64, 32), "threes": torch.randn(1000, 3), "small": torch.randn(64, 64),
    "grid": torch.rand(8, 32, 32, 2) * 2 - 1, "weight": torch.randn(16, 16, 3, 3),
    "whole": torch.randint(100, (64, 1000)),
    "y": torch.randn(1024, 1024), "positive": torch.rand(1024, 1024) + 0.5,
    "mask": torch.rand(1024, 1024) > 0.5, "places": torch.randint(1024, (1024, 1024)),
    "maps": torch.randn(8, 64, 32, 32), "kernel": torch.randn(64, 64, 3, 3), "channels": torch.rand(64),
    "wide": torch.randn(64, 1, 3, 3),
    "batch": torch.randn(16, 128, 128), "w": torch.randn(1024), "b": torch.randn(1024),
}


# The backward pass of a call alone, again and again on the same graph.
def backward_of(call, *inputs):
    leaves = [value.detach().clone().requires_grad_() for value in inputs]
    out = call(*leaves)
    out = out[0] if isinstance(out, tuple) else out
    g = torch.ones_like(out) if out.ndim == 0 else torch.randn(out.shape)
    return lambda: torch.autograd.grad(out, leaves, g, retain_graph=True)


# A step of an optimizer over a million parameters.
def step_of(kind, **options):
    parameter = torch.randn(1024, 1024, requires_grad=True)
    parameter.grad = torch.randn(1024, 1024)
    return getattr(torch.optim, kind)([parameter], **options).step


scope.update(backward_of=backward_of, step_of=step_of)
for line in sys.stdin:
    text = json.loads(line)
    call = eval(text if text.startswith(("backward_of", "step_of")) else "lambda: " + text, scope)
    call()
    count, spent = 1, 0.0
    while spent < 0.01:
        begin = time.process_time()
        for _ in range(count):
            call()
        spent = time.process_time() - begin
        count *= 2
    count //= 2
    best = spent
    for _ in range(3):
        begin = time.process_time()
        for _ in range(count):
            call()
        best = min(best, time.process_time() - begin)
    print(best / count * 1e6, flush=True)
"""
CASES = {
    "gelu": "F.gelu(x)",
    "gelu tanh": "F.gelu(x, approximate='tanh')",
    "clamp": "x.clamp(-1, 1)",
    "clamp_min": "x.clamp(min=0.5)",
    "randn": "torch.randn(1024, 1024)",
    "rand": "torch.rand(1024, 1024)",
    "sum": "x.sum()",
    "sum of rows": "x.sum(1)",
    "sum of columns": "x.sum(0)",
    "mean": "x.mean()",
    "relu": "x.relu()",
    "silu": "F.silu(x)",
    "sigmoid": "x.sigmoid()",
    "tanh": "x.tanh()",
    "exp": "x.exp()",
    "softmax": "x.softmax(1)",
    "log_softmax": "x.log_softmax(1)",
    "layer_norm": "F.layer_norm(x, (1024,))",
    "cross_entropy": "F.cross_entropy(x, labels)",
    "nll_loss": "F.nll_loss(x, labels)",
    "topk": "x.topk(5)",
    "max": "x.max()",
    "max of rows": "x.max(1)",
    "amax": "x.amax(1)",
    "var": "x.var()",
    "sort": "x.sort()",
    "cumsum": "x.cumsum(1)",
    "max_pool2d": "F.max_pool2d(images, 2)",
    "max_pool2d, padded": "F.max_pool2d(images, 3, 2, 1)",
    "avg_pool2d": "F.avg_pool2d(images, 2)",
    "avg_pool2d, padded": "F.avg_pool2d(images, 3, 2, 1)",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(images, 7)",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(images, 7)",
    "batch_norm": "F.batch_norm(images, None, None, training=True)",
    "conv2d": "F.conv2d(images, weight, padding=1)",
    "interpolate": "F.interpolate(images, scale_factor=2, mode='bilinear')",
    "grid_sample": "F.grid_sample(images, grid, align_corners=False)",
    "mode": "whole.mode(1)",
    "pdist": "F.pdist(line)",
    "cross": "torch.linalg.cross(threes, threes)",
    "qr": "torch.linalg.qr(small)",
    "norm": "x.norm()",
    "matmul": "small @ small",
    "mean of rows": "x.mean(1)",
    "mean of columns": "x.mean(0)",
    "amax of columns": "x.amax(0)",
    "amax of all": "x.amax()",
    "amin": "x.amin(1)",
    "amin of columns": "x.amin(0)",
    "min": "x.min()",
    "max of columns": "x.max(0)",
    "min of rows": "x.min(1)",
    "argmax": "x.argmax(1)",
    "argmax of columns": "x.argmax(0)",
    "argmax of all": "x.argmax()",
    "argmin": "x.argmin(1)",
    "any": "mask.any()",
    "any of rows": "mask.any(1)",
    "any of columns": "mask.any(0)",
    "all": "mask.all()",
    "all of rows": "mask.all(1)",
    "all of columns": "mask.all(0)",
    "any of float rows": "x.any(1)",
    "count_nonzero": "mask.count_nonzero()",
    "sum of bools": "mask.sum()",
    "prod": "x.prod()",
    "prod of rows": "x.prod(1)",
    "prod of columns": "x.prod(0)",
    "var of rows": "x.var(1)",
    "var of columns": "x.var(0)",
    "std": "x.std()",
    "std of rows": "x.std(1)",
    "norm of rows": "x.norm(dim=1)",
    "norm of columns": "x.norm(dim=0)",
    "vector_norm, 1": "torch.linalg.vector_norm(x, 1, 1)",
    "normalize": "F.normalize(x)",
    "logsumexp": "x.logsumexp(1)",
    "logsumexp of columns": "x.logsumexp(0)",
    "cumsum of columns": "x.cumsum(0)",
    "cumprod": "x.cumprod(1)",
    "cumprod of columns": "x.cumprod(0)",
    "cummax": "x.cummax(1)",
    "sort of columns": "x.sort(0)",
    "argsort": "x.argsort()",
    "topk, 50": "x.topk(50)",
    "kthvalue": "x.kthvalue(5)",
    "median": "x.median(1)",
    "where": "torch.where(mask, x, y)",
    "where, scalar": "torch.where(mask, x, 0.0)",
    "masked_fill": "x.masked_fill(mask, 0.0)",
    "masked_select": "x.masked_select(mask)",
    "nonzero": "mask.nonzero()",
    "index_select": "x.index_select(0, labels)",
    "index_select of columns": "x.index_select(1, labels)",
    "x[index]": "x[labels]",
    "x[:, index]": "x[:, labels]",
    "gather": "x.gather(1, places)",
    "gather of columns": "x.gather(0, places)",
    "scatter": "x.scatter(1, places, y)",
    "scatter_add": "x.scatter_add(1, places, y)",
    "index_add": "x.index_add(0, labels, y)",
    "cat": "torch.cat([x, y])",
    "cat of columns": "torch.cat([x, y], 1)",
    "stack": "torch.stack([x, y])",
    "stack, last": "torch.stack([x, y], -1)",
    "transpose, contiguous": "x.t().contiguous()",
    "permute, contiguous": "maps.permute(0, 2, 3, 1).contiguous()",
    "flip": "x.flip(1)",
    "roll": "x.roll(3, 1)",
    "tril": "x.tril()",
    "clone": "x.clone()",
    "repeat": "w.repeat(1024, 1)",
    "to double": "x.double()",
    "to bfloat16": "x.bfloat16()",
    "to half": "x.half()",
    "to int64": "x.long()",
    "embedding": "F.embedding(labels, x)",
    "one_hot": "F.one_hot(labels, 1024)",
    "layer_norm, affine": "F.layer_norm(x, (1024,), w, b)",
    "rms_norm": "F.rms_norm(x, (1024,), w)",
    "group_norm": "F.group_norm(maps, 8)",
    "batch_norm, evaluated": "F.batch_norm(maps, channels, channels)",
    "batch_norm of maps": "F.batch_norm(maps, None, None, training=True)",
    "batch_norm of rows": "F.batch_norm(x, None, None, training=True)",
    "softmax of columns": "x.softmax(0)",
    "log_softmax of columns": "x.log_softmax(0)",
    "mse_loss": "F.mse_loss(x, y)",
    "l1_loss": "F.l1_loss(x, y)",
    "smooth_l1_loss": "F.smooth_l1_loss(x, y)",
    "bce_with_logits": "F.binary_cross_entropy_with_logits(x, positive)",
    "kl_div": "F.kl_div(x, positive)",
    "leaky_relu": "F.leaky_relu(x)",
    "elu": "F.elu(x)",
    "softplus": "F.softplus(x)",
    "hardtanh": "F.hardtanh(x)",
    "mish": "F.mish(x)",
    "hardswish": "F.hardswish(x)",
    "logsigmoid": "F.logsigmoid(x)",
    "log": "positive.log()",
    "log1p": "positive.log1p()",
    "pow 2": "x ** 2",
    "pow 3": "x ** 3",
    "pow 0.5": "positive ** 0.5",
    "pow 2.5": "positive ** 2.5",
    "pow of tensors": "positive ** y",
    "sqrt": "positive.sqrt()",
    "rsqrt": "positive.rsqrt()",
    "sin": "x.sin()",
    "cos": "x.cos()",
    "erf": "x.erf()",
    "abs": "x.abs()",
    "neg": "-x",
    "reciprocal": "x.reciprocal()",
    "sign": "x.sign()",
    "round": "x.round()",
    "floor": "x.floor()",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "add scalar": "x + 1",
    "mul scalar": "x * 2",
    "div scalar": "x / 3",
    "add row": "x + w",
    "add column": "x + w[:, None]",
    "add_": "x.add_(y, alpha=1e-9)",
    "mul_": "x.mul_(1.0)",
    "remainder": "x % 3",
    "floor_divide": "x // 3",
    "maximum": "torch.maximum(x, y)",
    "x > 0": "x > 0",
    "x == y": "x == y",
    "isnan": "x.isnan()",
    "isfinite": "x.isfinite()",
    "logical_and": "mask & mask",
    "addcmul": "torch.addcmul(x, x, y, value=0.5)",
    "addcdiv": "torch.addcdiv(x, x, positive)",
    "lerp": "torch.lerp(x, y, 0.3)",
    "lerp, tensor": "torch.lerp(x, y, positive)",
    "atan2": "torch.atan2(x, y)",
    "hypot": "torch.hypot(x, y)",
    "bmm": "batch @ batch",
    "matmul, large": "x @ y",
    "linear": "F.linear(x, y, b)",
    "mv": "x @ w",
    "baddbmm": "torch.baddbmm(batch, batch, batch)",
    "einsum": "torch.einsum('bij,bjk->bik', batch, batch)",
    "attention": "F.scaled_dot_product_attention(batch, batch, batch)",
    "conv2d, 64 channels": "F.conv2d(maps, kernel, padding=1)",
    "conv2d, 1x1": "F.conv2d(maps, kernel[:, :, :1, :1])",
    "conv2d, depthwise": "F.conv2d(maps, kernel[:, :1], padding=1, groups=64)",
    "conv_transpose2d": "F.conv_transpose2d(maps, kernel)",
    "interpolate, nearest": "F.interpolate(maps, scale_factor=2)",
    "interpolate, bicubic": "F.interpolate(maps, scale_factor=2, mode='bicubic')",
    "pad": "F.pad(maps, (1, 1, 1, 1))",
    "pad, reflect": "F.pad(maps, (1, 1, 1, 1), mode='reflect')",
    "unfold": "F.unfold(maps, 3, padding=1)",
    "dropout": "F.dropout(x, 0.5)",
    "randperm": "torch.randperm(1000000)",
    "bernoulli": "torch.bernoulli(positive - 0.5)",
    "randint": "torch.randint(10, (1024, 1024))",
    "multinomial": "torch.multinomial(positive, 8)",
    "normal_": "y.normal_()",
    "uniform_": "y.uniform_()",
    "exponential_": "y.exponential_()",
    "zeros": "torch.zeros(1024, 1024)",
    "ones": "torch.ones(1024, 1024)",
    "full": "torch.full((1024, 1024), 2.0)",
    "arange": "torch.arange(1000000)",
    "linspace": "torch.linspace(0, 1, 1000000)",
    "unique": "places.unique()",
    "bincount": "places.view(-1).bincount()",
    "histc": "x.histc(100)",
    "searchsorted": "torch.searchsorted(w.sort().values, x)",
    "cdist": "torch.cdist(x[:, :64], y[:, :64])",
    "cosine_similarity": "F.cosine_similarity(x, y)",
    "sum, backward": "backward_of(lambda x: x.sum(1), x)",
    "mean, backward": "backward_of(lambda x: x.mean(1), x)",
    "amax, backward": "backward_of(lambda x: x.amax(1), x)",
    "max of rows, backward": "backward_of(lambda x: x.max(1), x)",
    "prod, backward": "backward_of(lambda x: x.prod(1), x)",
    "var, backward": "backward_of(lambda x: x.var(1), x)",
    "norm, backward": "backward_of(lambda x: x.norm(dim=1), x)",
    "logsumexp, backward": "backward_of(lambda x: x.logsumexp(1), x)",
    "cumsum, backward": "backward_of(lambda x: x.cumsum(1), x)",
    "cumprod, backward": "backward_of(lambda x: x.cumprod(1), positive)",
    "sort, backward": "backward_of(lambda x: x.sort(), x)",
    "topk, backward": "backward_of(lambda x: x.topk(5), x)",
    "where, backward": "backward_of(lambda x, y: torch.where(mask, x, y), x, y)",
    "masked_fill, backward": "backward_of(lambda x: x.masked_fill(mask, 0.0), x)",
    "index_select, backward": "backward_of(lambda x: x.index_select(0, labels), x)",
    "x[index], backward": "backward_of(lambda x: x[labels], x)",
    "gather, backward": "backward_of(lambda x: x.gather(1, places), x)",
    "scatter_add, backward": "backward_of(lambda x, y: x.scatter_add(1, places, y), x, y)",
    "cat, backward": "backward_of(lambda x, y: torch.cat([x, y]), x, y)",
    "stack, backward": "backward_of(lambda x, y: torch.stack([x, y]), x, y)",
    "transpose, contiguous, backward": "backward_of(lambda x: x.t().contiguous(), x)",
    "embedding, backward": "backward_of(lambda x: F.embedding(labels, x), x)",
    "layer_norm, backward": "backward_of(lambda x, w, b: F.layer_norm(x, (1024,), w, b), x, w, b)",
    "rms_norm, backward": "backward_of(lambda x, w: F.rms_norm(x, (1024,), w), x, w)",
    "group_norm, backward": "backward_of(lambda x: F.group_norm(x, 8), maps)",
    "batch_norm, backward": "backward_of(lambda x: F.batch_norm(x, None, None, training=True), maps)",
    "batch_norm, evaluated, backward": "backward_of(lambda x: F.batch_norm(x, channels, channels), maps)",
    "softmax, backward": "backward_of(lambda x: x.softmax(1), x)",
    "log_softmax, backward": "backward_of(lambda x: x.log_softmax(1), x)",
    "cross_entropy, backward": "backward_of(lambda x: F.cross_entropy(x, labels), x)",
    "mse_loss, backward": "backward_of(lambda x: F.mse_loss(x, y), x)",
    "bce_with_logits, backward": "backward_of(lambda x: F.binary_cross_entropy_with_logits(x, positive), x)",
    "smooth_l1_loss, backward": "backward_of(lambda x: F.smooth_l1_loss(x, y), x)",
    "gelu, backward": "backward_of(lambda x: F.gelu(x), x)",
    "gelu tanh, backward": "backward_of(lambda x: F.gelu(x, approximate='tanh'), x)",
    "silu, backward": "backward_of(lambda x: F.silu(x), x)",
    "sigmoid, backward": "backward_of(lambda x: x.sigmoid(), x)",
    "tanh, backward": "backward_of(lambda x: x.tanh(), x)",
    "relu, backward": "backward_of(lambda x: x.relu(), x)",
    "leaky_relu, backward": "backward_of(lambda x: F.leaky_relu(x), x)",
    "elu, backward": "backward_of(lambda x: F.elu(x), x)",
    "softplus, backward": "backward_of(lambda x: F.softplus(x), x)",
    "hardtanh, backward": "backward_of(lambda x: F.hardtanh(x), x)",
    "clamp, backward": "backward_of(lambda x: x.clamp(-1, 1), x)",
    "exp, backward": "backward_of(lambda x: x.exp(), x)",
    "log, backward": "backward_of(lambda x: x.log(), positive)",
    "pow 2, backward": "backward_of(lambda x: x ** 2, x)",
    "pow 3, backward": "backward_of(lambda x: x ** 3, x)",
    "sqrt, backward": "backward_of(lambda x: x.sqrt(), positive)",
    "rsqrt, backward": "backward_of(lambda x: x.rsqrt(), positive)",
    "abs, backward": "backward_of(lambda x: x.abs(), x)",
    "add, backward": "backward_of(lambda x, y: x + y, x, y)",
    "add row, backward": "backward_of(lambda x, y: x + y, x, w)",
    "add column, backward": "backward_of(lambda x, y: x + y, x, w[:, None])",
    "mul, backward": "backward_of(lambda x, y: x * y, x, y)",
    "div, backward": "backward_of(lambda x, y: x / y, x, positive)",
    "addcmul, backward": "backward_of(lambda x, y, z: torch.addcmul(x, y, z), x, y, positive)",
    "lerp, backward": "backward_of(lambda x, y: torch.lerp(x, y, 0.3), x, y)",
    "maximum, backward": "backward_of(lambda x, y: torch.maximum(x, y), x, y)",
    "bmm, backward": "backward_of(lambda x, y: x @ y, batch, batch)",
    "matmul, large, backward": "backward_of(lambda x, y: x @ y, x, y)",
    "linear, backward": "backward_of(lambda x, w, b: F.linear(x, w, b), x, y, b)",
    "attention, backward": "backward_of(F.scaled_dot_product_attention, batch, batch, batch)",
    "conv2d, 64 channels, backward": "backward_of(lambda x, w: F.conv2d(x, w, padding=1), maps, kernel)",
    "conv2d, depthwise, backward": "backward_of(lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 64), maps, wide)",
    "conv_transpose2d, backward": "backward_of(lambda x, w: F.conv_transpose2d(x, w), maps, kernel)",
    "max_pool2d, backward": "backward_of(lambda x: F.max_pool2d(x, 2), maps)",
    "avg_pool2d, backward": "backward_of(lambda x: F.avg_pool2d(x, 2), maps)",
    "adaptive_avg_pool2d, backward": "backward_of(lambda x: F.adaptive_avg_pool2d(x, 7), maps)",
    "adaptive_max_pool2d, backward": "backward_of(lambda x: F.adaptive_max_pool2d(x, 7), maps)",
    "interpolate, backward": "backward_of(lambda x: F.interpolate(x, scale_factor=2, mode='bilinear'), maps)",
    "interpolate, nearest, backward": "backward_of(lambda x: F.interpolate(x, scale_factor=2), maps)",
    "pad, backward": "backward_of(lambda x: F.pad(x, (1, 1, 1, 1)), maps)",
    "dropout, backward": "backward_of(lambda x: F.dropout(x, 0.5), x)",
    "grid_sample, backward": "backward_of(lambda x: F.grid_sample(x, grid, align_corners=False), images)",
    "cdist, backward": "backward_of(lambda x, y: torch.cdist(x, y), x[:, :64], y[:, :64])",
    "cosine_similarity, backward": "backward_of(lambda x, y: F.cosine_similarity(x, y), x, y)",
    "step of SGD": "step_of('SGD', lr=1e-3)",
    "step of SGD, momentum": "step_of('SGD', lr=1e-3, momentum=0.9, weight_decay=1e-4)",
    "step of Adam": "step_of('Adam')",
    "step of AdamW": "step_of('AdamW')",
    "step of RMSprop": "step_of('RMSprop')",
    "step of Adagrad": "step_of('Adagrad')",
    "step of Adamax": "step_of('Adamax')",
    "step of NAdam": "step_of('NAdam')",
    "step of RAdam": "step_of('RAdam')",
    "step of Adadelta": "step_of('Adadelta')",
}


class Worker:
    """One package in a process of its own."""

    def __init__(self, python: str, package: str) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **threads}
        if package != "torch":
            environment["PYTHONPATH"] = str(SOURCE)
        self._process = subprocess.Popen(
            [python, "-c", WORKER, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def microseconds(self, call: str) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(call) + "\n")
        stdin.flush()
        return float(stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", required=True, help="an interpreter that has torch")
    parser.add_argument("--op", nargs="*", default=list(CASES), choices=list(CASES), metavar="OP")
    parser.add_argument("--rounds", type=int, default=3)
    options: Any = parser.parse_args()
    ours, theirs = Worker(sys.executable, "mindtorch_v2"), Worker(options.torch_python, "torch")
    print(f"{'':32} {'here us':>10} {'torch us':>10} {'ratio':>7}")
    for title in options.op:
        times = [
            (ours.microseconds(CASES[title]), theirs.microseconds(CASES[title]))
            for _ in range(options.rounds)
        ]
        here, torch = (min(column) for column in zip(*times))
        print(f"{title:32} {here:10.1f} {torch:10.1f} {here / torch:7.2f}", flush=True)
    ours.close()
    theirs.close()


if __name__ == "__main__":
    main()
