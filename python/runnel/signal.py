"""tf.signal: window functions, Fourier transforms and spectra."""

from runnel import dtypes, raw_ops
from runnel.core.convert import constant, constant_value, convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.fft_ops import (  # noqa: F401
    fft, fft2d, fft3d, fftshift, ifft, ifft2d, ifft3d, ifftshift, irfft, irfft2d, irfft3d, rfft, rfft2d, rfft3d)
from runnel.ops.fft_nd import fftnd, ifftnd, irfftnd, rfftnd  # noqa: F401
from runnel.ops.mdct_ops import inverse_mdct, kaiser_bessel_derived_window, mdct, vorbis_window  # noqa: F401
from runnel.ops.spectral_ops import (  # noqa: F401
    dct, frame, idct, inverse_stft, inverse_stft_window_fn, linear_to_mel_weight_matrix,
    mfccs_from_log_mel_spectrograms, overlap_and_add, stft)


def _raised_cosine(name, default_name, window_length, periodic, dtype, a, b):
    """Returns a - b * cos(2 pi i / n); n is the length, or one less if the window is not periodic or its length is odd."""
    import math
    if not dtype.is_floating:
        raise ValueError("dtype must be a floating point type. Found %s" % dtype)
    with name_scope(name, default_name, [window_length, periodic]):
        window_length = convert_to_tensor(window_length, dtypes.int32, name="window_length")
        window_length.shape.assert_has_rank(0)
        known = constant_value(window_length)
        if known == 1:
            return array_ops.ones([1], dtype=dtype)
        periodic = math_ops.cast(convert_to_tensor(periodic, dtypes.bool, name="periodic"), dtypes.int32)
        even = 1 - raw_ops.FloorMod(x=window_length, y=2, name="mod")
        n = math_ops.cast(window_length + periodic * even - 1, dtype)
        count = math_ops.cast(math_ops.range(window_length), dtype)
        angles = constant(2 * math.pi, dtype=dtype) * count / n

        def window():
            return math_ops.cast(a - b * raw_ops.Cos(x=angles), dtype)

        if known is not None:
            return window()
        from runnel.ops.control_flow import cond
        return cond(math_ops.equal(window_length, 1), lambda: array_ops.ones([window_length], dtype=dtype), window)


def hann_window(window_length, periodic=True, dtype=dtypes.float32, name=None):
    """Returns a Hann window: (1 - cos) / 2."""
    return _raised_cosine(name, "hann_window", window_length, periodic, dtypes.as_dtype(dtype), 0.5, 0.5)


def hamming_window(window_length, periodic=True, dtype=dtypes.float32, name=None):
    """Returns a Hamming window: 0.54 - 0.46 cos."""
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtypes.as_dtype(dtype), 0.54, 0.46)


def kaiser_window(window_length, beta=12.0, dtype=dtypes.float32, name=None):
    """Returns a Kaiser window: I0(beta * sqrt(1 - x**2)) / I0(beta) for x from -1 to 1."""
    with name_scope(name, "kaiser_window"):
        window_length = convert_to_tensor(window_length, dtypes.int32, name="window_length")
        if constant_value(window_length) == 1:
            return array_ops.ones([1], dtype=dtype)
        half = (math_ops.cast(window_length, dtype) - 1) / 2
        beta = math_ops.cast(convert_to_tensor(beta, dtype), dtype)
        x = (math_ops.cast(math_ops.range(window_length), dtype) - half) / half
        inside = raw_ops.Maximum(x=1 - raw_ops.Square(x=x), y=math_ops.cast(0, dtype))
        return raw_ops.BesselI0(x=beta * raw_ops.Sqrt(x=inside)) / raw_ops.BesselI0(x=beta)
