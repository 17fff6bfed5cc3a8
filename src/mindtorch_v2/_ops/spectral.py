"""Short-time Fourier transforms: `stft` cuts a signal into windows and transforms each, `istft` adds them up again."""

from __future__ import annotations

from typing import Any

from .._dispatch import composite, function
from .._tensor import Tensor
from ._namespace import functions as F
from ._warn import warn_once
from .linalg_kernels import zeros


def _described(name: str, shape: str, **values: Any) -> str:
    """The call as torch's messages quote it."""
    return f"{name}({shape}, " + ", ".join(f"{k}={_text(v)}" for k, v in values.items()) + ")"


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"torch.{value.dtype._abbr}Tensor{{{list(value.shape)}}}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """The Fourier transform of each window of a signal: (batch, frequencies, frames)."""
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        extra = n_fft // 2
        shape = [1] * (3 - input.ndim) + list(input.shape)
        padded = F.pad(input.view(shape), [extra, extra], pad_mode)
        input = padded.view(padded.shape[-input.ndim :])
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other windows "
            "such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress this warning "
            "and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
        )
    return _stft(
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
    )


@composite(
    "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, "
    "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    expose="no",
)
def _stft(
    self: Any, n_fft: int, hop_length: int | None, win_length: int | None, window: Any, normalized: bool, onesided: bool | None,
    return_complex: bool | None, align_to_window: bool | None,
) -> Any:  # fmt: skip
    input = self
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    where = _described(
        "stft", f"torch.{input.dtype._abbr}Tensor{list(input.shape)}", n_fft=n_fft, hop_length=hop, win_length=length, window=window,
        normalized=normalized, onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
    ) + " "  # fmt: skip
    if return_complex is None:
        if not input.dtype.is_complex and not (window is not None and window.dtype.is_complex):
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that "
                               "return_complex=True in a future PyTorch release.")  # fmt: skip
        return_complex = True
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(f"{where}: expected a tensor of floating point or complex values")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"{where}: expected a 1D or 2D tensor")
    flat = input.ndim == 1
    signal = input.unsqueeze(0) if flat else input
    samples = signal.shape[1]
    if n_fft <= 0 or n_fft > samples:
        raise RuntimeError(f"{where}: expected 0 < n_fft < {samples}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{where}: expected hop_length > 0, but got hop_length={hop}")
    if length <= 0 or length > n_fft:
        raise RuntimeError(f"{where}: expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and (window.ndim != 1 or window.shape[0] != length):
        raise RuntimeError(
            f"{where}: expected a 1D window tensor of size equal to win_length={length}, but got window with size {list(window.shape)}"
        )
    signal = signal if not align_to_window else signal[:, (n_fft - length) // 2 :]
    window = _centred(window, length, n_fft, input.dtype)
    frames = (signal.shape[1] - n_fft) // hop + 1
    batch_step, sample_step = signal.stride()
    cut = signal.as_strided(
        (signal.shape[0], frames, n_fft),
        (batch_step, hop * sample_step, sample_step),
        signal.storage_offset(),
    )
    if window is not None:
        cut = cut * window
    complex_in = cut.dtype.is_complex
    onesided = not complex_in if onesided is None else onesided
    scaling = 1 if normalized else 0
    if complex_in:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        spectrum = F._fft_c2c(cut, (2,), scaling, True)
    else:
        spectrum = F._fft_r2c(cut, (2,), scaling, onesided)
    spectrum = spectrum.transpose_(1, 2)
    if flat:
        spectrum = spectrum.squeeze_(0)
    return spectrum if return_complex else F.view_as_real(spectrum)


def _centred(window: Any, length: int, n_fft: int, dtype: Any) -> Any:
    """The window (of ones, if there is none) in the middle of `n_fft` places."""
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    kind = dtype.to_real() if window is None else window.dtype
    whole = zeros((n_fft,), kind)
    whole.narrow(0, left, length).copy_(F.ones((length,), dtype=kind) if window is None else window)
    return whole


def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose `stft` comes closest to `input`."""
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to make the "
            "inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`."
        )
    return _istft(
        input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
    )


@composite(
    "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
    expose="no",
)
def _istft(
    self: Any, n_fft: int, hop_length: int | None, win_length: int | None, window: Any, center: bool, normalized: bool,
    onesided: bool | None, length: int | None, return_complex: bool,
) -> Any:  # fmt: skip
    input = self
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    where = _described(
        "istft", f"CPU{input.dtype._abbr}Type{list(input.shape)}", n_fft=n_fft, hop_length=hop, win_length=width, window=window, center=center, normalized=normalized,
        onesided=onesided, length=length, return_complex=return_complex,
    ) + " "  # fmt: skip
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.numel() == 0:
        raise RuntimeError(f"{where}: input tensor cannot be empty.")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"{where}: expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}")
    flat = input.ndim == 2
    parts = F.view_as_real(F.resolve_conj(input))
    if flat:
        parts = F.unsqueeze(parts, 0)
    spectrum = F.view_as_complex(F.transpose(parts, 1, 2))
    bins, frames = spectrum.shape[2], spectrum.shape[1]
    if onesided is None:
        onesided = bins != n_fft
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if bins != wanted:
        kind = "n_fft / 2 + 1" if onesided else "n_fft"
        raise RuntimeError(
            f"{where}: expected the frequency dimension (3rd to the last) of the input tensor to match {kind} when onesided={onesided}, "
            f"but got {bins}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{where}: expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{where}: expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        raise RuntimeError(f"{where}: Invalid window shape. window has to be 1D and length of `win_length`")
    real = input.dtype.to_real()
    if window is None:
        window = F.ones((width,), dtype=real)
    window = _centred(window, width, n_fft, real)
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    parts = _frames(spectrum, n_fft, bins, onesided, return_complex, normalized)
    total = n_fft + hop * (frames - 1)
    weights = F.view(window, (1, 1, n_fft))
    parts = F.mul(parts, weights)
    signal = F.unfold_backward(parts, (parts.shape[0], total), 1, n_fft, hop)
    squares = F.expand(F.pow(window, 2), (1, frames, n_fft))
    envelope = F.unfold_backward(squares, (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    if length is not None:
        end = min(start + length, total)
    else:
        end = total - n_fft // 2 if center else total
    signal, envelope = F.slice(signal, 1, start, end), F.slice(envelope, 1, start, end)
    if envelope.numel():
        small = F.lt(F.min(F.abs(envelope)), 1e-11)
        if F.equal(small, small.new_ones(())):
            raise RuntimeError(f"{where}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    output = F.div(signal, envelope)
    if flat:
        output = F.squeeze(output, 0)
    if length is not None and end - start < length:
        import warnings

        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check "
            "your center and hop_length settings.",
            UserWarning,
            stacklevel=2,
        )
        output = F.constant_pad_nd(output, (0, length - (end - start)), 0)
    return output


def _frames(
    spectrum: Any, n_fft: int, bins: int, onesided: bool, keep_complex: bool, normalized: bool
) -> Any:
    scaling = 1 if normalized else 2
    if keep_complex:
        return F._fft_c2c(spectrum, (2,), scaling, False)
    if not onesided:
        spectrum = spectrum[:, :, : n_fft // 2 + 1]
    return F._fft_c2r(spectrum, (2,), scaling, n_fft)


function("stft", expose="function")(stft)
function("istft", expose="function")(istft)


@function("stft", expose="method")
def stft_method(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """See `torch.stft`."""
    return stft(
        self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
    )  # fmt: skip


@function("istft", expose="method")
def istft_method(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """See `torch.istft`."""
    return istft(
        self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
    )
