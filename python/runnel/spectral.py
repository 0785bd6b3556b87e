"""tf.spectral: old names of tf.signal."""

from runnel.ops.fft_ops import (  # noqa: F401
    fft, fft2d, fft3d, ifft, ifft2d, ifft3d, irfft, irfft2d, irfft3d, rfft, rfft2d, rfft3d)
from runnel.ops.spectral_ops import dct, idct  # noqa: F401
