"""Rarely used names of 1.x."""

from both import both


@both
def test_special_functions(tf, np):
    x = tf.constant(np.linspace(0.1, 2.5, 7))
    names = ("bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 "
             "dawsn expint fresnel_cos fresnel_sin spence").split()
    with tf.Session() as sess:
        return sess.run([getattr(tf.math.special, name)(x) for name in names] + [tf.math.bessel_i0(x), tf.math.sobol_sample(2, 4)])


@both
def test_metrics_of_ranks(tf, np):
    predictions = tf.constant([[0.1, 0.4, 0.2, 0.3], [0.6, 0.1, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
    labels = tf.constant([[1, 2], [1, 0], [0, 2]], tf.int64)
    best = tf.nn.top_k(predictions, 2).indices
    rows = [tf.metrics.average_precision_at_k(labels, predictions, 2), tf.metrics.average_precision_at_k(labels, predictions, 3, weights=[1.0, 0.5, 2.0]),
            tf.metrics.precision_at_top_k(labels, tf.cast(best, tf.int64), k=2), tf.metrics.recall_at_top_k(labels, tf.cast(best, tf.int64), k=2),
            tf.metrics.precision_at_k(labels, predictions, 2)]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        updates = sess.run([row[1] for row in rows])
        return updates, sess.run([row[0] for row in rows])


@both
def test_metrics_of_thresholds(tf, np):
    rng = np.random.RandomState(0)
    labels = tf.constant(rng.randint(2, size=30))
    predictions = tf.constant(np.clip(rng.rand(30) * 0.6 + 0.3 * rng.randint(2, size=30), 0, 1).astype("float32"))
    rows = [tf.metrics.sensitivity_at_specificity(labels, predictions, 0.7), tf.metrics.specificity_at_sensitivity(labels, predictions, 0.6, num_thresholds=50)]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        updates = sess.run([row[1] for row in rows])
        return updates, sess.run([row[0] for row in rows])


@both
def test_config(tf, np):
    devices = tf.config.list_physical_devices("CPU")
    rows = [[d.device_type for d in devices], len(tf.config.list_logical_devices("CPU")), devices == tf.config.get_visible_devices("CPU"), tf.config.list_physical_devices("FPGA")]
    before = tf.config.get_soft_device_placement()
    tf.config.optimizer.set_jit(False)
    return rows + [tf.config.threading.get_inter_op_parallelism_threads() >= 0, before, devices[0].name, tf.config.experimental.list_physical_devices("CPU") == devices]


@both
def test_module(tf, np):
    class Dense(tf.Module):
        def __init__(self, size, name=None):
            super().__init__(name=name)
            self.w = tf.Variable(np.ones((2, size), "float32"), name="w", use_resource=True)
            self.b = tf.Variable(np.zeros(size, "float32"), name="b", trainable=False, use_resource=True)

    class TwoLayers(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Dense(2, name="first"), Dense(3)]
            self.scale = tf.Variable(2.0, use_resource=True)
    model = TwoLayers()
    return [model.name, model.layers[1].name, sorted(v.shape.as_list() for v in model.variables), len(model.trainable_variables), len(model.submodules)]


@both
def test_padded_suppression(tf, np):
    boxes = tf.constant([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]], tf.float32)
    chosen, count = tf.image.non_max_suppression_padded(boxes, [0.9, 0.75, 0.6], 4, 0.5, pad_to_max_output_size=True)
    with tf.Session() as sess:
        return sess.run([chosen, count]), tf.control_flow_v2_enabled()


@both(raises=True)
def test_no_proper_iterable(tf, np):
    tf.debugging.assert_proper_iterable(tf.constant([1]))


def test_messages_from_text(tmp_path):
    import pytest
    import runnel as tf
    from runnel.core import text_format
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        tf.identity(tf.matmul(x, tf.get_variable("w", [3, 2])), name="y")
        tf.constant(["a\n\"'\u00e9", b"\x00\xff"], name="texts")
        tf.train.Saver()
        message = graph.as_graph_def()
        assert text_format.Parse(str(message), tf.GraphDef()) == message
        path = str(tmp_path / "graph.meta")
        tf.train.export_meta_graph(filename=path, as_text=True)
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(path)
        assert graph.get_tensor_by_name("y:0").shape.as_list() == [None, 2]
        assert [v.name for v in tf.global_variables()] == ["w:0"]
    for text, wrong in (("node { name: 'x' wrong: 3 }", "no field named"), ("node {\n name: ", "^2: "), ("node { name: 3 }", "A text"),
                        ("node < name: 'a' }", "name of a field"), ("versions { producer: 1.5 }", "no value"), ("@", "character"), ("node", "A message")):
        with pytest.raises(text_format.ParseError, match=wrong):
            text_format.Parse(text, tf.GraphDef())
    bad = tmp_path / "bad.meta"
    bad.write_bytes(b"\xff\xfe nothing of the kind")
    with pytest.raises(OSError, match="Cannot parse"):
        tf.train.import_meta_graph(str(bad))
