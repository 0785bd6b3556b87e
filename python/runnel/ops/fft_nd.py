"""Fourier transforms over any axes."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, fft_ops, math_ops


def _places(x, fft_length, axes, is_half):
    """Returns (lengths, axes) as given, or all axes and their lengths; the last one of half a spectrum is that of the whole."""
    if axes is None:
        count = x.shape.rank if fft_length is None else convert_to_tensor(fft_length).shape.as_list()[0]
        axes = list(range(-count, 0))
    if fft_length is None:
        sizes = array_ops.gather(array_ops.shape(x), [axis % x.shape.rank for axis in axes])
        fft_length = array_ops.concat([sizes[:-1], [2 * (sizes[-1] - 1)]], 0) if is_half else sizes
    return convert_to_tensor(fft_length, dtypes.int32), convert_to_tensor(axes, dtypes.int32)


def _padded(x, lengths, axes, is_half):
    """Adds zeros where a length exceeds the size of its axis; the last axis of half a spectrum needs half of it."""
    if is_half:
        lengths = array_ops.concat([lengths[:-1], [lengths[-1] // 2 + 1]], 0)
    places = (axes + x.shape.rank) % x.shape.rank
    missing = raw_ops.Maximum(x=lengths - array_ops.gather(array_ops.shape(x), places), y=0)
    after = raw_ops.ScatterNd(indices=places[:, None], updates=missing, shape=[x.shape.rank])
    return array_ops.pad(x, array_ops.stack([array_ops.zeros_like(after), after], 1))


def _scaled(values, lengths, norm, is_inverse):
    """Scales a transform: "backward" leaves it as it is, "ortho" and "forward" move the divisor."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError("Unsupported normalization mode %s" % norm)
    if norm in (None, "backward"):
        return values
    count = math_ops.cast(math_ops.reduce_prod(lengths), values.dtype)
    factor = count if norm == "forward" else count**0.5
    return values * factor if is_inverse else values / factor


def _transform(name_, run, is_inverse, is_half, doc):
    def function(input_tensor, fft_length=None, axes=None, norm=None, name=None):
        with name_scope(name, name_, [input_tensor]):
            x = convert_to_tensor(input_tensor)
            lengths, places = _places(x, fft_length, axes, is_half and is_inverse)
            return _scaled(run(_padded(x, lengths, places, is_half and is_inverse), lengths, places), lengths, norm, is_inverse)
    function.__name__ = function.__qualname__ = name_
    function.__doc__ = doc
    return function


def _complex(x):
    return dtypes.complex128 if x.dtype == dtypes.float64 else dtypes.complex64


def _real(x):
    return dtypes.float64 if x.dtype == dtypes.complex128 else dtypes.float32


_ABOUT = " over `axes`, by default all, cropped or padded to `fft_length`. `norm` is \"backward\", \"ortho\" or \"forward\"."
fftnd = _transform("fftnd", fft_ops.fftnd, False, False, "Returns the Fourier transform" + _ABOUT)
ifftnd = _transform("ifftnd", fft_ops.ifftnd, True, False, "Returns the inverse Fourier transform" + _ABOUT)
rfftnd = _transform("rfftnd", lambda x, n, axes: fft_ops.rfftnd(x, n, axes, _complex(x)), False, True, "Returns the Fourier transform of reals" + _ABOUT)
irfftnd = _transform("irfftnd", lambda x, n, axes: fft_ops.irfftnd(x, n, axes, _real(x)), True, True, "Returns the inverse of rfftnd" + _ABOUT)
