"""Feature columns: names, parsing specs and values; input_layer and linear_model; errors."""

from both import both


def started(tf):
    sess = tf.Session()
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return sess


def evaluated(tf, tensor):
    return started(tf).run(tensor)


def features(tf):
    return {
        "age": tf.constant([[22.0], [41.0], [67.0], [5.0]]),
        "size": tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
        "town": tf.constant([["Rome"], ["Oslo"], [""], ["Paris"]]),
        "words": tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0], [3, 1]], ["a", "b", "a", "zz", "c"], [4, 2]),
        "number": tf.constant([3, 0, 1, -1], tf.int64),
        "weight": tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0], [3, 1]], [0.5, 2.0, 3.0, 1.0, 0.25], [4, 2]),
    }


def columns(tf):
    fc = tf.feature_column
    age = fc.numeric_column("age", normalizer_fn=lambda x: x / 10.0)
    words = fc.categorical_column_with_vocabulary_list("words", ["a", "b", "c"], num_oov_buckets=2)
    town = fc.categorical_column_with_hash_bucket("town", 7)
    buckets = fc.bucketized_column(fc.numeric_column("age"), [18, 40, 65])
    number = fc.categorical_column_with_identity("number", 5, default_value=4)
    return {
        "age": age, "size": fc.numeric_column("size", shape=2), "buckets": buckets, "words": words, "town": town, "number": number,
        "crossed": fc.crossed_column([buckets, "town"], 11), "weighted": fc.weighted_categorical_column(words, "weight"),
    }


def dense(tf, column):
    sess_features = features(tf)
    layer = tf.feature_column.input_layer(sess_features, [column])
    return [layer.shape.as_list()[1:], started(tf).run(layer)]  # stock knows more of sizes that come of constants


@both
def test_numeric(tf, np):
    return dense(tf, columns(tf)["age"]) + dense(tf, columns(tf)["size"])


@both
def test_buckets(tf, np):
    return dense(tf, columns(tf)["buckets"]) + dense(tf, tf.feature_column.bucketized_column(tf.feature_column.numeric_column("size", shape=(2,)), [2.0, 5.0]))


@both
def test_indicators(tf, np):
    return [dense(tf, tf.feature_column.indicator_column(columns(tf)[name])) for name in ("words", "town", "number", "crossed", "weighted", "buckets")]


@both
def test_crosses(tf, np):
    fc, c = tf.feature_column, columns(tf)
    deeper = fc.crossed_column([fc.crossed_column(["town", c["words"]], 5), c["number"]], 13, hash_key=99)
    return [deeper.name] + dense(tf, fc.indicator_column(deeper)) + [
        started(tf).run(tf.sparse.to_dense(tf.sparse.cross([features(tf)["town"], features(tf)["words"]]), default_value="")),
        started(tf).run(tf.sparse.cross_hashed([features(tf)["number"][:, tf.newaxis], features(tf)["words"]], 100).values)]


@both
def test_embeddings(tf, np):
    fc, c = tf.feature_column, columns(tf)
    results = []
    for name in "words", "town", "weighted", "crossed":
        for combiner in "mean", "sum", "sqrtn":
            start = tf.random_normal_initializer(seed=3)
            results.append(dense(tf, fc.embedding_column(c[name], 3, combiner, initializer=start, max_norm=1.5 if combiner == "sum" else None)))
    return results + [[v.name, v.shape.as_list()] for v in tf.global_variables()]


@both
def test_first_values_by_the_graphs_seed(tf, np):
    tf.set_random_seed(5)
    layer = tf.feature_column.input_layer(features(tf), [tf.feature_column.embedding_column(columns(tf)["town"], 4)])
    return started(tf).run(layer)


@both
def test_shared_embeddings(tf, np):
    fc = tf.feature_column
    given = {"a": tf.constant([[0], [1]]), "b": tf.constant([[1], [2]])}
    pair = [fc.categorical_column_with_identity(key, 3) for key in "ba"]
    shared = fc.shared_embedding_columns(pair, 2, initializer=tf.constant_initializer([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    layer = fc.input_layer(given, shared)
    return [c.name for c in shared] + [[v.name for v in tf.global_variables()], started(tf).run(layer)]


@both
def test_input_layer_of_all(tf, np):
    fc, c = tf.feature_column, columns(tf)
    made, parts = {}, {}
    chosen = [c["size"], c["age"], fc.indicator_column(c["words"]), c["buckets"],
              fc.embedding_column(c["town"], 2, initializer=tf.random_uniform_initializer(seed=1))]
    layer = fc.input_layer(features(tf), chosen, cols_to_vars=made, cols_to_output_tensors=parts, weight_collections=["mine"])
    again = fc.input_layer(features(tf), chosen, trainable=False)
    sess = started(tf)
    return [sess.run(layer), again.shape.as_list(), [[v.name for v in made[column]] for column in chosen],
            [parts[column].shape.as_list() for column in chosen], sorted(v.name for v in tf.trainable_variables()),
            [v.name for v in tf.get_collection("mine")], [v.name for v in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)]]


@both(rtol=2e-5)
def test_linear_model_learns(tf, np):
    fc, c = tf.feature_column, columns(tf)
    made = {}
    chosen = [c["age"], c["words"], c["town"], c["crossed"], c["weighted"], c["buckets"], fc.embedding_column(
        c["number"], 2, initializer=tf.random_uniform_initializer(seed=1))]
    sums = fc.linear_model(features(tf), chosen, units=2, sparse_combiner="mean", cols_to_vars=made)
    loss = tf.reduce_mean(tf.square(sums - [[1.0, -1.0], [2.0, 0.5], [0.0, 0.0], [3.0, 1.0]]))
    train = tf.train.GradientDescentOptimizer(0.02).minimize(loss)
    sess = started(tf)
    losses = [sess.run([loss, train])[0] for _ in range(50)]
    return [losses, sess.run(sums), sorted((v.name, v.shape.as_list()) for v in tf.global_variables()),
            [v.name for v in made["bias"]], [[v.name for v in made[column]] for column in chosen]]


@both
def test_vocabulary_files(tf, np):
    import os
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(path, "w") as stream:
        stream.write("c\nb\nzz\na\n")
    fc = tf.feature_column
    results = []
    for more in {}, {"vocabulary_size": 2}, {"num_oov_buckets": 3, "vocabulary_size": 3}, {"default_value": 1, "vocabulary_size": 2}:
        column = fc.categorical_column_with_vocabulary_file("words", path, **more)
        results.append(dense(tf, fc.indicator_column(column)))
    numbers = fc.categorical_column_with_vocabulary_list("number", [1, 3, 7], default_value=0)
    return [*results, dense(tf, fc.indicator_column(numbers)), dense(tf, fc.indicator_column(fc.categorical_column_with_hash_bucket("number", 6, tf.int64)))]


@both
def test_examples_are_parsed_for_columns(tf, np):
    fc, c = tf.feature_column, columns(tf)
    wanted = [fc.numeric_column("age", default_value=7.0), fc.embedding_column(c["words"], 2), c["weighted"], c["crossed"], c["number"]]
    wanted[3] = fc.crossed_column(["town", c["number"]], 5)
    spec = fc.make_parse_example_spec(wanted)
    example = tf.train.Example()
    example.features.feature["words"].bytes_list.value.extend([b"b", b"c"])
    example.features.feature["weight"].float_list.value.extend([2.0, 3.0])
    example.features.feature["number"].int64_list.value.append(2)
    example.features.feature["town"].bytes_list.value.append(b"Oslo")
    parsed = tf.parse_example([example.SerializeToString()], spec)
    layer = fc.input_layer(parsed, [fc.numeric_column("age"), fc.indicator_column(c["weighted"])])
    return [{key: repr(spec[key]) for key in sorted(spec)}, started(tf).run(layer)]


@both
def test_names_and_texts(tf, np):
    c = columns(tf)
    fc = tf.feature_column
    return [c[name].name for name in sorted(c)] + [repr(c["town"]), repr(fc.numeric_column("x", (2,), default_value=3)), repr(c["buckets"]),
                                                 fc.embedding_column(c["town"], 2).name, fc.indicator_column(c["weighted"]).name]


def refused(name, make):
    def program(tf, np):
        make(tf, tf.feature_column, columns(tf))

    program.__name__ = "test_refused_" + name
    program.__code__ = program.__code__.replace(co_filename=__file__)
    return both(program, raises=True)


REFUSED = {
    "dense_of_ids": lambda tf, fc, c: fc.input_layer(features(tf), [c["words"]]),
    "no_columns": lambda tf, fc, c: fc.input_layer(features(tf), []),
    "twice": lambda tf, fc, c: fc.input_layer(features(tf), [c["age"], fc.numeric_column("age")]),
    "no_column": lambda tf, fc, c: fc.input_layer(features(tf), ["age"]),
    "missing_feature": lambda tf, fc, c: fc.input_layer({}, [c["age"]]),
    "sparse_numbers": lambda tf, fc, c: fc.input_layer(features(tf), [fc.numeric_column("weight")]),
    "unsorted": lambda tf, fc, c: fc.bucketized_column(c["age"], [3, 1]),
    "buckets_of_ids": lambda tf, fc, c: fc.bucketized_column(c["town"], [3]),
    "key": lambda tf, fc, c: fc.numeric_column(3),
    "shape": lambda tf, fc, c: fc.numeric_column("x", shape=(0,)),
    "default": lambda tf, fc, c: fc.numeric_column("x", shape=(2,), default_value=[1.0]),
    "default_type": lambda tf, fc, c: fc.numeric_column("x", dtype=tf.int32, default_value=1.5),
    "type": lambda tf, fc, c: fc.numeric_column("x", dtype=tf.string),
    "hash": lambda tf, fc, c: fc.categorical_column_with_hash_bucket("x", 0),
    "list": lambda tf, fc, c: fc.categorical_column_with_vocabulary_list("x", []),
    "double": lambda tf, fc, c: fc.categorical_column_with_vocabulary_list("x", ["a", "a"]),
    "oov_and_default": lambda tf, fc, c: fc.categorical_column_with_vocabulary_list("x", ["a"], default_value=0, num_oov_buckets=1),
    "file": lambda tf, fc, c: fc.categorical_column_with_vocabulary_file("x", "/nowhere/at/all"),
    "identity": lambda tf, fc, c: fc.categorical_column_with_identity("x", 3, default_value=3),
    "dimension": lambda tf, fc, c: fc.embedding_column(c["town"], 0),
    "initializer": lambda tf, fc, c: fc.embedding_column(c["town"], 2, initializer="zeros"),
    "cross_of_one": lambda tf, fc, c: fc.crossed_column(["a"], 3),
    "cross_of_hashes": lambda tf, fc, c: fc.crossed_column([c["town"], "a"], 3),
    "cross_of_numbers": lambda tf, fc, c: fc.crossed_column([c["age"], "a"], 3),
    "cross_of_weighted": lambda tf, fc, c: fc.linear_model(features(tf), [fc.crossed_column([c["weighted"], "town"], 3)]),
    "indicator": lambda tf, fc, c: fc.indicator_column(c["age"]),
    "outside": lambda tf, fc, c: evaluated(tf, fc.linear_model(features(tf), [fc.categorical_column_with_identity("number", 2)])),
    "text_for_integer": lambda tf, fc, c: fc.linear_model(features(tf), [fc.categorical_column_with_hash_bucket("number", 3)]),
    "float_ids": lambda tf, fc, c: fc.linear_model(features(tf), [fc.categorical_column_with_identity("age", 3)]),
    "scalar": lambda tf, fc, c: fc.input_layer({"age": tf.constant(1.0)}, [c["age"]]),
    "batches": lambda tf, fc, c: fc.input_layer(dict(features(tf), size=tf.ones([3, 2])), [c["age"], c["size"]]),
    "shared_sizes": lambda tf, fc, c: fc.shared_embedding_columns([fc.categorical_column_with_identity("a", 3), fc.categorical_column_with_identity("b", 4)], 2),
    "specs": lambda tf, fc, c: fc.make_parse_example_spec([fc.numeric_column("x"), fc.categorical_column_with_identity("x", 2)]),
}
for _name, _make in REFUSED.items():
    globals()["test_refused_" + _name] = refused(_name, _make)
