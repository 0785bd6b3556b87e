"""The modified discrete cosine transform, its inverse, and the windows that it needs."""

import math

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.spectral_ops import dct, frame, overlap_and_add


def vorbis_window(window_length, dtype=dtypes.float32, name=None):
    """Returns a Vorbis power-complementary window: sin(pi / 2 * sin(pi / n * (i + 0.5))**2)."""
    with name_scope(name, "vorbis_window"):
        window_length = convert_to_tensor(window_length, dtypes.int32, name="window_length")
        place = math_ops.cast(math_ops.range(window_length), dtype) + 0.5
        return raw_ops.Sin(x=math.pi / 2 * raw_ops.Square(x=raw_ops.Sin(x=math.pi / math_ops.cast(window_length, dtype) * place)))


def kaiser_bessel_derived_window(window_length, beta=12.0, dtype=dtypes.float32, name=None):
    """Returns a Kaiser-Bessel derived window: the square roots of the sums of a Kaiser window of half the length, there and back."""
    from runnel.signal import kaiser_window
    with name_scope(name, "kaiser_bessel_derived_window"):
        half = convert_to_tensor(window_length, dtypes.int32, name="window_length") // 2
        sums = math_ops.cumsum(kaiser_window(half + 1, beta, dtype=dtype))
        rising = raw_ops.Sqrt(x=sums[:-1] / sums[-1])
        return array_ops.concat([rising, rising[::-1]], 0)


def _windowed(frames, length, window_fn):
    if window_fn is None:
        return frames * (1.0 / math.sqrt(2))
    return frames * window_fn(length, dtype=frames.dtype)


def mdct(signals, frame_length, window_fn=vorbis_window, pad_end=False, norm=None, name=None):
    """Returns the modified discrete cosine transform of frames that overlap by half.

    Args:
      signals: [..., samples].
      frame_length: a multiple of 4.
      window_fn: a function of a length and a dtype, or None.
      pad_end: whether the last frames are filled with zeros.
      norm: None or "ortho".
    Returns:
      [..., frames, frame_length / 2].
    """
    with name_scope(name, "mdct", [signals, frame_length]):
        signals = convert_to_tensor(signals, name="signals")
        signals.shape.with_rank_at_least(1)
        frame_length = convert_to_tensor(frame_length, dtypes.int32, name="frame_length")
        frames = _windowed(frame(signals, frame_length, frame_length // 2, pad_end=pad_end), frame_length, window_fn)
        a, b, c, d = array_ops.split(frames, 4, axis=-1)
        folded = array_ops.concat([-array_ops.reverse(c, [-1]) - d, a - array_ops.reverse(b, [-1])], -1)
        return dct(folded, type=4, norm=norm)


def inverse_mdct(mdcts, window_fn=vorbis_window, norm=None, name=None):
    """Returns the signals of modified discrete cosine transforms, but for the first and the last half of a frame."""
    with name_scope(name, "inverse_mdct", [mdcts]):
        mdcts = convert_to_tensor(mdcts, name="mdcts")
        half = array_ops.shape(mdcts)[-1]
        values = dct(mdcts, type=4, norm=norm)
        if norm is None:
            values = values * (0.5 / math_ops.cast(half, mdcts.dtype))
        first, second = array_ops.split(values, 2, axis=-1)
        back = [-1]
        frames = array_ops.concat([second, -array_ops.reverse(second, back), -array_ops.reverse(first, back), -first], -1)
        return overlap_and_add(_windowed(frames, 2 * half, window_fn), half)
