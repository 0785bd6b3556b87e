"""Export outputs, warm starts, Defun, tables from numbers to words, and small conversions."""

import pytest

from both import both


def _paths(tf):
    """saved_model.model_utils and framework.function, of either."""
    if tf.__name__ == "runnel":
        from runnel.eager import defun
        from runnel.saved_model import export_outputs
        return export_outputs, export_outputs, export_outputs, defun
    from tensorflow.python.framework import function
    from tensorflow.python.saved_model.model_utils import export_output, export_utils, mode_keys
    return export_output, export_utils, mode_keys, function


@both
def test_signatures(tf, np):
    output, utils, _, _ = _paths(tf)
    x = tf.placeholder(tf.string, [None], name="x")
    numbers = tf.placeholder(tf.float32, [None, 2], name="numbers")
    lengths = tf.cast(tf.strings.length(x), tf.float32, name="lengths")
    outputs = {"p": output.PredictOutput({"a": lengths, ("b", "c"): tf.identity(lengths, name="again")}),
               "serving_default": output.ClassificationOutput(scores=lengths, classes=tf.identity(x, name="classes")),
               "r": output.RegressionOutput(lengths), "apart": output.PredictOutput(tf.identity(numbers, name="y"))}
    found = utils.build_all_signature_defs({"x": x}, outputs, {"other": numbers})
    return {key: (signature.method_name, sorted(signature.inputs), sorted(signature.outputs)) for key, signature in sorted(found.items())}


@both
def test_supervised(tf, np):
    output, utils, modes, _ = _paths(tf)
    x, y = tf.placeholder(tf.float32, [3], name="x"), tf.constant(1.0, name="y")
    metric = (tf.identity(y, name="value"), tf.no_op(name="update"))
    found = []
    for mode in ("train", "eval", "test"):
        made = utils.export_outputs_for_mode(mode, predictions={"p": x}, loss=y, metrics={"m": metric})
        for key, one in made.items():
            signature = one.as_signature_def({"x": x})
            found.append((key, signature.method_name, sorted((k, v.name.split("_")[0]) for k, v in signature.outputs.items())))
    return found, dict(utils.EXPORT_TAG_MAP), dict(utils.SIGNATURE_KEY_MAP), utils.EXPORT_TAG_MAP["infer"], modes.is_eval("test")


@both
def test_refusals(tf, np):
    output, utils, modes, _ = _paths(tf)
    x = tf.constant("a", name="x")
    found = []
    for call in (lambda: output.RegressionOutput(x), lambda: output.ClassificationOutput(), lambda: output.PredictOutput({1: x}),
                 lambda: utils.get_export_outputs([], None), lambda: utils.get_export_outputs({"a": 1}, None),
                 lambda: utils.get_export_outputs({"a": output.PredictOutput(x), "b": output.PredictOutput(x)}, None),
                 lambda: modes.ModeKeyMap(train=1, nothing=2), lambda: modes.ModeKeyMap(test=1, eval=2)):
        try:
            found.append(str(call()))
        except (TypeError, ValueError) as error:
            found.append((type(error).__name__, str(error)))
    return found


@both(rtol=1e-4)
def test_defun(tf, np):
    _, _, _, function = _paths(tf)

    @function.Defun(python_grad_func=lambda op, dy: 3.0 * tf.convert_to_tensor(dy), shape_func=lambda op: [op.inputs[0].get_shape()])
    def same(x):
        return x

    @function.Defun(tf.float32, tf.float32)
    def two(a, b):
        return a * b, a + b

    @function.Defun()
    def back(x, dy):
        return 10.0 * tf.gradients([tf.sin(x)], [x], [dy])[0]

    @function.Defun(grad_func=back)
    def forth(x):
        return tf.sin(x)

    x = tf.placeholder(tf.float32, [2])
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())

    @function.Defun(tf.float32)
    def captures(a):
        return a * w

    y, (p, q), z, c = same(x), two(x, w), forth(x), captures(x)
    fetches = [y, p, q, z, c] + tf.gradients(y, x) + tf.gradients(p, [x, w]) + tf.gradients(z, x) + tf.gradients(c, [x, w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [y.shape.as_list()] + sess.run(fetches, {x: [1, 2]})


@both(raises=True)
def test_defun_arity(tf, np):
    _, _, _, function = _paths(tf)

    @function.Defun(tf.float32)
    def f(a, b):
        return a

    return f(1.0)


@both
def test_warm_start(tf, np):
    import os
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        for i, name in enumerate(("a", "s/b", "s/c")):
            tf.get_variable(name, initializer=float(i + 1))
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, path)
    results = []
    for choice, names in ((".*", None), ("s/", None), (["a"], None), (".*", {"x/b": "s/b"})):
        with tf.Graph().as_default(), tf.Session() as sess:
            variables = [tf.get_variable(name, initializer=0.0) for name in ("a", "x/b" if names else "s/b", "s/c")]
            tf.train.warm_start(path, choice, var_name_to_prev_var_name=names)
            sess.run(tf.global_variables_initializer())
            results.append(sess.run(variables))
    return results, tuple(tf.train.VocabInfo("a", 1, 0, "b"))


@both(raises=True, message=True)
def test_vocabulary_axis(tf, np):
    return tf.train.VocabInfo("a", 1, 0, "b", axis=2)


@both(graph=True)
def test_new_axes_of_scalars(tf, np):
    x = tf.constant(2.0)
    with tf.Session() as sess:
        return sess.run([x[None], x[..., None], x[tf.newaxis, ..., tf.newaxis]])


@both(raises=True)
def test_index_of_a_scalar(tf, np):
    return tf.constant(2.0)[0]


@both(graph=True)
def test_constants_of_truth(tf, np):
    with tf.Session() as sess:
        return sess.run([tf.constant([True, False], tf.float32), tf.constant(True, tf.int32), tf.constant([[True]], tf.complex64),
                         tf.constant(1.5, name=None)])


@both
def test_long_sequence_lengths(tf, np):
    cell = tf.nn.rnn_cell.BasicRNNCell(2, name="cell")
    x = tf.constant(np.arange(12, dtype=np.float32).reshape([2, 3, 2]) / 12)
    lengths = tf.constant([1, 3], tf.int64)
    with tf.variable_scope("s", initializer=tf.constant_initializer(0.25)):
        outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([outputs, state])


@both(graph=True)
def test_windows(tf, np):
    with tf.Session() as sess:
        return sess.run([tf.signal.hann_window(8), tf.signal.hann_window(7, periodic=False), tf.signal.hamming_window(6),
                         tf.signal.hann_window(1)])


@both
def test_default_strategy(tf, np):
    strategy = tf.distribute.get_strategy()
    x = tf.constant([1.0, 3.0])
    with tf.Session() as sess:
        return (tf.distribute.has_strategy(), strategy.num_replicas_in_sync, tf.distribute.get_replica_context().num_replicas_in_sync,
                sess.run(strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=0)), len(strategy.experimental_local_results(x)))


def test_words_of_numbers():
    import runnel as tf
    from runnel.ops import lookup_ops
    with tf.Graph().as_default(), tf.Session() as sess:
        table = lookup_ops.index_to_string_table_from_tensor(["a", "b"], default_value="?")
        sess.run(tf.tables_initializer())
        assert sess.run(table.lookup(tf.constant([1, 0, 7], tf.int64))).tolist() == [b"b", b"a", b"?"]


def test_lists_of_dimensions():
    import runnel as tf
    with tf.Graph().as_default():
        sizes = tf.placeholder(tf.float32, [2, 3]).shape
        assert tf.get_static_value(tf.convert_to_tensor([sizes[0], sizes[1]], tf.int64)).tolist() == [2, 3]
        with pytest.raises(TypeError):
            tf.convert_to_tensor([sizes[0]], tf.float32)


def test_definitions_of_ops():
    from runnel.core import op_def_registry
    assert op_def_registry.get("Add").name == "Add" and op_def_registry.get("NoSuchOp") is None
    assert "MatMul" in op_def_registry.get_registered_ops()
