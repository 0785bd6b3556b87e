"""Functions that TensorFlow 2 has otherwise than 1.x, or that only 2.x has, as in stock."""

from both import both


def values(np, *shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape) / 7 - 1


@both(v2=True)
def test_activations(tf, np):
    x = values(np, 3, 4)
    with tf.GradientTape() as tape:
        y = tf.Variable(x)
        z = tf.nn.gelu(y) + tf.nn.gelu(y, approximate=True)
    return tf.nn.gelu(x), tf.nn.gelu(x, approximate=True), tape.gradient(z, y)


@both(v2=True)
def test_convolutions(tf, np):
    x, w = values(np, 2, 6, 6, 2), values(np, 3, 3, 2, 3)
    return [tf.nn.convolution(x, w), tf.nn.convolution(x, w, 2, "SAME"), tf.nn.convolution(x, w, dilations=2), tf.nn.convolution(x[0], w[0], 1, "VALID", "NWC", 1),
            tf.nn.pool(x, [2, 2], "MAX", [2, 2]), tf.nn.pool(x, [2, 2], "AVG", padding="SAME"),
            tf.nn.embedding_lookup(values(np, 4, 2), [3, 0]), tf.nn.sigmoid_cross_entropy_with_logits([1.0], [0.5])]


@both(v2=True)
def test_ctc(tf, np):
    logits = np.sin(values(np, 2, 7, 5) * 9)
    labels, lengths = np.array([[1, 2, 2, 0], [4, 1, 0, 0]], "int32"), np.array([3, 2], "int32")
    steps = np.array([7, 6], "int32")
    found = [tf.nn.ctc_loss(labels, logits, lengths, steps, logits_time_major=False, blank_index=0)]
    found.append(tf.nn.ctc_loss(labels, logits.transpose(1, 0, 2), lengths, steps, blank_index=-2))
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 2], [2, 2])
    found.append(tf.nn.ctc_loss(sparse, logits, None, steps, logits_time_major=False, blank_index=0))
    with_blanks = np.array([[1, 2, 1, 0], [1, 0, 2, 2]], "int32")  # the blank may be a label, as Keras' CTC makes it
    found += [tf.nn.ctc_loss(with_blanks, logits, np.array(n, "int32"), steps, logits_time_major=False, blank_index=0) for n in ([4, 4], [3, 2])]
    scores = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = tf.nn.ctc_loss(labels, scores, lengths, steps, logits_time_major=False, blank_index=3)
    return found, tape.gradient(loss, scores)


@both(v2=True)
def test_random(tf, np):
    seed = [3, 5]
    return [tf.nn.experimental.stateless_dropout(tf.ones([3, 5]), 0.4, seed), tf.nn.experimental.stateless_dropout(tf.ones([3, 5]), 0.4, seed, noise_shape=[3, 1]),
            tf.random.stateless_gamma([4, 2], seed, [0.5, 3.0], 2.0), tf.random.stateless_binomial([6], seed, 10.0, 0.3)]


@both(v2=True, raises=True)
def test_bad_dropout(tf, np):
    tf.nn.experimental.stateless_dropout(tf.ones([3]), 1.5, [1, 2])


@both(v2=True)
def test_sparse(tf, np):
    x = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [3, 1, 3], [2, 3])
    y = tf.sparse.map_values(tf.multiply, x, 2)
    counts = tf.sparse.bincount(x, axis=-1)
    return [y.values, tf.sparse.to_dense(tf.sparse.reduce_max(x, 1, output_is_sparse=True)), tf.sparse.reduce_sum(x, 0), tf.sparse.reduce_max(x, 0, True), counts.indices, counts.values,
            counts.dense_shape, tf.sparse.to_dense(tf.sparse.bincount([1, 2, 2], minlength=5)), tf.sparse.to_dense(tf.sparse.bincount([[1, 2, 2], [0, 0, 0]], axis=-1)),
            tf.sparse.to_dense(tf.sparse.add(x, x)), tf.math.bincount([1, 2, 2]), tf.math.bincount([[1, 2, 2], [0, 0, 3]], axis=-1), tf.math.bincount([[1, 2], [0, 3]], axis=0),
            tf.math.bincount([[1, 1]], axis=-1, binary_output=True, minlength=4), tf.math.bincount(x, axis=-1), tf.math.bincount(tf.ragged.constant([[1], [2, 2]]), axis=-1),
            tf.math.bincount([1, 2, 2], weights=[0.5, 1.0, 2.0]), tf.math.bincount([[1, 2]], weights=[[0.5, 1.0]], axis=-1, maxlength=2)]


@both(v2=True, raises=True)
def test_nothing_sparse(tf, np):
    tf.sparse.map_values(tf.add, 1, 2)


@both(v2=True)
def test_resize(tf, np):
    x = values(np, 1, 5, 6, 2)
    found = [tf.image.resize(x, [7, 3], method) for method in "bilinear nearest bicubic area lanczos3 lanczos5 gaussian mitchellcubic".split()]
    found += [tf.image.resize(x, [3, 4], method, antialias=True) for method in "bilinear bicubic lanczos3 gaussian".split()]
    found += [tf.image.resize(x[0], [4, 9], preserve_aspect_ratio=True), tf.image.resize(x, [5, 6]), tf.image.resize_with_pad(x, 8, 4), tf.image.resize_with_pad(x[0], 3, 9, "nearest", True)]
    return found, tf.image.ResizeMethod.LANCZOS3


@both(v2=True, raises=True)
def test_no_such_method(tf, np):
    tf.image.resize(np.zeros([1, 2, 2, 1]), [3, 3], "nothing")


@both(v2=True)
def test_linear_algebra(tf, np):
    x = np.array([[2.0, 1.0], [0.0, 3.0]], "float32")
    e, v = tf.linalg.eig(x)
    return [e, tf.abs(v), tf.linalg.eigvals(x), tf.signal.kaiser_window(7), tf.signal.kaiser_window(6, 4.0, tf.float64), tf.einsum("ij,jk->ik", x, x, optimize="greedy"),
            tf.experimental.numpy.finfo(tf.float32).eps, tf.experimental.numpy.select([x > 2, x > 0], [x, -x], 9)]


@both(v2=True)
def test_forward(tf, np):
    x, v = tf.constant([[1.0, 2.0], [3.0, 0.5]]), tf.constant([[0.1, -0.2], [0.3, 1.0]])
    with tf.autodiff.ForwardAccumulator(x, v) as acc:
        y = tf.matmul(x, tf.sin(x))
        z = tf.constant(1.0)
    w = tf.Variable(2.0)
    with tf.autodiff.ForwardAccumulator(w, tf.constant(1.5)) as second:
        u = w * w * w
    return acc.jvp(y), acc.jvp(x), acc.jvp(z), acc.jvp({"a": y, "b": z}, unconnected_gradients="zero"), second.jvp(u)


@both(v2=True)
def test_rows(tf, np):
    x = values(np, 4, 3)
    many = values(np, 20, 2)
    inside = tf.function(lambda t: tf.vectorized_map(lambda row: {"s": tf.reduce_sum(row), "t": tf.cast(row > 0, tf.int32)}, t))
    return [tf.vectorized_map(lambda row: row * 2 + tf.reduce_max(row), x), tf.vectorized_map(lambda ab: ab[0] + ab[1], (x, x[:1])), inside(many), inside(x), tf.inside_function()]


@both(v2=True)
def test_values_in_lists(tf, np):
    rows = tf.experimental.RowPartition.from_value_rowids(tf.constant([0, 0, 2], tf.int64), nrows=4)
    return [tf.convert_to_tensor((tf.constant(3), 4), tf.int64), tf.convert_to_tensor([tf.constant(3), 1.5], tf.float32), rows.row_splits(), rows.row_lengths(), rows.nrows(),
            tf.experimental.RowPartition.from_row_lengths([1, 2]).value_rowids(), tf.ones([2, 3]).ndim]


@both(v2=True)
def test_summaries(tf, np):
    import glob
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder)
        with writer.as_default(step=3):
            tf.summary.scalar("a/b", 1.5, description="text")
            tf.summary.histogram("h", [1.0, 2.0, 2.0, 7.0], step=4, buckets=3)
            tf.summary.histogram("one", [2.0, 2.0], buckets=2)
            tf.summary.image("i", np.ones([4, 2, 3, 1], "float32") / 2, max_outputs=2)
            tf.summary.text("t", ["x", "y"])
            with tf.summary.record_if(False):
                tf.summary.scalar("not", 1.0)
            inside = tf.function(lambda x: tf.summary.scalar("f", x, step=9))
            answer = inside(tf.constant(2.0))
            tf.summary.experimental.set_step(5)
            answers = [tf.summary.write("w", [1, 2]), tf.summary.should_record_summaries(), tf.summary.experimental.get_step()]
        writer.close()
        found = []
        for event in tf.compat.v1.train.summary_iterator(glob.glob(folder + "/*.v2")[0]):
            for value in event.summary.value:
                metadata = value.metadata
                tensor = tf.make_ndarray(value.tensor)
                found.append([event.step, value.tag, metadata.plugin_data.plugin_name, metadata.summary_description, metadata.data_class,
                              tensor.tolist()[:2] if tensor.dtype == object else tensor])
    return found, [bool(a) for a in [answer, *answers[:2]]], tf.summary.should_record_summaries()


@both(v2=True, raises=True, message=True)
def test_summary_without_a_step(tf, np):
    import tempfile
    tf.summary.experimental.set_step(None)
    with tempfile.TemporaryDirectory() as folder, tf.summary.create_file_writer(folder).as_default():
        tf.summary.scalar("a", 1.0)


def test_names_that_two_threads_looked_up():
    """Such a name is known twice; modules that teach functions more make all names be looked up again."""
    import os
    import subprocess
    import sys
    program = ("import runnel.v2 as tf\nfrom runnel.compat.v2 import places\nbefore = tf.sin\nplaces._found.append(places._found[-1])\n"
               "places.forget_found()\nassert not places._found and tf.sin is not None\n")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
