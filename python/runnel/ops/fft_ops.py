"""Fourier transforms (tf.signal.fft and its relatives)."""

from runnel import dtypes
from runnel import raw_ops as _ops
from runnel.core.convert import constant_value, convert_to_tensor, evaluated_value
from runnel.core.framework import name_scope
from runnel.ops import array_ops


def fft(input, name=None):  # noqa: A002
    """Returns the Fourier transform over the last axis."""
    return _ops.FFT(input=input, name=name)


def ifft(input, name=None):  # noqa: A002
    """Returns the inverse Fourier transform over the last axis."""
    return _ops.IFFT(input=input, name=name)


def fft2d(input, name=None):  # noqa: A002
    """Returns the Fourier transform over the last two axes."""
    return _ops.FFT2D(input=input, name=name)


def ifft2d(input, name=None):  # noqa: A002
    """Returns the inverse Fourier transform over the last two axes."""
    return _ops.IFFT2D(input=input, name=name)


def fft3d(input, name=None):  # noqa: A002
    """Returns the Fourier transform over the last three axes."""
    return _ops.FFT3D(input=input, name=name)


def ifft3d(input, name=None):  # noqa: A002
    """Returns the inverse Fourier transform over the last three axes."""
    return _ops.IFFT3D(input=input, name=name)


def fftnd(input, fft_length, axes, name=None):  # noqa: A002
    """Returns the Fourier transform over `axes`, the last ones, cropped or padded to `fft_length`."""
    return _ops.FFTND(input=input, fft_length=fft_length, axes=axes, name=name)


def ifftnd(input, fft_length, axes, name=None):  # noqa: A002
    """Returns the inverse Fourier transform over `axes`, the last ones, cropped or padded to `fft_length`."""
    return _ops.IFFTND(input=input, fft_length=fft_length, axes=axes, name=name)


def rfftnd(input, fft_length, axes, Tcomplex=dtypes.complex64, name=None):  # noqa: A002, N803
    """Returns the Fourier transform of reals over `axes`, the last ones."""
    return _ops.RFFTND(input=input, fft_length=fft_length, axes=axes, Tcomplex=Tcomplex, name=name)


def irfftnd(input, fft_length, axes, Treal=dtypes.float32, name=None):  # noqa: A002, N803
    """Returns the inverse of rfftnd."""
    return _ops.IRFFTND(input=input, fft_length=fft_length, axes=axes, Treal=Treal, name=name)


def _default_length(x, rank, is_inverse):
    """Returns the sizes of the last `rank` axes; for the inverse, the last is that of the whole spectrum."""
    known = x.shape[-rank:]
    if known.is_fully_defined():
        sizes = known.as_list()
        if is_inverse and sizes:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return convert_to_tensor(sizes, dtypes.int32)
    sizes = array_ops.shape(x)[-rank:]
    if not is_inverse:
        return sizes
    return array_ops.concat([sizes[:-1], _ops.Maximum(0, 2 * (sizes[-1:] - 1))], 0)


def _padded(x, rank, length, is_inverse):
    """Pads the last `rank` axes with zeros to `length`; for the inverse, the last to half of it."""
    if x.shape.ndims is not None and any(d == 0 for d in x.shape.as_list()):
        return x
    sizes, known = constant_value(length), x.shape[-rank:]
    if sizes is not None and known.is_fully_defined():
        sizes = [int(n) for n in sizes]
        if is_inverse:
            sizes[-1] = sizes[-1] // 2 + 1
        after = [max(n - d, 0) for n, d in zip(sizes, known.as_list())]
        if not any(after):
            return x
        return array_ops.pad(x, [[0, 0]] * (x.shape.ndims - rank) + [[0, n] for n in after])
    want = array_ops.concat([length[:-1], length[-1:] // 2 + 1], 0) if is_inverse else length
    after = _ops.Maximum(0, want - array_ops.shape(x)[-rank:])
    after = array_ops.concat([array_ops.zeros([array_ops.rank(x) - rank], dtypes.int32), after], 0)
    return array_ops.pad(x, array_ops.stack([array_ops.zeros_like(after), after], axis=1))


def _real(op, rank, is_inverse, default_name, x, fft_length, name):
    with name_scope(name, default_name, [x, fft_length]) as scope:
        allowed = (dtypes.complex64, dtypes.complex128) if is_inverse else (dtypes.float32, dtypes.float64)
        x = convert_to_tensor(x, preferred_dtype=allowed[0])
        if x.dtype not in allowed:
            raise ValueError("%s requires tf.%s or tf.%s inputs, got: %s" % (
                "IRFFT" if is_inverse else "RFFT", allowed[0].name, allowed[1].name, x))
        x.shape.with_rank_at_least(rank)
        if fft_length is None:
            fft_length = _default_length(x, rank, is_inverse)
        else:
            fft_length = convert_to_tensor(fft_length, dtypes.int32)
        x = _padded(x, rank, fft_length, is_inverse)
        if is_inverse:
            result = op(input=x, fft_length=fft_length, Treal=x.dtype.real_dtype, name=scope)
        else:
            wide = dtypes.complex64 if x.dtype == dtypes.float32 else dtypes.complex128
            result = op(input=x, fft_length=fft_length, Tcomplex=wide, name=scope)
        _set_last_sizes(result, x, rank, fft_length, is_inverse)
        return result


def _set_last_sizes(result, x, rank, fft_length, is_inverse):
    """Sets the static sizes of a node of a graph whose `fft_length` follows from constants."""
    if result.op is None or x.shape.ndims is None or result.shape.is_fully_defined():
        return
    sizes = evaluated_value(fft_length)
    if sizes is not None and len(sizes) == rank:
        last = int(sizes[-1]) if is_inverse else int(sizes[-1]) // 2 + 1
        result.set_shape(x.shape.as_list()[:-rank] + [int(n) for n in sizes[:-1]] + [last])


def rfft(input_tensor, fft_length=None, name=None):
    """Returns the first half of the Fourier transform of reals over the last axis."""
    return _real(_ops.RFFT, 1, False, "rfft", input_tensor, fft_length, name)


def irfft(input_tensor, fft_length=None, name=None):
    """Returns the inverse of rfft."""
    return _real(_ops.IRFFT, 1, True, "irfft", input_tensor, fft_length, name)


def rfft2d(input_tensor, fft_length=None, name=None):
    """Returns the first half of the Fourier transform of reals over the last two axes."""
    return _real(_ops.RFFT2D, 2, False, "rfft2d", input_tensor, fft_length, name)


def irfft2d(input_tensor, fft_length=None, name=None):
    """Returns the inverse of rfft2d."""
    return _real(_ops.IRFFT2D, 2, True, "irfft2d", input_tensor, fft_length, name)


def rfft3d(input_tensor, fft_length=None, name=None):
    """Returns the first half of the Fourier transform of reals over the last three axes."""
    return _real(_ops.RFFT3D, 3, False, "rfft3d", input_tensor, fft_length, name)


def irfft3d(input_tensor, fft_length=None, name=None):
    """Returns the inverse of rfft3d."""
    return _real(_ops.IRFFT3D, 3, True, "irfft3d", input_tensor, fft_length, name)


def _rolled(x, axes, name, default_name, sign):
    with name_scope(name, default_name):
        x = convert_to_tensor(x)
        if axes is None:
            axes = tuple(range(x.shape.ndims))
        one = isinstance(axes, int)
        axes = (axes,) if one else tuple(axes)
        sizes = x.shape.as_list()
        if any(sizes[a] is None for a in axes):
            sizes = array_ops.unstack(array_ops.shape(x))
        # fftshift moves by n // 2, its inverse by -(n // 2).
        shift = [sign * (sizes[a] // 2) for a in axes]
        return _ops.Roll(input=x, shift=shift[0] if one else shift, axis=axes[0] if one else list(axes))


def fftshift(x, axes=None, name=None):
    """Moves the zero frequency to the middle of the axes."""
    return _rolled(x, axes, name, "fftshift", 1)


def ifftshift(x, axes=None, name=None):
    """Undoes fftshift."""
    return _rolled(x, axes, name, "ifftshift", -1)
