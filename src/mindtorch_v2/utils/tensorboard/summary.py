"""Summaries: a tag and a value in, TensorBoard's record out."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # type: ignore[import-not-found,unused-ignore]

import mindtorch_v2 as torch

__all__ = ["histogram", "hparams", "image", "make_np", "pr_curve", "scalar", "text"]


def make_np(x: Any) -> np.ndarray[Any, Any]:
    """A number, array or tensor as an array."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, torch.Tensor):
        x = x.detach()
        return (x.to(torch.float32) if x.dtype is torch.bfloat16 else x).cpu().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def scalar(name: str, tensor: Any, *, new_style: bool = False, double_precision: bool = False) -> Summary:
    """The record of a number."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
            f"{array.ndim} "
            "dimensions."
        )
    value = float(array)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=value)])
    if double_precision:
        content = TensorProto(double_val=[value], dtype="DT_DOUBLE")
    else:
        content = TensorProto(float_val=[value], dtype="DT_FLOAT")
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary(value=[Summary.Value(tag=name, tensor=content, metadata=metadata)])


def _exponential_bins() -> np.ndarray[Any, Any]:
    positive = []
    edge = 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return np.array([-e for e in reversed(positive)] + [0.0] + positive)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """The record of a distribution. `bins`: "tensorflow" for exponential bins, else as in np.histogram."""
    flat = make_np(values).astype(float).reshape(-1)
    if flat.size == 0:
        raise ValueError("The input has no element.")
    if isinstance(bins, str) and bins == "tensorflow":
        bins = _exponential_bins()
    counts, edges = np.histogram(flat, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        bins_per_bucket = len(counts) // max_bins
        remainder = len(counts) % bins_per_bucket
        if remainder:
            counts = np.pad(counts, (0, bins_per_bucket - remainder))
        counts = counts.reshape(-1, bins_per_bucket).sum(axis=-1)
        edges = np.append(edges[:-1][::bins_per_bucket], edges[-1])
    used = np.flatnonzero(counts)
    if used.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(used[0]), int(used[-1]) + 1
    # The record has right edges only: an empty bucket first sets the left edge of the first used one.
    if first > 0:
        bucket_counts, limits = counts[first - 1 : last], edges[first : last + 1]
    else:
        bucket_counts, limits = np.concatenate([[0], counts[:last]]), edges[: last + 1]
    proto = HistogramProto(
        min=float(flat.min()), max=float(flat.max()), num=flat.size, sum=float(flat.sum()),
        sum_squares=float(flat.dot(flat)), bucket_limit=limits.tolist(), bucket=bucket_counts.tolist(),
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def _as_hwc(array: np.ndarray[Any, Any], dataformats: str) -> np.ndarray[Any, Any]:
    """An image, or several side by side, with dimensions (height, width, channel)."""
    formats = dataformats.upper()
    if array.ndim != len(formats):
        raise AssertionError(
            "size of input tensor and input format are different.         "
            f"tensor shape: {array.shape}, input_format: {dataformats}"
        )
    if "N" in formats:
        array = array.transpose([formats.index(d) for d in "NCHW"])
        n, channels, height, width = array.shape
        if channels == 1:
            array = np.concatenate([array] * 3, axis=1)
            channels = 3
        columns = int(np.ceil(np.sqrt(n))) if n > 8 else n
        rows = -(-n // columns)
        grid = np.zeros((channels, rows * height, columns * width), array.dtype)
        for i, picture in enumerate(array):
            y, x = divmod(i, columns)
            grid[:, y * height : (y + 1) * height, x * width : (x + 1) * width] = picture
        return grid.transpose(1, 2, 0)
    if "C" not in formats:
        array = array.transpose([formats.index(d) for d in "HW"])
        return np.stack([array] * 3, axis=2)
    array = array.transpose([formats.index(d) for d in "HWC"])
    return np.concatenate([array] * 3, axis=2) if array.shape[2] == 1 else array


def image(tag: str, tensor: Any, dataformats: str = "NCHW") -> Summary:
    """The record of an image, as PNG."""
    from PIL import Image  # type: ignore[import-not-found,unused-ignore]

    array = _as_hwc(make_np(tensor), dataformats)
    scale = 1 if array.dtype == np.uint8 else 255
    array = (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(array).save(out, format="PNG")
    height, width, channels = array.shape
    picture = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=picture)])


def text(tag: str, text: str) -> Summary:
    """The record of a text."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    content = TensorProto(dtype="DT_STRING", string_val=[text.encode("utf_8")], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag + "/text_summary", metadata=metadata, tensor=content)])


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Summary:
    """The record of precision and recall at each threshold: counts of true and false positives and negatives, precision, recall."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData  # type: ignore[import-not-found,unused-ignore]

    num_thresholds = min(num_thresholds, 127)  # more would not fit the plugin's field
    true, scores = make_np(labels).reshape(-1), make_np(predictions).reshape(-1)
    weight = np.ones(scores.shape) if weights is None else np.broadcast_to(make_np(weights), scores.shape)
    buckets = np.int32(np.floor(scores * (num_thresholds - 1)))
    positive = true.astype(float)

    def at_least(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        counts, _ = np.histogram(buckets, num_thresholds, (0, num_thresholds - 1), weights=values)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(positive * weight), at_least((1.0 - positive) * weight)
    tn, fn = fp[0] - fp, tp[0] - tp
    smallest = 1e-7
    curve = np.stack((tp, fp, tn, fn, tp / np.maximum(smallest, tp + fp), tp / np.maximum(smallest, tp + fn)))
    data = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="pr_curves", content=data))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in curve.shape])
    content = TensorProto(dtype="DT_FLOAT", float_val=curve.reshape(-1).tolist(), tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=content)])


def hparams(
    hparam_dict: dict[str, Any],
    metric_dict: dict[str, Any],
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Summary, Summary, Summary]:
    """The records of an experiment, of the start of a run with its hyperparameters, and of its end."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2  # type: ignore[import-not-found,unused-ignore]

    if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
        raise TypeError("parameter: hparam_dict and metric_dict should be dictionaries, nothing logged.")
    domains = hparam_domain_discrete or {}
    start, infos = plugin_data_pb2.SessionStartInfo(), []
    for name, raw in hparam_dict.items():
        if raw is None:
            continue
        value = make_np(raw)[0] if isinstance(raw, torch.Tensor) else raw
        setting: float | str
        if isinstance(value, (int, float, np.number)):  # a bool too, as in torch
            kind, field, setting = "DATA_TYPE_FLOAT64", "number_value", float(value)
        elif isinstance(value, str):
            kind, field, setting = "DATA_TYPE_STRING", "string_value", value
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        start.hparams[name].CopyFrom(struct_pb2.Value(**{field: setting}))
        info = api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kind))
        if name in domains:
            info.domain_discrete.CopyFrom(
                struct_pb2.ListValue(values=[struct_pb2.Value(**{field: option}) for option in domains[name]])
            )
        infos.append(info)
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metric_dict]

    def record(tag: str, **content: Any) -> Summary:
        data = plugin_data_pb2.HParamsPluginData(
            version=metadata.PLUGIN_DATA_VERSION, **content
        ).SerializeToString()
        plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=data)
        return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])

    return (
        record(
            metadata.EXPERIMENT_TAG, experiment=api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
        ),
        record(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        record(
            metadata.SESSION_END_INFO_TAG,
            session_end_info=plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS")),
        ),
    )
