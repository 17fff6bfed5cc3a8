"""Summaries: a tag and a value in, TensorBoard's record out."""

from __future__ import annotations

import builtins
import io
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # type: ignore[import-not-found,unused-ignore]

import mindtorch_v2 as torch

__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "make_np", "mesh", "pr_curve", "pr_curve_raw", "scalar",
    "tensor_proto", "text",
]  # fmt: skip


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


def _png(array: np.ndarray[Any, Any]) -> bytes:
    """An image of bytes, (height, width, channel), as PNG."""
    from PIL import Image  # type: ignore[import-not-found,unused-ignore]

    out = io.BytesIO()
    Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(out, format="PNG")
    return out.getvalue()


def image(tag: str, tensor: Any, dataformats: str = "NCHW") -> Summary:
    """The record of an image, as PNG."""
    array = _as_hwc(make_np(tensor), dataformats)
    scale = 1 if array.dtype == np.uint8 else 255
    array = (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    height, width, channels = array.shape
    picture = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=_png(array))
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
    return pr_curve_raw(tag, curve, num_thresholds)


def pr_curve_raw(tag: str, curve: np.ndarray[Any, Any], num_thresholds: int) -> Summary:
    """The same of rows that are counted already: true and false positives, true and false negatives, precision, recall."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData  # type: ignore[import-not-found,unused-ignore]

    data = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127)).SerializeToString()
    return _tensor_record(tag, curve, "pr_curves", data)


def _tensor_record(tag: str, array: np.ndarray[Any, Any], plugin: str, data: bytes = b"") -> Summary:
    """Numbers for a plugin of TensorBoard."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=data))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in array.shape])
    content = TensorProto(dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=content)])


def tensor_proto(tag: str, tensor: Any) -> Summary:
    """The record of a tensor of floats."""
    return _tensor_record(tag, make_np(tensor), "tensor")


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Summary:
    """The record of a distribution that is counted already."""
    proto = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=make_np(bucket_limits).tolist(),
        bucket=make_np(bucket_counts).tolist(),
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """The record of a sound, values from -1 to 1, as WAV with 16 bits."""
    import wave

    array = make_np(tensor).squeeze()
    if np.abs(array).max() > 1:
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((array * float(np.iinfo(np.int16).max)).astype("<i2").tobytes())
    sound = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=array.shape[-1], encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=sound)])


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any) -> Summary:
    """The records of points or triangles in space."""
    import json

    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData  # type: ignore[import-not-found,unused-ignore]

    parts = [("VERTEX", vertices), ("FACE", faces), ("COLOR", colors)]
    present = [(kind, make_np(tensor)) for kind, tensor in parts if tensor is not None]
    components = builtins.sum(1 << MeshPluginData.ContentType.Value(kind) for kind, _ in present)
    text = json.dumps(config_dict or {}, sort_keys=True)
    values = []
    for kind, array in present:
        data = MeshPluginData(
            version=0, name=tag, content_type=kind, components=components, json_config=text, shape=array.shape
        )
        values += _tensor_record(f"{tag}_{kind}", array, "mesh", data.SerializeToString()).value
    return Summary(value=values)


def custom_scalars(layout: dict[str, Any]) -> Summary:
    """The record of how scalars are put into charts: by category and title, a kind of chart and its tags."""
    from tensorboard.plugins.custom_scalar import layout_pb2  # type: ignore[import-not-found,unused-ignore]

    categories = []
    for name, charts in layout.items():
        rows = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("a margin chart has three tags: value, lower and upper bound")
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                content = {"margin": layout_pb2.MarginChartContent(series=[series])}
            else:
                content = {"multiline": layout_pb2.MultilineChartContent(tag=list(tags))}
            rows.append(layout_pb2.Chart(title=title, **content))
        categories.append(layout_pb2.Category(title=name, chart=rows))
    text = layout_pb2.Layout(category=categories).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="custom_scalars"))
    content = TensorProto(dtype="DT_STRING", string_val=[text], tensor_shape=TensorShapeProto())
    return Summary(value=[Summary.Value(tag="custom_scalars__config__", tensor=content, metadata=metadata)])


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
