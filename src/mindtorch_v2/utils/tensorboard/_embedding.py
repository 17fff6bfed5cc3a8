"""Points for TensorBoard's projector: tables of numbers, labels and pictures in files beside the events."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig  # type: ignore[import-not-found,unused-ignore]

from .summary import _png, make_np

CONFIG = "projector_config.pbtxt"


def write_points(folder: str, points: np.ndarray[Any, Any]) -> None:
    """One line per point."""
    with open(os.path.join(folder, "tensors.tsv"), "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in points.tolist())


def write_labels(folder: str, labels: list[Any], header: list[str] | None) -> None:
    """One line per point, with a heading if there are several columns."""
    rows = [header, *labels] if header else labels
    with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as file:
        file.writelines(("\t".join(map(str, row)) if header else str(row)) + "\n" for row in rows)


def write_sprite(folder: str, images: Any) -> None:
    """The pictures of all points, (N, C, H, W) from 0 to 1, in one square picture."""
    pictures = make_np(images)
    count, channels, height, width = pictures.shape
    side = math.ceil(math.sqrt(count))
    whole = np.zeros((side * side, channels, height, width), pictures.dtype)
    whole[:count] = pictures
    grid = whole.reshape(side, side, channels, height, width).transpose(0, 3, 1, 4, 2)
    image = (grid.reshape(side * height, side * width, channels) * 255).astype(np.uint8)
    with open(os.path.join(folder, "sprite.png"), "wb") as file:
        file.write(_png(image))


def entry(tag: str, subdirectory: str, labels: Any, images: Any) -> EmbeddingInfo:
    """What the projector's configuration says about one set of points."""
    info = EmbeddingInfo(tensor_name=tag, tensor_path=f"{subdirectory}/tensors.tsv")
    if labels is not None:
        info.metadata_path = f"{subdirectory}/metadata.tsv"
    if images is not None:
        info.sprite.image_path = f"{subdirectory}/sprite.png"
        info.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
    return info


def write_config(folder: str, config: ProjectorConfig) -> None:
    """The configuration that the projector reads."""
    from google.protobuf import text_format  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with open(os.path.join(folder, CONFIG), "w", encoding="utf-8") as file:
        file.write(text_format.MessageToString(config))
