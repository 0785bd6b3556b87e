"""tf.tpu.experimental.embedding on CPUs, against stock TensorFlow 2."""

import pytest

pytest.importorskip("numpy")
from both import both


def _start(tf):
    """Returns an initializer whose rows differ."""
    return lambda shape, dtype=None: tf.reshape(tf.range(shape[0] * shape[1], dtype=tf.float32), shape) / 10


def _lookup(tf, features, **table):
    e = tf.tpu.experimental.embedding
    config = e.TableConfig(10, 2, _start(tf), **table)
    return e, {name: e.FeatureConfig(config, **more) for name, more in features.items()}


@both(v2=True)
def test_lookups(tf, np):
    ragged, sparse = tf.ragged.constant([[1, 2, 3], [4], []]), tf.sparse.from_dense([[1, 2], [3, 0]])
    weights, sparse_weights = tf.ragged.constant([[1.0, 2.0, 0.5], [3.0], []]), tf.sparse.from_dense([[1.0, 0.5], [2.0, 0.0]])
    found = []
    for combiner in ("sum", "mean", "sqrtn"):
        e, features = _lookup(tf, {"a": {}, "b": {}, "c": {}}, combiner=combiner)
        model = e.TPUEmbeddingForServing(features, e.SGD(0.1))
        found.append(model({"a": ragged, "b": sparse, "c": tf.constant([[1, 2], [3, 4]])}))
        found.append(model({"a": ragged, "b": sparse, "c": ragged}, {"a": weights, "b": sparse_weights, "c": weights}))
    e, features = _lookup(tf, {"a": {"max_sequence_length": 2}, "b": {"max_sequence_length": 3}, "c": {"output_shape": [3, 1]}, "d": {"output_shape": [3, 2]}})
    model = e.TPUEmbeddingForServing(features, None)
    two = tf.ragged.constant([[1, 2], [4], [0]])
    found.append(model({"a": ragged, "b": sparse, "c": ragged, "d": two}))
    tables = model.embedding_tables
    found += [[variable.name for variable in tables.values()], e.serving_embedding_lookup([tf.constant([1])], None, tables, [features["c"]])]
    return [{name: part.numpy() for name, part in one.items()} if isinstance(one, dict) else one for one in found]


@both(v2=True)
def test_training(tf, np):
    e, features = _lookup(tf, {"a": {}}, combiner="sum")
    model = e.TPUEmbeddingForServing(features, e.Adagrad(0.1))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model({"a": tf.ragged.constant([[1, 1], [3]])})["a"] ** 2)
    variables = list(model.embedding_tables.values())
    gradient = tf.convert_to_tensor(tape.gradient(loss, variables)[0])
    checkpoint = tf.train.Checkpoint(embedding=model)
    names = sorted(name for name, _ in tf.train.list_variables(checkpoint.save("%s/e" % __import__("tempfile").mkdtemp())))
    return [loss, gradient, names, sorted(model._variables["table_0"]), model._variables["table_0"]["accumulators"]]


@both(v2=True)
def test_descriptions(tf, np):
    e = tf.tpu.experimental.embedding
    optimizers = [e.SGD, e.Adagrad, e.AdagradMomentum, e.Adam, e.FTRL]
    table = e.TableConfig(3, 4, combiner="sum", name="t", quantization_config=e.QuantizationConfig(4, -1.0, 1.0))
    found = [repr(table), repr(e.FeatureConfig(table, 2, name="f", output_shape=[1, 2])), e.RowIdInitializer(3)([2, 2], tf.int32)]
    for kind in optimizers:
        one = kind(0.5, clipvalue=2.0)
        found += [one == kind(0.5, clipvalue=2.0), hash(one) == hash(kind(0.5, clipvalue=2.0)), one == kind(0.25), one._slot_names(), one.clip_gradient_min,
                  one.clip_gradient_max, sorted(one.__dict__), [initializer([2], tf.float32) for initializer in one._slot_initializers()]]
    return found + [e.SparseCoreEmbeddingConfig().max_ids_per_chip_per_sample, tf.tpu.experimental.HardwareFeature.EmbeddingFeature.V2.value]


@both(v2=True)
def test_errors(tf, np):
    e = tf.tpu.experimental.embedding
    table, config = e.TableConfig(3, 4, name="t"), e.FeatureConfig
    ragged, serving = tf.ragged.constant([[1]]), e.TPUEmbeddingForServing
    calls = [lambda: e.TableConfig(0, 4), lambda: e.TableConfig(3, "a"), lambda: e.TableConfig(3, 4, 5), lambda: e.TableConfig(3, 4, combiner="x"),
             lambda: config(3), lambda: config(table, -1), lambda: config(table, 1, 3), lambda: e.QuantizationConfig(1, 0, 1), lambda: e.Adam(beta_1=2.0),
             lambda: e.Adam(epsilon=0.0), lambda: e.SGD(use_gradient_accumulation=False, clipvalue=1.0), lambda: e.Adagrad(initial_accumulator_value=0),
             lambda: e.FTRL(slot_variable_creation_fn=3), lambda: e.AdagradMomentum(exponent=0), lambda: e.CustomOptimizer(None, slot_names=["a"]),
             lambda: serving([config(table), config(e.TableConfig(3, 4, name="t"))], None), lambda: serving(config(table, 2), None)(tf.constant([1])),
             lambda: serving(config(table), None)(ragged, ragged.flat_values), lambda: serving(config(table), None)(tf.constant([1]), tf.constant([1.0])),
             lambda: serving(config(table, 2), None)(ragged, ragged), lambda: serving([config(table)], None)([tf.ragged.constant([[[1]]])])]
    found = []
    for call in calls:
        try:
            found.append(repr(call()))
        except (ValueError, RuntimeError) as error:
            text = str(error)
            found.append((type(error).__name__, text if "class" not in text else text[:20]))
    return found


@both(v2=True)
def test_replicas_of_the_default_strategy(tf, np):
    strategy = tf.distribute.get_strategy()
    with strategy.scope():
        inside = tf.distribute.has_strategy()
    return [inside, strategy.run(tf.distribute.has_strategy), tf.distribute.OneDeviceStrategy("cpu:0").run(tf.distribute.has_strategy)]
