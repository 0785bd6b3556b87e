"""tf.audio, and the image formats and exponentials that are newer than the other names."""

import base64

import pytest
from both import both

WEBP_FILE = "UklGRjIAAABXRUJQVlA4TCUAAAAvBQABEM1lRP8DihlJghhGYN7jr3jtIgz2oAgEUthKT4AO7MQbAA=="
JXL_FILE = "/wogIBBQXAgIAgEAoABLGJOOg4MZKJ4kTrhMDfgBhgIAPADgAQAPAHgAQDgAAAD+FwQAAAAA"


@both(graph=True)
def test_wav(tf, np):
    sound = np.sin(np.arange(60) / 7).reshape(30, 2).astype("f")
    text = tf.audio.encode_wav(sound, 8000)
    out = [text]
    for channels, samples in ((-1, -1), (1, 10), (3, 40)):
        out += tf.audio.decode_wav(text, desired_channels=channels, desired_samples=samples)
    with tf.Session() as sess:
        return sess.run(out)


@both
def test_spectra(tf, np):
    sound = np.sin(np.arange(900) ** 1.3 / 7).reshape(450, 2).astype("f")
    spectrum = tf.raw_ops.AudioSpectrogram(input=sound, window_size=100, stride=40, magnitude_squared=True)
    with tf.Session() as sess:
        return sess.run([spectrum, tf.raw_ops.Mfcc(spectrogram=spectrum, sample_rate=8000)])


@both
def test_image_formats(tf, np):
    webp, jxl = base64.b64decode(WEBP_FILE), base64.b64decode(JXL_FILE)
    with tf.Session() as sess:
        return sess.run([tf.image.decode_webp(webp), tf.io.decode_webp(webp, channels=4), tf.image.decode_jxl(jxl), tf.io.decode_jxl(jxl),
                         tf.image.decode_image(webp), tf.image.decode_image(jxl)])


@both(rtol=1e-6)
def test_expm(tf, np):
    r = np.random.RandomState(3)
    a = r.randn(2, 3, 4, 4) * np.array([1e-3, 1, 20]).reshape(3, 1, 1)
    c = (r.randn(3, 3) + 1j * r.randn(3, 3)).astype("complex128")
    with tf.Session() as sess:
        return sess.run([tf.linalg.expm(a), tf.linalg.expm(c), tf.linalg.expm(a[0, 1]), tf.linalg.expm(np.zeros((0, 3, 3)))])


@both(rtol=1e-9)
def test_csr(tf, np):
    """Matrices cross between ops as variants; what they hold is read back."""
    ops = tf.raw_ops
    a = ops.DenseToCSRSparseMatrix(dense_input=np.arange(12.0).reshape(3, 4), indices=[[0, 1], [1, 0], [1, 3], [2, 2]])
    b = ops.SparseMatrixTranspose(input=a, type=tf.float64)
    c = ops.SparseMatrixSparseMatMul(a=a, b=b, type=tf.float64)
    with tf.Session() as sess:
        return sess.run([ops.CSRSparseMatrixToDense(sparse_input=c, type=tf.float64), ops.SparseMatrixNNZ(sparse_matrix=c),
                         ops.SparseMatrixMatMul(a=a, b=np.ones((4, 2)))])


@pytest.mark.parametrize("padding", [b"\0\0\0", b"\x83\x20\xff"])
def test_csr_message(padding):
    """The message of a matrix is stock's, whose padding is not defined."""
    import numpy as np
    import runnel as tf
    ops = tf.raw_ops
    dense = np.array([[1.0, 0, 2], [0, 0, 3]], "f")
    with tf.Graph().as_default(), tf.Session() as sess:
        a = ops.DenseToCSRSparseMatrix(dense_input=dense, indices=[[0, 0], [0, 2], [1, 2]])
        text = tf.placeholder(tf.string, [])
        back = ops.CSRSparseMatrixToDense(sparse_input=ops.ParseTensor(serialized=text, out_type=tf.variant), type=tf.float32)
        ours = sess.run(ops.SerializeTensor(tensor=a))
        assert ours.count(b"\x01\0\0\0\x01\0\0\0") == 1
        sent = ours.replace(b"\x01\0\0\0\x01\0\0\0", b"\x01" + padding + b"\x01\0\0\0")
        assert np.array_equal(sess.run(back, {text: sent}), dense)
        for cut in range(40, len(sent) - 1, 7):
            bad = sent[:cut] + bytes([sent[cut] ^ 0x55]) + sent[cut + 1:]
            try:
                sess.run(back, {text: bad})
            except tf.errors.OpError:
                pass


def test_ordering():
    """Any order in which the factor has few entries is right: that of an arrow has none but the arrow's."""
    import numpy as np
    import runnel as tf
    n, ops = 40, tf.raw_ops
    arrow = np.eye(n) * n
    arrow[0] = arrow[:, 0] = 1
    arrow[0, 0] = n
    grid = np.zeros((n, n))
    for i in range(n):
        for j in (i - 1, i + 1, i - 8, i + 8):
            if 0 <= j < n:
                grid[i, j] = -1
        grid[i, i] = 5
    for dense, most in ((arrow, 2 * n - 1), (grid, 260)):
        with tf.Graph().as_default(), tf.Session() as sess:
            a = ops.DenseToCSRSparseMatrix(dense_input=dense, indices=np.argwhere(dense))
            order = ops.SparseMatrixOrderingAMD(input=a)
            factor = ops.SparseMatrixSparseCholesky(input=a, permutation=order, type=tf.float64)
            found, low, count = sess.run([order, ops.CSRSparseMatrixToDense(sparse_input=factor, type=tf.float64),
                                          ops.SparseMatrixNNZ(sparse_matrix=factor)])
        assert sorted(found) == list(range(n)) and count <= most
        np.testing.assert_allclose(low @ low.T, dense[found][:, found], atol=1e-12)
