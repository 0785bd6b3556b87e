"""Ragged tensors: creation, properties, functions and operators, and strings."""

from both import both

ROWS = [[3, 1, 4], [], [1, 5], [9], [2, 6, 5, 3]]
DEEP = [[[1, 2], [3]], [], [[4, 5, 6], [], [7]]]


def listed(value):
    """What a step gave, ragged values as lists."""
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    if hasattr(value, "nested_row_splits"):
        return [listed_rows(value.to_list()), str(value.dtype), str(value.row_splits.dtype)]
    return [listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def listed_rows(rows):
    return [listed_rows(row) for row in rows] if isinstance(rows, list) else rows


def values(tf, fetches, feed=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return listed(sess.run(fetches, feed))


@both
def test_constants(tf, np):
    made = [tf.ragged.constant(ROWS), tf.ragged.constant(DEEP), tf.ragged.constant([["a", "b"], ["c"]]), tf.ragged.constant(ROWS, tf.float64),
            tf.ragged.constant(DEEP, row_splits_dtype=tf.int32), tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1),
            tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)), tf.ragged.constant([[], []])]
    return [values(tf, made), [r.shape.as_list() for r in made], [r.ragged_rank for r in made], values(tf, tf.ragged.constant([1, 2]))]


@both
def test_from(tf, np):
    R = tf.RaggedTensor
    flat = [3, 1, 4, 1, 5, 9]
    made = [R.from_row_splits(flat, [0, 2, 2, 6]), R.from_row_lengths(flat, [2, 0, 4]), R.from_row_starts(flat, [0, 2, 2]), R.from_row_limits(flat, [2, 2, 6]),
            R.from_value_rowids(flat, [0, 0, 2, 2, 2, 2]), R.from_value_rowids(flat, [0, 0, 2, 2, 2, 2], nrows=5),
            R.from_nested_row_splits(flat, [[0, 2, 3], [0, 1, 4, 6]]), R.from_nested_row_lengths(flat, [[2, 1], [1, 3, 2]])]
    return values(tf, made)


@both
def test_from_tensors(tf, np):
    R, t = tf.RaggedTensor, tf.constant([[5, 7, 0], [0, 3, 0], [6, 0, 0]])
    made = [R.from_tensor(t), R.from_tensor(t, lengths=[1, 0, 3]), R.from_tensor(t, padding=0), R.from_tensor(tf.reshape(tf.range(12), [2, 3, 2]), ragged_rank=2),
            R.from_tensor(tf.reshape(tf.range(12), [2, 3, 2]), lengths=[2, 1]),
            R.from_sparse(tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1.0, 2.0, 3.0], [4, 3]))]
    return values(tf, made)


@both
def test_parts(tf, np):
    a, b = tf.ragged.constant(ROWS), tf.ragged.constant(DEEP)
    return values(tf, [a.values, a.row_splits, a.flat_values, a.value_rowids(), a.nrows(), a.row_starts(), a.row_limits(), a.row_lengths(), a.bounding_shape(),
                       b.flat_values, list(b.nested_row_splits), list(b.nested_row_lengths()), b.row_lengths(axis=2), b.bounding_shape(),
                       list(b.nested_value_rowids()), b.values, b.bounding_shape(axis=1), b.merge_dims(0, 1), b.merge_dims(1, 2), b.merge_dims(0, 2)])


@both
def test_to_tensors(tf, np):
    a, b = tf.ragged.constant(ROWS), tf.ragged.constant(DEEP)
    made = [a.to_tensor(), a.to_tensor(default_value=-1), a.to_tensor(shape=[None, 2]), a.to_tensor(shape=[6, 5]), b.to_tensor(),
            tf.ragged.constant([["a"], ["b", "c"]]).to_tensor(), tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).to_tensor()]
    sparse = [a.to_sparse(), b.to_sparse(), tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).to_sparse()]
    return [values(tf, made), [t.shape.as_list() for t in made[:3]], values(tf, [[s.indices, s.values, s.dense_shape] for s in sparse])]


@both
def test_with_values(tf, np):
    a, b = tf.ragged.constant(ROWS), tf.ragged.constant(DEEP)
    return values(tf, [a.with_values(tf.range(10.0)), b.with_flat_values(tf.range(7) * 2), a.with_row_splits_dtype(tf.int32),
                       tf.ragged.map_flat_values(tf.ones_like, b), tf.ragged.map_flat_values(tf.add, a, a), tf.ragged.map_flat_values(tf.multiply, a, 3),
                       tf.ragged.map_flat_values(lambda x: tf.stack([x, x], 1), a)])


@both
def test_operators(tf, np):
    a, f = tf.ragged.constant(ROWS), tf.ragged.constant([[1.5, 2.5], [], [4.0]])
    return values(tf, [a + 1, 1 - a, a * a, a // 2, a % 3, -a, abs(-a), a > 2, a <= 3, f / 2.0, 2.0 / f, f ** 2.0, f + tf.constant([[10.0], [20.0], [30.0]]),
                       f - tf.constant(1.0), ~(a > 2), (a > 2) & (a < 5), (a > 4) | (a < 2)])


@both
def test_functions(tf, np):
    f, a = tf.ragged.constant([[1.5, -2.5], [], [4.0]]), tf.ragged.constant(ROWS)
    return values(tf, [tf.square(f), tf.exp(f), tf.nn.relu(f), tf.sigmoid(f), tf.cast(f, tf.int32), tf.abs(f), tf.sign(f), tf.math.floor(f), tf.maximum(f, 0.0),
                       tf.add(a, a), tf.equal(a, 1), tf.clip_by_value(f, -1.0, 2.0), tf.zeros_like(a), tf.ones_like(a), tf.identity(a), tf.as_string(a),
                       tf.size(a), tf.rank(a), tf.squared_difference(f, 1.0), tf.logical_not(tf.greater(a, 2))])


@both
def test_reductions(tf, np):
    a, f, d = tf.ragged.constant(ROWS), tf.ragged.constant([[1.5, -2.5], [4.0]]), tf.ragged.constant([[[1, 2], [3]], [[4, 5, 6], [], [7]]])
    results = []
    for function in tf.reduce_sum, tf.reduce_prod, tf.reduce_max, tf.reduce_min:
        results += [function(a, axis=0), function(a, axis=1), function(a), function(d, axis=2), function(d, axis=1), function(d, axis=0), function(d, axis=-1),
                    function(a, axis=1, keepdims=True), function(d, axis=[1, 2])]
    results += [tf.reduce_mean(f, axis=1), tf.reduce_mean(f, axis=0), tf.reduce_mean(f), tf.reduce_any(a > 4, axis=1), tf.reduce_all(a > 1, axis=1),
                tf.reduce_mean(tf.ragged.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]], ragged_rank=1), axis=1)]
    return values(tf, results)


@both
def test_index(tf, np):
    a, d = tf.ragged.constant(ROWS), tf.ragged.constant(DEEP)
    i = tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    return values(tf, [a[0], a[-1], a[1], a[1:3], a[:-1], a[::2], a[::-1], a[:, :2], a[:, 1:], a[:, -2:], a[:, :-1], a[1:, 1:3], d[0], d[2, 0], d[2, 0, 1], d[:, :1],
                       d[:, :, :2], d[..., :1], d[2, 1:], i[:, :, 0], i[0, 1], a[:, tf.newaxis], a[tf.newaxis], a[tf.constant(2)]])


@both
def test_rows(tf, np):
    a, b, d = tf.ragged.constant(ROWS), tf.ragged.constant([[7], [8, 8], [], [], [9]]), tf.ragged.constant(DEEP)
    t = tf.constant([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
    return values(tf, [tf.concat([a, b], 0), tf.concat([a, b], 1), tf.concat([b, a, b], axis=-1), tf.concat([d, d], 1), tf.concat([d, d], 2), tf.concat([a, t], 1),
                       tf.stack([a, b]), tf.stack([a, b], axis=1), tf.ragged.stack([[1, 2], [3]]), tf.ragged.stack([t, tf.constant([[1]])]),
                       tf.gather(a, [4, 0, 0]), tf.gather(d, [2, 0]), tf.gather(tf.constant([10, 11, 12, 13]), tf.ragged.constant([[3], [0, 1]])),
                       tf.expand_dims(a, 0), tf.expand_dims(a, 1), tf.expand_dims(a, -1), tf.where(a > 2, a, -a),
                       tf.nn.embedding_lookup(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.ragged.constant([[0, 1], [], [1]]))])


@both
def test_module(tf, np):
    return values(tf, [
        tf.ragged.range([3, 0, 5]), tf.ragged.range([1, 2], [4, 10], [1, 3]), tf.ragged.range([0.0, 1.0], 2.0, 0.5), tf.ragged.range([5, 3], 0, -2),
        tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]]),
        tf.ragged.boolean_mask(tf.ragged.constant(ROWS), [True, False, True, True, False]),
        tf.ragged.boolean_mask(tf.ragged.constant([[1, 2, 3], [4]]), tf.ragged.constant([[True, False, True], [False]])),
        tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]), tf.ragged.segment_ids_to_row_splits([0, 0, 2, 2, 4]),
        tf.ragged.segment_ids_to_row_splits([0, 0, 2], 4), tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d"], [1, 0, 1, 1], 3)])


@both
def test_feeding(tf, np):
    p = tf.ragged.placeholder(tf.float32, 2, value_shape=[])
    fed = tf.ragged.constant_value([[[1.0, 2.0], []], [[3.0]]])
    q = tf.ragged.placeholder(tf.int32, 1, value_shape=[2])
    rows = tf.ragged.constant_value([[[1, 2], [3, 4]], []], dtype=np.int32, inner_shape=(2,))
    return values(tf, [p * 2.0, tf.reduce_sum(q, axis=1), p.row_lengths(), p, q], {p: fed, q: rows}) + [repr(fed), str(fed), fed.to_list(), list(fed.shape), rows.ragged_rank]


@both
def test_gradients(tf, np):
    w = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    ids = tf.ragged.constant([[0, 1], [], [2, 2, 0]])
    mean = tf.reduce_sum(tf.nn.embedding_lookup(w, ids), axis=1)
    dense = tf.nn.embedding_lookup(w, ids).to_tensor()
    slope = [tf.convert_to_tensor(tf.gradients(y, w)[0]) for y in (tf.reduce_sum(tf.square(mean)), tf.reduce_sum(tf.square(dense)))]
    v = tf.constant([1.0, 2.0, 3.0])
    rows = tf.RaggedTensor.from_row_lengths(v, [1, 2])
    return values(tf, [*slope, tf.gradients(tf.reduce_sum((rows * rows).to_tensor()), v)[0], tf.gradients(tf.reduce_max(rows, 1), v)[0]])


@both
def test_texts(tf, np):
    texts = tf.constant(["the quick  brown", "", "fox jumps"])
    words = tf.strings.split(texts, result_type="RaggedTensor")
    sparse = tf.strings.split(tf.constant([["a b", "c"], ["", "d e"]]))
    return values(tf, [words, tf.strings.split("a,b,,c", ",", result_type="RaggedTensor"), tf.strings.split([["a b", "c"], ["", "d e"]], result_type="RaggedTensor"),
                       [sparse.indices, sparse.values, sparse.dense_shape], tf.strings.length(words), tf.strings.upper(words), tf.string_to_hash_bucket_fast(words, 10),
                       tf.strings.bytes_split(["hello", "", "abc"]), tf.strings.bytes_split("xyz"), tf.strings.regex_replace(words, "[aeiou]", "_")])


@both
def test_characters(tf, np):
    texts = ["G\xf6\xf6dnight".encode(), "\U0001f60a".encode(), b""]
    points, starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    parts, places = tf.strings.unicode_split_with_offsets(texts, "UTF-8")
    return values(tf, [tf.strings.unicode_decode(texts, "UTF-8"), points, starts, parts, places, tf.strings.unicode_split(texts[0], "UTF-8"),
                       tf.strings.unicode_encode(points, "UTF-16-BE"), tf.strings.unicode_encode([71, 246], "UTF-8"), tf.strings.unicode_decode([[b"ab"], [b"c"]], "UTF-8"),
                       tf.strings.unicode_encode([[72, 105], [79, 75]], "UTF-8")])


@both
def test_ngrams(tf, np):
    words = tf.ragged.constant([["a", "b", "c", "d"], ["e"], []])
    return values(tf, [tf.strings.ngrams(words, 2), tf.strings.ngrams(words, [1, 3], separator="-"), tf.strings.ngrams(words, 2, pad_values=("<", ">")),
                       tf.strings.ngrams(words, 3, pad_values="_", padding_width=1), tf.strings.ngrams(words, 2, preserve_short_sequences=True),
                       tf.strings.ngrams(["x", "y", "z"], 2), tf.strings.ngrams([["p", "q"], ["r", "s"]], 2)])


@both
def test_rows_as_a_dataset(tf, np):
    words = tf.ragged.constant([["a", "b"], [], ["c"]])
    dataset = tf.data.Dataset.from_tensor_slices({"words": words, "label": [1, 0, 2]})
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    plain = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(tf.ragged.constant(ROWS)).map(lambda row: tf.reduce_sum(row))).get_next()
    with tf.Session() as sess:
        return [sess.run([element["words"], element["label"]]) for _ in range(3)] + [sess.run(plain) for _ in range(5)]


def refused(name, make):
    def program(tf, np):
        make(tf)

    program.__name__ = "test_refused_" + name
    program.__code__ = program.__code__.replace(co_filename=__file__)
    return both(program, raises=True)


REFUSED = {
    "depths": lambda tf: tf.ragged.constant([[1], 2]),
    "rank": lambda tf: tf.ragged.constant([[1]], ragged_rank=2),
    "splits": lambda tf: values(tf, tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 5, 3])),
    "splits_rank": lambda tf: tf.RaggedTensor.from_row_splits([1, 2, 3], [[0, 3]]),
    "no_splits": lambda tf: tf.RaggedTensor.from_row_splits([1, 2, 3], []),
    "made": lambda tf: tf.RaggedTensor([1, 2], [0, 2]),
    "inner": lambda tf: tf.ragged.constant(ROWS)[:, 1],
    "truth": lambda tf: bool(tf.ragged.constant(ROWS)),
    "different_rows": lambda tf: values(tf, tf.ragged.constant(ROWS) + tf.ragged.constant([[1], [2], [3], [4], [5, 6, 7, 8, 9, 10]])),
    "both": lambda tf: tf.RaggedTensor.from_tensor([[1]], lengths=[1], padding=0),
    "merge": lambda tf: tf.ragged.constant(DEEP).merge_dims(2, 1),
    "width": lambda tf: tf.strings.ngrams(["a"], 0),
    "pads": lambda tf: tf.strings.ngrams(["a"], 1, padding_width=2),
    "result": lambda tf: tf.strings.split(["a"], result_type="list"),
}
for _name, _make in REFUSED.items():
    globals()["test_refused_" + _name] = refused(_name, _make)


def test_eagerly():
    import numpy as np
    import runnel as tf
    from both import eager_mode
    with eager_mode(tf):
        rows = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
        assert repr(rows) == "<tf.RaggedTensor [[1.0, 2.0], [], [3.0]]>"
        assert (rows * 2.0).to_list() == [[2.0, 4.0], [], [6.0]]
        assert [row.tolist() for row in rows.numpy()] == rows.to_list()
        assert len(rows) == 3
        assert tf.reduce_sum(rows, axis=1).numpy().tolist() == [3.0, 0.0, 3.0]
        assert [row.numpy().tolist() for row in tf.data.Dataset.from_tensor_slices(rows)] == rows.to_list()
        with tf.GradientTape() as tape:
            v = tf.constant([1.0, 2.0, 3.0])
            tape.watch(v)
            loss = tf.reduce_sum(tf.square(tf.RaggedTensor.from_row_lengths(v, [1, 2]).to_tensor()))
        np.testing.assert_allclose(tape.gradient(loss, v).numpy(), [2.0, 4.0, 6.0])
        try:
            tf.linalg.inv(rows)
        except TypeError as error:
            assert "does not support ragged tensors" in str(error)
        else:
            raise AssertionError("it was taken")
