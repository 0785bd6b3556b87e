"""tf.data.experimental against stock's."""

from both import both


def _all(tf, dataset):
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    rows = []
    with tf.Session() as sess:
        while True:
            try:
                rows.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return rows


@both
def test_elements(tf, np):
    e, numbers = tf.data.experimental, tf.data.Dataset.range(7)
    letters = tf.data.Dataset.from_tensor_slices(np.array([b"a", b"b", b"a"]))
    return [
        _all(tf, numbers.apply(e.take_while(lambda x: x < 4))),
        _all(tf, numbers.apply(e.scan(np.int64(1), lambda state, x: (state * 2, (state, x + state))))),
        _all(tf, letters.apply(e.unique())), _all(tf, numbers.batch(3).apply(e.unbatch())),
        _all(tf, numbers.apply(e.map_and_batch(lambda x: x * 2, 3, drop_remainder=True))),
        _all(tf, numbers.apply(e.enumerate_dataset(5))), _all(tf, e.Counter(2, 3).take(4)),
        _all(tf, numbers.apply(e.assert_cardinality(7))), _all(tf, numbers.apply(e.shuffle_and_repeat(1, 2, seed=1))),
        _all(tf, numbers.map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x % 3, tf.float32), "no")).apply(e.ignore_errors())),
        _all(tf, e.choose_from_datasets([numbers, numbers.map(lambda x: x + 100)], tf.data.Dataset.range(2).repeat(3))),
        _all(tf, numbers.apply(e.group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), window_size=2))),
        _all(tf, numbers.apply(e.bucket_by_sequence_length(lambda x: tf.cast(x, tf.int32), [3, 5], [2, 2, 2], no_padding=True))),
        _all(tf, numbers.apply(e.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=1)))]


@both
def test_padded_buckets(tf, np):
    rows = tf.data.Dataset.range(1, 6).map(lambda x: tf.range(x))
    return _all(tf, rows.apply(tf.data.experimental.bucket_by_sequence_length(tf.size, [3], [2, 2])))


@both
def test_values(tf, np):
    e, numbers = tf.data.experimental, tf.data.Dataset.range(3)
    sizes = [e.cardinality(numbers), e.cardinality(numbers.repeat()), e.cardinality(numbers.filter(lambda x: x > 1))]
    variant = e.to_variant(numbers)
    again = e.from_variant(variant, tf.TensorSpec([], tf.int64))
    total = again.reduce(np.int64(0), lambda a, b: a + b)
    with tf.Session() as sess:
        return [sess.run(sizes), sess.run(e.get_single_element(numbers.skip(2))), sess.run(total), e.AUTOTUNE, e.INFINITE_CARDINALITY]


@both
def test_effects_in_functions(tf, np):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    def change(x):
        v.assign_add(1.0)
        v.assign(v * 2.0)
        return x
    following = tf.data.make_initializable_iterator(tf.data.Dataset.range(3).map(change))
    element = following.get_next()
    with tf.Session() as sess:
        sess.run([v.initializer])
        sess.run(following.initializer)
        return [[sess.run(element) for _ in range(3)], sess.run(v)]


@both(raises=True, message=True)
def test_no_datasets(tf, np):
    tf.data.experimental.choose_from_datasets([], tf.data.Dataset.range(2))


@both(raises=True)
def test_fewer_elements(tf, np):
    _all(tf, tf.data.Dataset.range(3).apply(tf.data.experimental.assert_cardinality(5)))
