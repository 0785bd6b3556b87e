"""Fourier transforms, spectra, and the linear algebra that came with them."""

import pytest
from both import both


@both
def test_transforms(tf, np):
    draw = np.random.RandomState(0)
    x = draw.randn(2, 3, 8)
    z = x + 1j * draw.randn(2, 3, 8)
    s = tf.signal
    with tf.Session() as sess:
        return sess.run([s.fft(z), s.ifft(z), s.fft2d(z), s.ifft2d(z), s.fft3d(z), s.ifft3d(z), s.rfft(x), s.rfft(x, [5]),
                         s.rfft(x, [11]), s.irfft(z), s.irfft(z, [9]), s.irfft(z, [21]), s.rfft2d(x), s.irfft2d(z),
                         s.rfft3d(x, [4, 2, 6]), s.irfft3d(z), s.fftshift(x), s.ifftshift(x, axes=[1, 2]), tf.fft(z)])


@both
def test_spectra(tf, np):
    x = np.random.RandomState(1).randn(2, 50)
    s = tf.signal
    spectrum = s.stft(x, 16, 5)
    inverse = s.inverse_stft(spectrum, 16, 5, window_fn=s.inverse_stft_window_fn(5))
    mel = s.linear_to_mel_weight_matrix(6, 9, 8000, dtype=tf.float64)
    logs = tf.math.log(tf.matmul(tf.abs(spectrum), tf.tile(mel[None], [2, 1, 1])) + 1e-3)
    cosines = [s.dct(x, type=t, norm=norm) for t in (1, 2, 3, 4) for norm in (None, "ortho") if t > 1 or not norm]
    back = [s.idct(x, type=t, norm="ortho") for t in (2, 3, 4)]
    with tf.Session() as sess:
        return sess.run([spectrum, inverse, mel, s.mfccs_from_log_mel_spectrograms(logs), s.frame(x, 7, 3),
                         s.frame(x, 7, 3, pad_end=True, pad_value=2.0), s.frame(x, 1, 1, axis=0),
                         s.overlap_and_add(tf.reshape(tf.constant(x), [2, 10, 5]), 2), s.stft(x, 12, 6, 20, window_fn=None, pad_end=True),
                         s.dct(x, n=20), s.dct(x, n=60)] + cosines + back)


@both
def test_spectrum_gradients(tf, np):
    x = tf.constant(np.random.RandomState(2).randn(40))
    weights = np.random.RandomState(3).randn(7, 9)
    loss = tf.reduce_sum(tf.abs(tf.signal.stft(x, 16, 4)) ** 2 * weights)
    with tf.Session() as sess:
        return sess.run(tf.convert_to_tensor(tf.gradients(loss, x)[0]))


@both
def test_general_matrices(tf, np):
    """Eigenvalues are sorted here, since they come in no particular order."""
    a = np.random.RandomState(4).randn(2, 5, 5)
    e, v = tf.raw_ops.Eig(input=a, Tout=tf.complex128)
    rebuilt = tf.matmul(tf.matmul(v, tf.linalg.diag(e)), tf.linalg.inv(v))
    lu, p = tf.linalg.lu(a)
    right = np.random.RandomState(5).randn(2, 5, 2)
    with tf.Session() as sess:
        values, also, *rest = sess.run([e, tf.raw_ops.Eig(input=a, Tout=tf.complex128, compute_v=False)[0], rebuilt, tf.linalg.lu_reconstruct(lu, p),
                                        tf.linalg.lu_solve(lu, p, right), tf.linalg.lu_matrix_inverse(lu, p),
                                        tf.linalg.sqrtm(np.matmul(a, a)) ** 2 * 0, tf.linalg.lstsq(a[:, :, :3], right),
                                        tf.linalg.logm(np.matmul(a, np.swapaxes(a, 1, 2)).astype(complex))])
    order = [np.sort_complex(np.round(x, 9)) for x in (*values, *also)]
    return order, rest


@both
def test_tridiagonal(tf, np):
    draw = np.random.RandomState(6)
    d, right = draw.rand(2, 3, 4) + 0.5, draw.randn(2, 4, 3)
    upper, main, lower = d[:, 0, :-1], d[:, 1], d[:, 2, 1:]
    full = np.stack([np.diag(main[i]) + np.diag(upper[i], 1) + np.diag(lower[i], -1) for i in range(2)])
    l = tf.linalg
    d, right, upper, main, lower, full = (tf.constant(x) for x in (d, right, upper, main, lower, full))
    with tf.Session() as sess:
        return sess.run([l.tridiagonal_solve(d, right), l.tridiagonal_solve((upper, main, lower), right, diagonals_format="sequence"),
                         l.tridiagonal_solve(full, right, diagonals_format="matrix"), l.tridiagonal_solve(d, right[:, :, 0]),
                         l.tridiagonal_solve(d, tf.linalg.matrix_transpose(right), transpose_rhs=True), l.tridiagonal_matmul(d, right),
                         l.tridiagonal_matmul((d[:, 0], d[:, 1], d[:, 2]), right, diagonals_format="sequence"),
                         l.tridiagonal_matmul(full, right, diagonals_format="matrix")])


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_any_axes(rank):
    """Stock has these on GPUs only: NumPy judges."""
    import numpy as np
    import runnel as tf
    draw = np.random.RandomState(7)
    x = draw.randn(3, 4, 6)
    z = x + 1j * draw.randn(3, 4, 6)
    axes = list(range(-rank, 0))
    for size in ([3, 4, 6], [2, 3, 5], [2, 3, 4]):
        n = size[-rank:]
        with tf.Graph().as_default(), tf.Session() as sess:
            got = sess.run([tf.raw_ops.FFTND(input=z, fft_length=n, axes=axes), tf.raw_ops.IFFTND(input=z, fft_length=n, axes=axes),
                            tf.raw_ops.RFFTND(input=x, fft_length=n, axes=axes, Tcomplex="complex128"),
                            tf.raw_ops.IRFFTND(input=z, fft_length=n, axes=axes, Treal="float64")])
        part = z[..., : n[-1] // 2 + 1]
        want = [np.fft.fftn(z, n, axes), np.fft.ifftn(z, n, axes), np.fft.rfftn(x, n, axes), np.fft.irfftn(part, n, axes)]
        for a, b in zip(got, want):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    n = [5, 7][-rank:] if rank < 3 else [4, 5, 7]
    with tf.Graph().as_default(), tf.Session() as sess:
        longer = sess.run(tf.raw_ops.FFTND(input=z, fft_length=n, axes=axes))
    np.testing.assert_allclose(longer, np.fft.fftn(z, n, axes), rtol=1e-11, atol=1e-11)
