"""SavedModels of graphs, as 1.x writes them, loaded by programs of TensorFlow 2."""

import functools
import os
import tempfile

from both import both

both = functools.partial(both, v2=True)


def _written(tf, folder, build, tags=("serve",)):
    """Writes the model that `build` makes in a graph: it returns (inputs, outputs, initialization)."""
    v1, at = tf.compat.v1, os.path.join(folder, "model")
    builder = v1.saved_model.Builder(at)
    for i, tag in enumerate(tags):
        with tf.Graph().as_default(), v1.Session() as sess:
            inputs, outputs, init = build()
            sess.run([v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer()])
            signature = v1.saved_model.predict_signature_def(inputs, outputs)
            assets = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
            if i == 0:
                builder.add_meta_graph_and_variables(sess, [tag], {"serving_default": signature}, assets_collection=assets, main_op=init)
            else:
                builder.add_meta_graph([tag], {"serving_default": signature})
    builder.save()
    return at


def _line(tf):
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [None], name="x")
    w, b = v1.get_variable("w", initializer=3.0), v1.get_variable("b", initializer=1.0, trainable=False)
    local = v1.get_local_variable("local", initializer=10.0)
    return {"x": x}, {"y": tf.identity(x * w + b, name="y"), "z": x * local}, local.initializer


def _shown(values):
    return {key: value.numpy().tolist() for key, value in sorted(values.items())}


@both()
def test_variables_and_gradients(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        loaded = tf.saved_model.load(_written(tf, folder, lambda: _line(tf)))
        f, x = loaded.signatures["serving_default"], tf.constant([1.0, 2.0])
        known = [(v.name, v.trainable, float(v)) for v in loaded.variables[:2]]
        before = _shown(f(x=x))
        loaded.variables[0].assign(5.0)

        def gradient():
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(f(x=x)["y"])
            return tape.gradient(y, loaded.variables[0])
        return [known, before, _shown(f(x)), gradient(), tf.function(gradient)(), f.structured_input_signature[0],
                str(f.structured_input_signature[1]), [x.name for x in f.inputs[:1]], loaded.prune("x:0", "y:0")(x),
                str(f.structured_outputs["y"].shape)]


@both()
def test_written_again(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        loaded = tf.saved_model.load(_written(tf, folder, lambda: _line(tf)))
        again = os.path.join(folder, "again")
        tf.saved_model.save(loaded, again, loaded.signatures)
        twice = tf.saved_model.load(again)
        return _shown(twice.signatures["serving_default"](x=tf.constant([1.0, 2.0])))


@both()
def test_variables_of_references(tf, np):
    def build():
        v1 = tf.compat.v1
        x = v1.placeholder(tf.float32, [], name="x")
        return {"x": x}, {"y": x * v1.get_variable("w", initializer=4.0, use_resource=False)}, None
    with tempfile.TemporaryDirectory() as folder:
        loaded = tf.saved_model.load(_written(tf, folder, build))
        return _shown(loaded.signatures["serving_default"](x=tf.constant(2.0)))


@both()
def test_tables_and_their_files(tf, np):
    """Two loads have tables of their own, and the file is the one in the model."""
    def build(words):
        path = os.path.join(folder, "words.txt")
        with open(path, "w") as file:
            file.write("\n".join(words) + "\n")
        index = tf.lookup.TextFileIndex
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER), -1)
        word = tf.compat.v1.placeholder(tf.string, [None], name="word")
        return {"word": word}, {"number": table.lookup(word)}, tf.compat.v1.tables_initializer()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        models = []
        for words in (["a", "b", "c"], ["c", "b", "d"]):
            inner = tempfile.mkdtemp(dir=folder)
            models.append(tf.saved_model.load(_written(tf, inner, lambda words=words: build(words))))
            os.remove(os.path.join(folder, "words.txt"))
        for model in models:
            found.append(_shown(model.signatures["serving_default"](word=tf.constant(["c", "a", "x"]))))
    return found


@both()
def test_loops(tf, np):
    def build():
        v1 = tf.compat.v1
        n = v1.placeholder(tf.int32, [], name="n")
        v1.disable_control_flow_v2()
        return {"n": n}, {"sum": tf.while_loop(lambda i, s: i <= n, lambda i, s: (i + 1, s + i), [0, 0])[1]}, None
    with tempfile.TemporaryDirectory() as folder:
        f = tf.saved_model.load(_written(tf, folder, build)).signatures["serving_default"]
        return [_shown(f(tf.constant(4))), _shown(f(n=tf.constant(5)))]


@both()
def test_sparse_inputs_and_outputs(tf, np):
    def build():
        x = tf.compat.v1.sparse_placeholder(tf.float32, [2, 3])
        return {"x": x}, {"y": x * 2.0}, None
    with tempfile.TemporaryDirectory() as folder:
        f = tf.saved_model.load(_written(tf, folder, build)).signatures["serving_default"]
        x = tf.sparse.from_dense([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
        y = f(x_indices=x.indices, x_values=x.values, x_dense_shape=x.dense_shape)["y"]
        return [sorted(f.structured_input_signature[1]), tf.sparse.to_dense(y)]


@both(raises=True, message=True)
def test_several_graphs_need_tags(tf, np):
    def build():
        x = tf.compat.v1.placeholder(tf.float32, [], name="x")
        return {"x": x}, {"y": x + 1.0}, None
    with tempfile.TemporaryDirectory() as folder:
        at = _written(tf, folder, build, ("first", "second"))
        assert _shown(tf.saved_model.load(at, tags=["second"]).signatures["serving_default"](x=tf.constant(1.0))) == {"y": 2.0}
        tf.saved_model.load(at)


@both(raises=True)
def test_signatures_that_lack_an_input(tf, np):
    def build():
        x = tf.compat.v1.placeholder(tf.float32, [], name="x")
        return {}, {"y": x + 1.0}, None
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.load(_written(tf, folder, build))
