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


@both
def test_lists_and_indices(tf, np):
    e, numbers = tf.data.experimental, tf.data.Dataset.range(7)
    pairs = e.from_list([(1, "a"), (2, "b"), (3, "c")])
    return [_all(tf, pairs), _all(tf, e.from_list([[1, 2], [3, 4]])), _all(tf, numbers.take(3).random(seed=4).take(2)),
            _all(tf, tf.data.Dataset.random(seed=4, rerandomize_each_iteration=False).take(3).repeat(2)),
            _all(tf, tf.data.Dataset.counter(2, 3).take(3)), _all(tf, numbers.scan(np.int64(0), lambda s, x: (s + x, s))),
            _all(tf, numbers.take_while(lambda x: x < 3)), _all(tf, numbers.map(lambda x: x % 3).unique()),
            _all(tf, numbers.group_by_window(lambda x: x % 2, lambda key, group: group.batch(3), window_size=3))]


@both
def test_reducer(tf, np):
    e, numbers = tf.data.experimental, tf.data.Dataset.range(10)
    total = e.Reducer(lambda key: (np.int64(0), key), lambda state, x: (state[0] + x, state[1]), lambda total, key: (total, key * 10))
    largest = e.Reducer(lambda key: np.int64(-1), lambda state, x: tf.maximum(state, x), lambda state: {"largest": state})
    return [_all(tf, numbers.apply(e.group_by_reducer(lambda x: x % 3, total))),
            _all(tf, numbers.apply(e.group_by_reducer(lambda x: -x % 4, largest)))]


@both
def test_sparse_batches(tf, np):
    lines = tf.data.Dataset.range(5).map(lambda x: tf.fill([x], x))
    parts = lines.apply(tf.data.experimental.dense_to_sparse_batch(2, [6])).map(lambda x: (x.indices, x.values, x.dense_shape))
    return _all(tf, parts)


@both
def test_buckets_to_boundary(tf, np):
    lines = tf.data.Dataset.from_tensor_slices([1, 4, 2, 5, 3]).map(lambda x: tf.fill([x], x))
    return _all(tf, lines.apply(tf.data.experimental.bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True)))


@both
def test_writes_records(tf, np):
    import os
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "r")
    words = tf.data.Dataset.from_tensor_slices(["a", "", "long enough to be on the heap"])
    made = []
    for compression in (None, "GZIP"):
        write = tf.data.experimental.TFRecordWriter(path, compression).write(words)
        with tf.Session() as sess:
            sess.run(write)
        made.append(_all(tf, tf.data.TFRecordDataset(path, compression)))
    return made


@both
def test_csv(tf, np):
    import os
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "a.csv")
    with open(path, "w") as file:
        file.write("a,b,c,label\n1,2.5,x,0\n2,,y,1\n3,4.5,\"z,\",0\n4,1e40,w,1\n5,6,v,0\n")
    e = tf.data.experimental
    more = dict(num_epochs=1, shuffle=False)
    made = [_all(tf, e.CsvDataset(path, [tf.int32, tf.constant([1.5]), tf.string, [7]], header=True)),
            _all(tf, e.CsvDataset(path, [tf.string], header=True, select_cols=[2])),
            _all(tf, e.make_csv_dataset(path, 2, **more)), _all(tf, e.make_csv_dataset(path, 2, label_name="label", **more)),
            _all(tf, e.make_csv_dataset(path, 2, column_defaults=[[0], [0.5]], select_columns=["a", "b"], **more))]
    return [[[(sorted(x.items()) if isinstance(x, dict) else x) for x in (row if isinstance(row, tuple) else (row,))] for row in rows]
            for rows in made]


@both
def test_sql(tf, np):
    import os
    import sqlite3
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "a.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (name TEXT, n INTEGER, x REAL)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", [("a", 1, 1.5), ("b", -2, 2e300)])
    return _all(tf, tf.data.experimental.SqlDataset("sqlite", path, "SELECT name, n, x FROM t", (tf.string, tf.int32, tf.float64)))


@both
def test_tables(tf, np):
    e, words = tf.data.experimental, tf.data.Dataset.from_tensor_slices(["b", "a", "c"])
    index = e.index_table_from_dataset(words)
    pairs = tf.data.Dataset.zip((tf.data.Dataset.range(3), words))
    names = e.table_from_dataset(pairs, default_value="none", key_dtype=tf.int64)
    found = [index.lookup(tf.constant(["a", "z", "b"])), names.lookup(tf.constant([2, 9, 0], tf.int64))]
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        return sess.run(found)


@both
def test_examples(tf, np):
    import os
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "a.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(5):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i * 2.5]))})).SerializeToString())
    features = {"n": tf.FixedLenFeature([], tf.int64), "x": tf.FixedLenFeature([2], tf.float32)}
    e = tf.data.experimental
    parsed = tf.data.TFRecordDataset(path).batch(2).apply(e.parse_example_dataset(features))
    batches = e.make_batched_features_dataset(path, 2, features, label_key="n", num_epochs=1, shuffle=False,
                                              reader=tf.data.TFRecordDataset)
    return [[sorted(x.items()) for x in _all(tf, parsed)], [(sorted(a.items()), b) for a, b in _all(tf, batches)]]


def test_resampling():
    import runnel as tf
    tf.enable_eager_execution()
    for initial in (None, [0.8, 0.2]):
        kept = [(int(kind), int(x)) for kind, x in tf.data.Dataset.range(2000).rejection_resample(
            lambda x: tf.cast(tf.equal(x % 5, 0), tf.int32), [0.5, 0.5], initial, seed=7)]
        assert all(kind == (x % 5 == 0) for kind, x in kept)
        assert abs(sum(kind for kind, _ in kept) / len(kept) - 0.5) < 0.1 and 300 < len(kept) < 1100


def test_padding_and_indices():
    import runnel as tf
    tf.enable_eager_execution()
    e, numbers = tf.data.experimental, tf.data.Dataset.range(3)
    padded = numbers.map(lambda x: {"n": x, "s": tf.as_string(x)}).apply(e.assert_cardinality(3)).apply(e.pad_to_cardinality(5))
    rows = [(int(x["n"]), x["s"].numpy(), bool(x["valid"])) for x in padded]
    assert rows == [(0, b"0", True), (1, b"1", True), (2, b"2", True), (0, b"", False), (0, b"", False)]
    assert [int(e.at(e.from_list([4, 5, 6]), i)) for i in range(3)] == [4, 5, 6]
    assert len(e.get_model_proto(iter(numbers.batch(2)))) > 0
    sparse = next(iter(numbers.map(lambda x: tf.fill([x], x)).sparse_batch(3, [4])))
    assert sparse.values.numpy().tolist() == [1, 2, 2] and sparse.dense_shape.numpy().tolist() == [3, 4]
    assert int(numbers.fingerprint()) == int(tf.data.Dataset.range(3).fingerprint()) != int(tf.data.Dataset.range(4).fingerprint())


def test_saved_and_continued():
    import runnel as tf
    tf.enable_eager_execution()
    ops, kind = tf.raw_ops, dict(output_types=[tf.int64], output_shapes=[[]])
    lines = dict(output_types=[tf.int64], output_shapes=[[None]])
    numbers = ops.RangeDataset(start=0, stop=20, step=1, **kind)
    batches = ops.BatchDataset(input_dataset=numbers, batch_size=4, **lines)
    cases = [(ops.SlidingWindowDataset(input_dataset=numbers, window_size=3, window_shift=2, window_stride=2, drop_remainder=False,
                                       **lines), lines),
             (ops.SamplingDataset(input_dataset=numbers, rate=0.7, seed=1, seed2=2, **kind), kind),
             (ops.RebatchDataset(input_dataset=batches, num_replicas=3, **lines), lines),
             (ops.SleepDataset(input_dataset=numbers, sleep_microseconds=1, **kind), kind),
             (ops.ChooseFastestDataset(input_datasets=[numbers, numbers], num_experiments=5, **kind), kind),
             (ops.AssertNextDataset(input_dataset=numbers, transformations=["Root"], **kind), kind),
             (ops.MaxIntraOpParallelismDataset(input_dataset=numbers, max_intra_op_parallelism=1, **kind), kind)]
    for dataset, element in cases:
        _check_saved(tf, dataset, element)


def _check_saved(tf, dataset, element):
    """Saves an iterator after three elements, and expects the others from one that is restored."""
    ops = tf.raw_ops

    def rest(iterator):
        rows = []
        while True:
            try:
                rows.append(ops.IteratorGetNext(iterator=iterator, **element)[0].numpy().tolist())
            except tf.errors.OutOfRangeError:
                return rows

    def begun(count):
        iterator = ops.AnonymousIteratorV3(**element)
        ops.MakeIterator(dataset=dataset, iterator=iterator)
        for _ in range(count):
            ops.IteratorGetNext(iterator=iterator, **element)
        return iterator
    whole, half = rest(begun(0)), begun(3)
    state = ops.SerializeIterator(resource_handle=half)
    assert rest(half) == whole[3:]
    again = begun(1)
    ops.DeserializeIterator(resource_handle=again, serialized=state)
    assert rest(again) == whole[3:]


def test_sleep_ends_with_its_step():
    import time

    import runnel as tf
    with tf.Graph().as_default():
        numbers = tf.data.Dataset.range(3)
        slow = numbers._like(tf.raw_ops.SleepDataset(input_dataset=numbers._variant_tensor,
                                                     sleep_microseconds=tf.constant(10 ** 8, tf.int64), **numbers._attrs))
        following = tf.data.make_one_shot_iterator(slow).get_next()
        began, code = time.time(), None
        with tf.Session() as sess:
            try:
                sess.run(following, options=tf.RunOptions(timeout_in_ms=100))
            except tf.errors.OpError as error:
                code = error.error_code
    assert code == tf.errors.DEADLINE_EXCEEDED and time.time() - began < 30
