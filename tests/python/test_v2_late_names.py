"""Names of 2.x that few programs use: transforms, seeds, labels, solvers, locks."""

from both import both


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


@both(v2=True)
def test_windows_and_mdct(tf, np):
    s = tf.signal
    x = np.random.RandomState(0).randn(2, 64).astype("float32")
    found = [s.vorbis_window(8), s.vorbis_window(7, tf.float64), s.kaiser_bessel_derived_window(8), s.kaiser_bessel_derived_window(16, 4.0, tf.float64)]
    for window in (s.vorbis_window, s.kaiser_bessel_derived_window, None):
        for norm in (None, "ortho"):
            spectrum = s.mdct(x, 16, window, norm=norm)
            found += [spectrum, s.inverse_mdct(spectrum, window, norm=norm)]
    return found + [s.mdct(x[0, :30], 8, pad_end=True), tf.function(lambda q: s.inverse_mdct(s.mdct(q, 16)))(x)]


def test_transforms_over_axes():
    """Stock has kernels for GPUs only; NumPy has the same definitions."""
    import numpy as np
    import runnel.v2 as tf
    s = tf.signal
    x = np.random.RandomState(0).randn(3, 4, 6).astype("float32")
    c = x.astype("complex64") + 1j
    for norm in (None, "backward", "ortho", "forward"):
        for ours, theirs in ((s.fftnd(c, norm=norm), np.fft.fftn(c, norm=norm)), (s.ifftnd(c, axes=[1, 2], norm=norm), np.fft.ifftn(c, axes=[1, 2], norm=norm)),
                             (s.rfftnd(x, axes=[1, 2], norm=norm), np.fft.rfftn(x, axes=[1, 2], norm=norm)),
                             (s.rfftnd(x, [4, 8], norm=norm), np.fft.rfftn(x, [4, 8], axes=[1, 2], norm=norm)),
                             (s.irfftnd(c, axes=[1, 2], norm=norm), np.fft.irfftn(c, axes=[1, 2], norm=norm))):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-4)


@both(v2=True)
def test_seeds(tf, np):
    r, e = tf.random, tf.random.experimental
    seed = tf.constant([3, 4], tf.int32)
    return [r.split(seed), r.split(tf.constant([3, 4], tf.int64), 5), r.fold_in(seed, 7), r.fold_in(seed, tf.constant(7, tf.int64)), e.stateless_split(seed, 3),
            e.stateless_fold_in(seed, 1), r.stateless_poisson([4, 2], seed, [1.0, 20.0]), r.stateless_poisson([3], seed, 4.0, tf.float64),
            *[e.index_shuffle(i, tf.constant([1, 2], kind), 10) for i in range(4) for kind in (tf.uint32, tf.int64)], e.stateless_shuffle(tf.range(10), seed),
            e.stateless_shuffle(tf.reshape(tf.range(12), [4, 3]), [1, 2]), r.stateless_parameterized_truncated_normal([6], seed, 1.0, 2.0, -1.0, 3.0)]


@both(v2=True)
def test_labels(tf, np):
    labels = tf.constant([[1, 1, 2, 2, 1, 0], [3, 4, 4, 4, 4, 3], [5, 5, 5, 0, 0, 0]])
    n = tf.nn
    return [n.collapse_repeated(labels, [5, 6, 3]), n.collapse_repeated(labels, tf.constant([6, 2, 1])), n.ctc_unique_labels(labels),
            tf.function(lambda q: n.collapse_repeated(q, [5, 6, 3]))(labels)]


@both(v2=True)
def test_isotonic_regression(tf, np):
    x = np.random.RandomState(0).randn(3, 7).astype("float32")
    n = tf.nn
    with tf.GradientTape() as tape:
        v = tf.constant(x)
        tape.watch(v)
        y = tf.reduce_sum(n.isotonic_regression(v)[0] ** 2)
    return [list(n.isotonic_regression(x)), list(n.isotonic_regression(x, decreasing=False)), list(n.isotonic_regression(x, axis=0)),
            list(n.isotonic_regression(tf.constant([[3, 1, 2]]))), tape.gradient(y, v)]


@both(v2=True)
def test_dropout_of_given_numbers(tf, np):
    x = tf.reshape(tf.range(12.0), [3, 4])

    def sampler(shape, dtype):
        return tf.cast(tf.reshape(tf.range(tf.reduce_prod(shape)), shape), dtype) / 12.0
    d = tf.nn.experimental.general_dropout
    return [d(x, 0.5, sampler), d(x, 0.25, sampler, noise_shape=[3, 1]), d(x, 0, sampler), outcome(lambda: d(x, 1.5, sampler)),
            outcome(lambda: d(tf.range(3), 0.5, sampler))]


@both(v2=True, rtol=1e-4, atol=1e-4)
def test_solvers(tf, np):
    l = tf.linalg  # noqa: E741
    a = np.random.RandomState(0).randn(5, 5)
    matrix = a @ a.T + 5 * np.eye(5)
    operator = l.LinearOperatorFullMatrix(matrix, is_self_adjoint=True, is_positive_definite=True)
    rhs = tf.constant(np.arange(5.0))
    solved = l.experimental.conjugate_gradient(operator, rhs)
    bands = np.array([[2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 2.0, 3.0]])
    column = np.arange(4.0)[:, None]
    alpha, beta = tf.constant(np.arange(1.0, 6.0)), tf.constant([0.5, 1.0, 1.5, 2.0], tf.float64)
    values, vectors = l.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    return [solved.x, solved.i, l.experimental.conjugate_gradient(operator, rhs, max_iter=2).x, l.banded_triangular_solve(bands, column),
            l.banded_triangular_solve(bands, column, lower=False), l.banded_triangular_solve(bands, column, adjoint=True), l.eigh_tridiagonal(alpha, beta), values,
            tf.abs(vectors), l.eigh_tridiagonal(alpha, beta, select="i", select_range=(1, 2)), l.eigh_tridiagonal(alpha, beta, select="v", select_range=(0.0, 4.0)),
            outcome(lambda: l.eigh_tridiagonal(alpha, beta, select="x"))]


@both(v2=True)
def test_critical_section(tf, np):
    section, v = tf.CriticalSection(name="cs"), tf.Variable(0.0)

    def add():
        return v.assign_add(1.0).read_value()

    @tf.function
    def f():
        return section.execute(add), section.execute(lambda: [v + 1.0, v * 2.0])
    return [section.execute(lambda: tf.constant(3.0) + v), section.execute(add), f()[0], v.numpy()]


@both(v2=True)
def test_switches(tf, np):
    c, d = tf.config.experimental, tf.debugging
    found = [c.tensor_float_32_execution_enabled(), d.is_traceback_filtering_enabled(), d.get_log_device_placement()]
    c.enable_tensor_float_32_execution(False)
    d.disable_traceback_filtering()
    found += [c.tensor_float_32_execution_enabled(), d.is_traceback_filtering_enabled()]
    c.enable_tensor_float_32_execution(True)
    d.enable_traceback_filtering()
    tf.test.experimental.sync_devices()
    return found + [c.tensor_float_32_execution_enabled(), d.is_traceback_filtering_enabled(), outcome(lambda: c.reset_memory_stats("nothing"))]
