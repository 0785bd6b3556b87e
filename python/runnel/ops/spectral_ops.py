"""Frames, short-time Fourier transforms, cosine transforms and mel spectra (tf.signal)."""

import math

from runnel import dtypes
from runnel import raw_ops as _ops
from runnel.core.convert import constant, constant_value, convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, fft_ops, math_ops


def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None):
    """Cuts `axis` into frames of `frame_length`, which begin `frame_step` apart: [..., frames, frame_length, ...]."""
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal, name="signal")
        length = convert_to_tensor(frame_length, dtypes.int32, name="frame_length")
        step = convert_to_tensor(frame_step, dtypes.int32, name="frame_step")
        rank = signal.shape.ndims
        if rank is None:
            raise ValueError("frame needs a signal of known rank")
        axis = axis % rank
        size = signal.shape.as_list()[axis]
        if size is None:
            size = array_ops.shape(signal)[axis]
        static = [constant_value(convert_to_tensor(x, dtypes.int32)) for x in (size, length, step)]
        if all(x is not None for x in static):
            size, length, step = (int(x) for x in static)
            count = max(0, -(-size // step) if pad_end else 1 + (size - length) // step)
            missing = max(0, length + step * (count - 1) - size) if pad_end else 0
        elif pad_end:
            count = _ops.Maximum(0, -(-size // step))
            missing = _ops.Maximum(0, length + step * (count - 1) - size)
        else:
            count = _ops.Maximum(0, 1 + (size - length) // step)
            missing = 0
        if pad_end:
            pads = [[0, missing if i == axis else 0] for i in range(rank)]
            signal = array_ops.pad(signal, pads, constant_values=pad_value)
        starts = array_ops.expand_dims(math_ops.range(count) * step, 1)
        places = starts + array_ops.expand_dims(math_ops.range(length), 0)
        return array_ops.gather(signal, places, axis=axis)


def overlap_and_add(signal, frame_step, name=None):
    """Adds up frames, [..., frames, frame_length], that begin `frame_step` apart."""
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        signal.shape.with_rank_at_least(2)
        step = convert_to_tensor(frame_step, name="frame_step")
        if not step.dtype.is_integer:
            raise ValueError("frame_step must be an integer. Got %s" % step.dtype)
        step = math_ops.cast(step, dtypes.int32)
        shape = array_ops.shape(signal)
        count, length = shape[-2], shape[-1]
        total = length + step * (count - 1)
        flat = array_ops.reshape(signal, [-1, count * length])
        places = array_ops.expand_dims(math_ops.range(count) * step, 1) + array_ops.expand_dims(math_ops.range(length), 0)
        sums = _ops.UnsortedSegmentSum(data=array_ops.transpose(flat), segment_ids=array_ops.reshape(places, [-1]),
                                       num_segments=total)
        result = array_ops.reshape(array_ops.transpose(sums), array_ops.concat([shape[:-2], [total]], 0))
        known = [constant_value(x) for x in (convert_to_tensor(total), step)]
        outer = signal.shape.as_list()[:-2]
        result.set_shape(outer + [None if known[0] is None else int(known[0])])
        return result


def _power_of_two(n):
    """Returns the least power of two that is not below the scalar `n`."""
    known = constant_value(n)
    if known is not None:
        return convert_to_tensor(1 << max(0, int(known) - 1).bit_length(), dtypes.int32)
    bits = _ops.Ceil(x=_ops.Log(math_ops.cast(n, dtypes.float32)) / math.log(2.0))
    return math_ops.cast(_ops.Pow(x=constant(2.0), y=bits), dtypes.int32)


def _hann_window():
    from runnel.signal import hann_window
    return hann_window


_DEFAULT = object()


def _frame_sizes(frame_length, frame_step, fft_length):
    """Returns the three as tensors; fft_length is the next power of two by default."""
    frame_length = convert_to_tensor(frame_length, dtypes.int32, name="frame_length")
    frame_step = convert_to_tensor(frame_step, dtypes.int32, name="frame_step")
    if fft_length is None:
        fft_length = _power_of_two(frame_length)
    else:
        fft_length = convert_to_tensor(fft_length, dtypes.int32, name="fft_length")
    return frame_length, frame_step, fft_length


def _windowed(frames, frame_length, window_fn, dtype):
    """Multiplies frames by a window: Hann's by default, none if it is None."""
    if window_fn is _DEFAULT:
        window_fn = _hann_window()
    return frames if window_fn is None else frames * window_fn(frame_length, dtype=dtype)


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=_DEFAULT, pad_end=False, name=None):
    """Returns the Fourier transforms of windowed frames: [..., frames, fft_length / 2 + 1]."""
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals, name="signals")
        signals.shape.with_rank_at_least(1)
        frame_length, frame_step, fft_length = _frame_sizes(frame_length, frame_step, fft_length)
        frames = frame(signals, frame_length, frame_step, pad_end=pad_end)
        frames = _windowed(frames, frame_length, window_fn, frames.dtype)
        return fft_ops.rfft(frames, [fft_length])


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=_DEFAULT, name=None):
    """Returns the sum of the windowed inverse transforms of frames."""
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        stfts.shape.with_rank_at_least(2)
        frame_length, frame_step, fft_length = _frame_sizes(frame_length, frame_step, fft_length)
        frames = fft_ops.irfft(stfts, [fft_length])
        have = array_ops.shape(frames)[-1]
        # The transform may be shorter or longer than a frame.
        keep = _ops.Minimum(frame_length, have)
        frames = frames[..., :keep]
        rank = frames.shape.ndims
        frames = array_ops.pad(frames, [[0, 0]] * (rank - 1) + [[0, frame_length - keep]])
        frames = _windowed(frames, frame_length, window_fn, stfts.dtype.real_dtype)
        return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(frame_step, forward_window_fn=_DEFAULT, name=None):
    """Returns a function that makes the window with which inverse_stft undoes stft."""
    if forward_window_fn is _DEFAULT:
        forward_window_fn = _hann_window()

    def window(frame_length, dtype):
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length = convert_to_tensor(frame_length, dtypes.int32, name="frame_length")
            step = convert_to_tensor(frame_step, dtypes.int32, name="frame_step")
            forward = forward_window_fn(length, dtype=dtype)
            # The sum of the squares of all windows that cover a sample.
            overlaps = -(-length // step)
            squares = array_ops.pad(math_ops.square(forward), [[0, overlaps * step - length]])
            sums = math_ops.reduce_sum(array_ops.reshape(squares, [overlaps, step]), 0, keepdims=True)
            sums = array_ops.reshape(array_ops.tile(sums, [overlaps, 1]), [overlaps * step])
            return forward / sums[:length]

    return window


def _check_dct(x, type, n, axis, norm):  # noqa: A002
    if axis != -1:
        raise NotImplementedError("axis must be -1. Got: %s" % axis)
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    if type == 1 and x.shape.as_list()[-1] is not None and x.shape.as_list()[-1] < 2:
        raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    if norm not in (None, "ortho"):
        raise ValueError("Unknown normalization. Expected None or 'ortho', got: %s" % norm)


def dct(input, type=2, n=None, axis=-1, norm=None, name=None):  # noqa: A002
    """Returns the discrete cosine transform over the last axis, of type 1 to 4."""
    with name_scope(name, "dct", [input, n, axis, norm]):
        x = convert_to_tensor(input)
        _check_dct(x, type, n, axis, norm)
        if n is not None:
            size = x.shape.as_list()[-1]
            x = x[..., :n]
            if size < n:
                x = array_ops.pad(x, [[0, 0]] * (x.shape.ndims - 1) + [[0, n - size]])
        dim = x.shape.as_list()[-1]
        if dim is None:
            dim = array_ops.shape(x)[-1]
        real = math_ops.cast(dim, x.dtype)
        if type == 1:
            mirrored = array_ops.concat([x, array_ops.reverse(x, [-1])[..., 1:-1]], -1)
            return math_ops.real(fft_ops.rfft(mirrored))
        if type in (2, 3):
            angles = -math_ops.range(real) * math.pi * 0.5 / real
            turn = _ops.Complex(real=_ops.Cos(angles), imag=_ops.Sin(angles),
                                Tout=dtypes.complex64 if x.dtype == dtypes.float32 else dtypes.complex128)
        if type == 2:
            y = 2.0 * math_ops.real(fft_ops.rfft(x, fft_length=[2 * dim])[..., :dim] * turn)
            if norm == "ortho":
                first = 0.5 * _ops.Rsqrt(x=real)
                y = y * array_ops.concat([array_ops.expand_dims(first, 0), array_ops.fill([dim - 1], first * math.sqrt(2.0))], 0)
            return y
        if type == 3:
            if norm == "ortho":
                first = math_ops.sqrt(real)
                x = x * array_ops.concat([array_ops.expand_dims(first, 0), array_ops.fill([dim - 1], first * math.sqrt(0.5))], 0)
            else:
                x = x * real
            spectrum = _ops.Complex(real=x, imag=array_ops.zeros_like(x), Tout=turn.dtype) * math_ops.conj(turn)
            return 2.0 * fft_ops.irfft(spectrum, fft_length=[2 * dim])[..., :dim]
        y = dct(_with_zeros(x), type=2)[..., 1::2]
        if norm == "ortho":
            y = y * (math.sqrt(0.5) * _ops.Rsqrt(x=real))
        return y


def _with_zeros(x):
    """Returns `x` padded with as many zeros as it has numbers."""
    return array_ops.concat([x, array_ops.zeros_like(x)], -1)


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):  # noqa: A002
    """Returns the inverse discrete cosine transform, up to a factor as in SciPy."""
    return dct(input, type={2: 3, 3: 2}.get(type, type), n=n, axis=axis, norm=norm, name=name)


def linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0,
                                upper_edge_hertz=3800.0, dtype=dtypes.float32, name=None):
    """Returns a matrix, [num_spectrogram_bins, num_mel_bins], that makes a mel spectrum of a linear one."""
    import numpy as np
    dtype = dtypes.as_dtype(dtype)
    if num_mel_bins <= 0:
        raise ValueError("num_mel_bins must be positive. Got: %s" % num_mel_bins)
    if lower_edge_hertz < 0.0:
        raise ValueError("lower_edge_hertz must be non-negative. Got: %s" % lower_edge_hertz)
    if lower_edge_hertz >= upper_edge_hertz:
        raise ValueError("lower_edge_hertz %.1f >= upper_edge_hertz %.1f" % (lower_edge_hertz, upper_edge_hertz))
    if not dtype.is_floating:
        raise ValueError("dtype must be a floating point type. Got: %s" % dtype)
    with name_scope(name, "linear_to_mel_weight_matrix"):
        def mel(hertz):
            return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)

        bins = mel(np.linspace(0.0, sample_rate / 2.0, num_spectrogram_bins)[1:])[:, None]
        edges = np.linspace(mel(lower_edge_hertz), mel(upper_edge_hertz), num_mel_bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        weights = np.maximum(0.0, np.minimum((bins - lower) / (center - lower), (upper - bins) / (upper - center)))
        return constant(np.pad(weights, [[1, 0], [0, 0]]), dtype=dtype)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    """Returns the mel-frequency cepstral coefficients: a scaled cosine transform of the last axis."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = convert_to_tensor(log_mel_spectrograms)
        bins = x.shape.as_list()[-1]
        if bins == 0:
            raise ValueError("num_mel_bins must be positive. Got: %s" % log_mel_spectrograms)
        if bins is None:
            bins = array_ops.shape(x)[-1]
        return dct(x, type=2) * _ops.Rsqrt(x=math_ops.cast(bins, x.dtype) * 2.0)
