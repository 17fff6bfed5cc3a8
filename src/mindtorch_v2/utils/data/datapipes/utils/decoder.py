"""Decoders of files: an extension and bytes in, the decoded value out; None for unknown extensions."""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

# Lists of extensions as one string each: any substring matches, as in torch.
_TEXT = "txt text transcript"
_NUMBER = "cls cls2 class count index inx id"
_JSON = "json jsn"
_PICKLE = "pyd pickle"
_VIDEO = "mp4 ogv mjpeg avi mov h264 mpg webm wmv".split()
_AUDIO = "flac mp3 sox wav m4a ogg wma".split()


def basichandlers(extension: str, data: Any) -> Any:
    """Text, numbers, JSON and pickles."""
    if extension in _TEXT:
        return data.decode("utf-8")
    if extension in _NUMBER:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in _JSON:
        return json.loads(data)
    if extension in _PICKLE:
        return pickle.loads(data)
    return None


def handle_extension(extensions: Any, f: Callable) -> Callable:
    """A decoder that calls `f` for keys that end with one of these extensions."""
    wanted = [extension.split(".") for extension in extensions.lower().split()]

    def decode(key: str, data: Any) -> Any:
        parts = key.lower().split(".")
        return f(data) if any(parts[-len(ending) :] == ending for ending in wanted) else None

    return decode


# (array library, element type, mode) by the name of an image format
_IMAGES = {
    prefix + mode + bits: (library, "uint8" if bits else "float", kind)
    for prefix, library in (("", "numpy"), ("torch", "torch"), ("pil", "pil"))
    for mode, kind in (("l", "l"), ("rgb", "rgb"), ("rgba", "rgba"))
    for bits in (("8", "") if library != "pil" else ("",))
} | {"torch": ("torch", "float", "rgb"), "pil": ("pil", None, "rgb")}


class ImageHandler:
    """A decoder of images, to the library, element type and mode in `imagespec` (such as "torchrgb8")."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in _IMAGES:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in "jpg jpeg png ppm pgm pbm pnm".split():
            return None
        try:
            import PIL.Image  # type: ignore[import-not-found]
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder."
                "Please use `pip install Pillow` to install the package"
            ) from error
        library, element, mode = _IMAGES[self.imagespec]
        with io.BytesIO(data) as stream:
            image = PIL.Image.open(stream)
            image.load()
            image = image.convert(mode.upper())
        if library == "pil":
            return image
        pixels = np.asarray(image)
        if library == "torch":
            pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1) if pixels.ndim == 3 else pixels)
        if element == "float":
            pixels = pixels.astype("f") / 255.0
        return torch.tensor(pixels) if library == "torch" else pixels


def imagehandler(imagespec: str) -> ImageHandler:
    """A decoder of images."""
    return ImageHandler(imagespec)


def videohandler(extension: str, data: Any) -> Any:
    """Decode videos with torchvision."""
    if extension not in _VIDEO:
        return None
    return _decode_via_file(extension, data, "torchvision", "video")


def audiohandler(extension: str, data: Any) -> Any:
    """Decode audio with torchaudio."""
    if extension not in _AUDIO:
        return None
    return _decode_via_file(extension, data, "torchaudio", "audio")


def _decode_via_file(extension: str, data: Any, package: str, kind: str) -> Any:
    import importlib
    import tempfile

    try:
        library = importlib.import_module(package)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Package `{package}` is required to be installed for default {kind} file loader."
            f"Please use `pip install {package}`to install the package"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return library.io.read_video(path) if kind == "video" else library.load(path)


class MatHandler:
    """A decoder of MATLAB files."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        from scipy import io as files

        self.sio = files
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: Any) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A decoder of MATLAB files."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The extension of a path, without the dot."""
    ext = os.path.splitext(pathname)[1]
    return ext[1:] if ext else ext


class Decoder:
    """Decoders that are tried in order."""

    def __init__(self, *handler: Callable, key_fn: Callable = extension_extract_fn) -> None:
        self.handlers = list(handler) if handler else []
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable) -> None:
        """Add a decoder, tried after the others."""
        self.handlers.extend(handler)

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        obj = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(obj, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """The result of the first decoder that recognises a key; else the data itself."""
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, data.read()
            if isinstance(stream, StreamWrapper):
                stream.autoclose()
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> Any:
        """A pair of a path and a stream, or a dict of them, with the streams decoded."""
        pairs = data.items() if isinstance(data, dict) else ((data[0], data[1]),)
        result = {}
        for path, value in pairs:
            if path[0] == "_" and isinstance(value, bytes):
                result[path] = value.decode("utf-8")
            else:
                result[path] = self.decode1(self.key_fn(path), value)
        return result

    def __call__(self, data: Any) -> Any:
        return self.decode(data)
