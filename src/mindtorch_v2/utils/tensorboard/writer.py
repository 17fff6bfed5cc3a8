"""The writer: values with a tag and a step in, records in an event file out."""

from __future__ import annotations

import os
import socket
import time
from typing import Any
from urllib.parse import quote

import numpy as np
from tensorboard.compat.proto import event_pb2  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.config_pb2 import RunMetadata  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats  # type: ignore[import-not-found,unused-ignore]
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # type: ignore[import-not-found,unused-ignore]

from . import _embedding, _pytorch_graph, summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events to a file in a folder."""

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write a TensorBoard event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a TensorBoard summary."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write everything to disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write everything to disk and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Start a new file after `close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Scalars, histograms, texts and images for TensorBoard, in a folder of event files."""

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            stamp = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector = _embedding.ProjectorConfig()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            writer = self.file_writer = self._open(self.log_dir)
            self.all_writers = {writer.get_logdir(): writer}
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                writer.add_event(event_pb2.Event(step=step, file_version="brain.Event:2"))
                start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                writer.add_event(event_pb2.Event(step=step, session_log=start))
        return self.file_writer

    def _open(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> Any:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number."""
        value = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write several numbers of one plot, each to a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            path = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if path not in self.all_writers:
                self.all_writers[path] = self._open(path)
            self.all_writers[path].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write a histogram of values."""
        value = summary.histogram(tag, values, bins, max_bins=max_bins)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image: integers from 0 to 255, or floats from 0 to 1."""
        value = summary.image(tag, img_tensor, dataformats=dataformats)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write images side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text; TensorBoard renders it as Markdown."""
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision and recall at each threshold, of true labels (0 or 1) and predicted probabilities."""
        value = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write the hyperparameters of a run and its metrics, to a folder of its own."""
        records = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for record in records:
                writer._get_file_writer().add_summary(record)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a histogram that is counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        value = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision and recall that are counted already."""
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        curve = np.stack([np.asarray(row) for row in (*counts, precision, recall)])
        value = summary.pr_curve_raw(tag, curve, num_thresholds)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a tensor."""
        self._get_file_writer().add_summary(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Write a figure of matplotlib, or several, as images."""
        from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore]
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found,unused-ignore]

        pictures = []
        for each in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1))
            if close:
                plt.close(each)
        self.add_images(tag, np.stack(pictures), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Write a sound."""
        value = summary.audio(tag, snd_tensor, sample_rate)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write points in space, (batch, points, 3), with colours and triangles."""
        value = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """Write how scalars are put into charts: {category: {title: ["Multiline" or "Margin", tags]}}."""
        self._get_file_writer().add_summary(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """The same for one chart with a line per tag."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """The same for one chart of a value between two bounds."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the ops of a module, which is called once with the input."""
        definition = _pytorch_graph.graph(model, input_to_model, verbose, use_strict_trace)
        writer = self._get_file_writer()
        writer.add_event(event_pb2.Event(graph_def=definition.SerializeToString()))
        # TensorBoard lists this as the graph's run; it says where the ops ran, and no times
        statistics = StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")])
        run = RunMetadata(step_stats=statistics).SerializeToString()
        tagged = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=run)
        writer.add_event(event_pb2.Event(tagged_run_metadata=tagged))

    def add_embedding(
        self,
        mat: Any,
        metadata: list[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: list[str] | None = None,
    ) -> None:
        """Write points for the projector, with labels and pictures."""
        points, step = summary.make_np(mat), 0 if global_step is None else global_step
        if points.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        subdirectory = f"{str(step).zfill(5)}/{quote(tag, safe='')}"
        root = self._get_file_writer().get_logdir()
        folder = os.path.join(root, subdirectory)
        os.makedirs(folder, exist_ok=True)
        if metadata is not None:
            if len(metadata) != points.shape[0]:
                raise AssertionError("#labels should equal with #data points")
            _embedding.write_labels(folder, metadata, metadata_header)
        if label_img is not None:
            if label_img.shape[0] != points.shape[0]:
                raise AssertionError("#images should equal with #data points")
            _embedding.write_sprite(folder, label_img)
        _embedding.write_points(folder, points)
        name = f"{tag}:{str(step).zfill(5)}"
        self._projector.embeddings.extend([_embedding.entry(name, subdirectory, metadata, label_img)])
        _embedding.write_config(root, self._projector)

    def __getattr__(self, name: str) -> Any:
        hint = "; this library writes no videos, boxes and ONNX graphs" if name.startswith("add_") else ""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")

    def flush(self) -> None:
        """Write everything to disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write everything to disk and close the files. Writing again starts new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()
