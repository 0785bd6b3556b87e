"""Pipelines as Python builds them today."""
import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from recorder import D, INTS, case, defun, files_case, ints, plain, raw


# Sources.
@case
def range_all(c):
    c.all(D.range(5))
    c.all(D.range(10, 3, -3))
    c.all(D.range(3, 3))


@case
def range_float(c):
    c.all(D.range(0, 4, 1, output_type=tf.float32))


@case
def range_zero_step(c):
    step = tf.placeholder(tf.int64, [])
    it = tf.data.make_initializable_iterator(D.range(0, 4, step))
    c.run(target=[it.initializer], feed={step: np.int64(0)})


@case
def tensors(c):
    c.all(D.from_tensors((np.float32([1, 2]), np.array([b"a", b"b"]))))


@case
def slices(c):
    c.all(D.from_tensor_slices((np.arange(6, dtype=np.int32).reshape(3, 2),
                                np.array([b"x", b"long enough to be on the heap", b""]))))


@case
def slices_large(c):
    c.all(D.from_tensor_slices(np.arange(2048 * 2, dtype=np.float32).reshape(2, 2048)).map(
        lambda x: tf.reduce_sum(x)))


@case
def sparse_slices(c):
    d = tf.raw_ops.SparseTensorSliceDataset(
        indices=np.int64([[0, 1], [0, 3], [2, 0]]), values=np.float32([1, 2, 3]),
        dense_shape=np.int64([4, 5]))
    raw(c, d, [tf.int64, tf.float32, tf.int64], [[None, 1], [None], [1]])


@case
def random_seeded(c):
    c.all(tf.data.experimental.RandomDataset(seed=7).take(6))


# Simple transformations.
@case
def take_skip_repeat(c):
    c.all(D.range(5).take(2))
    c.all(D.range(5).take(-1))
    c.all(D.range(5).skip(3))
    c.all(D.range(5).skip(-1))
    c.all(D.range(3).repeat(2))
    c.all(D.range(3).repeat().take(7))
    c.all(D.range(0).repeat())
    c.all(D.range(3).repeat(0))


@case
def shard(c):
    c.all(D.range(10).shard(3, 1))


@case
def concatenate_zip(c):
    c.all(D.range(3).concatenate(D.range(10, 12)))
    c.all(D.zip((D.range(3), D.range(10, 20).batch(2))))


@case
def choose(c):
    c.all(tf.data.experimental.choose_from_datasets(
        [D.range(3), D.range(10, 13)], D.from_tensor_slices(np.int64([0, 1, 1, 0, 1, 1, 0, 0]))))


@case
def cardinality(c):
    cases = [D.range(5), D.range(5).repeat(), D.range(5).repeat(3), D.range(7).batch(2),
             D.range(7).batch(2, drop_remainder=True), D.range(7).filter(lambda x: x > 3),
             D.range(7).take(3), D.range(7).skip(3), D.range(7).shard(3, 0),
             D.zip((D.range(3), D.range(2))), D.range(3).concatenate(D.range(4)),
             D.range(5).map(lambda x: x), D.range(7).window(3, 2), D.range(5).shuffle(3),
             D.range(5).prefetch(2), D.range(5).cache(), D.range(9, 0, -2)]
    c.run(fetch=[tf.data.experimental.cardinality(d) for d in cases])


@case
def assert_cardinality(c):
    c.all(D.range(3).apply(tf.data.experimental.assert_cardinality(3)))
    c.all(D.range(3).apply(tf.data.experimental.assert_cardinality(5)))
    c.all(D.range(3).apply(tf.data.experimental.assert_cardinality(2)))


@case
def unique(c):
    c.all(D.from_tensor_slices(np.int64([3, 1, 3, 2, 1])).apply(tf.data.experimental.unique()))
    c.all(D.from_tensor_slices(np.array([b"a", b"b", b"a"])).apply(tf.data.experimental.unique()))


# Functions.
@case
def map_captures(c):
    t = tf.constant(np.int64(100))
    c.all(D.range(4).map(lambda x: (x + t, x * x)))


@case
def map_error(c):
    c.all(D.range(4).map(lambda x: tf.debugging.check_numerics(
        1.0 / tf.cast(x, tf.float32) if False else tf.math.log(tf.cast(x, tf.float32) - 1.0),
        "bad value")))


@case
def map_errors_ignored(c):
    d = D.from_tensor_slices(np.float32([1, 0, 4, 0, 5])).map(
        lambda x: tf.debugging.check_numerics(1.0 / x, "bad"))
    c.all(d.apply(tf.data.experimental.ignore_errors()))


@case
def map_parallel(c):
    c.all(D.range(20).map(lambda x: x * 3, num_parallel_calls=4))
    c.all(D.range(6).map(lambda x: x * 3, num_parallel_calls=tf.data.experimental.AUTOTUNE))


@case
def map_parallel_error(c):
    c.all(D.from_tensor_slices(np.float32([1, 0, 4, 5])).map(
        lambda x: tf.debugging.check_numerics(1.0 / x, "bad"), num_parallel_calls=3))


@case
def map_parallel_any_order(c):
    options = tf.data.Options()
    options.deterministic = False
    c.all(D.range(30).map(lambda x: x * 3, num_parallel_calls=4, deterministic=False)
          .with_options(options), any_order=True)


@case
def map_variable(c):
    v = tf.get_variable("v", initializer=np.int64(5), use_resource=True)
    it = tf.data.make_initializable_iterator(plain(D.range(3).map(lambda x: x + v)))
    e = it.get_next()
    c.run(target=[v.initializer])
    c.run(target=[it.initializer])
    c.run(fetch=[e], repeat=2)
    c.run(target=[v.assign(np.int64(50)).op])
    c.run(fetch=[e], repeat=2)


@case
def filters(c):
    c.all(D.range(10).filter(lambda x: tf.equal(x % 3, 1)))
    c.all(D.range(10).apply(tf.data.experimental.take_while(lambda x: x < 4)))


@case
def scan(c):
    c.all(D.range(6).apply(tf.data.experimental.scan(
        np.int64(10), lambda s, x: (s + x, (s, s * x)))))


@case
def flat_map(c):
    c.all(D.range(4).flat_map(lambda x: D.from_tensors(x).repeat(x)))


@case
def interleave(c):
    c.all(D.range(1, 6).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=2,
                                   block_length=2))
    c.all(D.range(1, 6).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=3))


@case
def interleave_parallel(c):
    for cycle, block in ((2, 2), (3, 1), (4, 3)):
        c.all(D.range(1, 7).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=cycle,
                                       block_length=block, num_parallel_calls=2))


# Datasets of all lengths, none among them, over more and fewer places than there are of them.
@case
def interleave_uneven(c):
    for cycle, block, calls in ((1, 1, tf.data.AUTOTUNE), (3, 2, 3), (5, 1, 2), (7, 4, tf.data.AUTOTUNE),
                                (20, 2, 8), (2, 1, 3)):
        c.all(D.range(12).interleave(lambda x: D.from_tensors(x).repeat(x * 5 % 4), cycle_length=cycle,
                                     block_length=block, num_parallel_calls=calls))


@case
def reduce(c):
    c.run(fetch=[D.range(10).reduce(np.int64(0), lambda s, x: s + x)])
    a, b = D.range(4).reduce((np.int64(0), np.float32(1)),
                             lambda s, x: (s[0] + x, s[1] * 2))
    c.run(fetch=[a, b])


@case
def single_element(c):
    c.run(fetch=[tf.data.experimental.get_single_element(D.range(3, 4))])
    c.run(fetch=[tf.data.experimental.get_single_element(D.range(0))])
    c.run(fetch=[tf.data.experimental.get_single_element(D.range(2))])


# Batches.
@case
def batches(c):
    c.all(D.range(7).batch(3))
    c.all(D.range(7).batch(3, drop_remainder=True))
    c.all(D.range(3).batch(100000000))
    c.all(D.from_tensor_slices((np.arange(10, dtype=np.float32).reshape(5, 2),
                                np.array([b"a", b"bb", b"a string that is on the heap", b"", b"e"]))
                               ).batch(2))


@case
def batch_parallel(c):
    c.all(D.range(7).batch(3, num_parallel_calls=2))


@case
def batch_uneven(c):
    c.all(plain(D.range(1, 4).map(lambda x: tf.fill([x], x)).batch(2)))


@case
def batch_zero(c):
    size = tf.placeholder(tf.int64, [])
    it = tf.data.make_initializable_iterator(D.range(7).batch(size))
    c.run(target=[it.initializer], feed={size: np.int64(0)})


@case
def batch_padded(c):
    d = D.range(1, 6).map(lambda x: tf.fill([x], x))
    c.all(d.padded_batch(2, [None]))
    c.all(d.padded_batch(2, [7], padding_values=np.int64(-1)))
    c.all(d.padded_batch(3, [None], drop_remainder=True))
    c.all(d.padded_batch(2, [3]))
    c.all(D.from_tensor_slices(np.array([b"ab", b"c d"])).map(
        lambda s: tf.string_split([s]).values).padded_batch(2, [None], padding_values="pad"))


@case
def map_and_batch(c):
    c.all(D.range(7).apply(tf.data.experimental.map_and_batch(lambda x: x * 2, 3)))


@case
def unbatch(c):
    c.all(D.range(7).batch(3).apply(tf.data.experimental.unbatch()))
    c.all(D.from_tensor_slices((np.array([[b"a", b"b"], [b"c", b"d"]]), np.eye(2)))
          .apply(tf.data.experimental.unbatch()))


@case
def rebatch(c):
    c.all(D.range(10).batch(4).rebatch([3, 2]))
    c.all(D.range(10).batch(4).rebatch(3, drop_remainder=True))


@case
def windows(c):
    for size, shift, stride, drop in ((3, 2, 1, False), (3, 1, 2, True), (2, 4, 1, False),
                                      (3, None, 1, False)):
        c.all(D.range(7).window(size, shift, stride, drop).flat_map(lambda w: w.batch(10)))


@case
def windows_of_two(c):
    c.all(D.zip((D.range(4), D.range(10, 14))).window(2).flat_map(
        lambda a, b: D.zip((a.batch(2), b.batch(2)))))


@case
def group_by_window(c):
    c.all(D.range(10).apply(tf.data.experimental.group_by_window(
        lambda x: x % 3, lambda k, d: d.batch(2), window_size=2)))


@case
def bucket(c):
    c.all(D.range(1, 8).map(lambda x: tf.fill([x], x)).apply(
        tf.data.experimental.bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])))


# Numbers that make no sense.
@case
def bad_numbers(c):
    n = tf.placeholder(tf.int64, None)
    bad = [(lambda: D.range(7).batch(n), 0), (lambda: D.range(7).shuffle(n, 1), 0),
           (lambda: D.range(7).prefetch(n), -3), (lambda: D.range(7).shard(n, 0), 0),
           (lambda: D.range(7).shard(3, n), 3), (lambda: D.range(7).take(n), [1, 2]),
           (lambda: D.range(7).repeat(n), [1, 2]), (lambda: D.range(7).window(n), 0),
           (lambda: D.range(7).window(1, n), 0), (lambda: D.range(7).window(1, 1, n), 0),
           (lambda: D.range(7).interleave(D.from_tensors, n, 1), 0),
           (lambda: D.range(7).interleave(D.from_tensors, 1, n), 0),
           (lambda: D.range(7).interleave(D.from_tensors, n, 1, num_parallel_calls=2), 0),
           (lambda: D.range(7).interleave(D.from_tensors, 2, n, num_parallel_calls=2), 0),
           (lambda: D.range(7).interleave(D.from_tensors, 2, 1, num_parallel_calls=n), -5),
           (lambda: D.range(7).map(lambda x: x, num_parallel_calls=n), 0),
           (lambda: D.range(7).padded_batch(n, []), 0)]
    for make, number in bad:
        it = tf.data.make_initializable_iterator(plain(make()))
        c.run(target=[it.initializer], feed={n: np.int64(number)})


# Order.
@case
def shuffle(c):
    for size, seed in ((3, 1), (10, 2), (100, 3)):
        c.all(D.range(10).shuffle(size, seed=seed))


@case
def shuffle_epochs(c):
    c.all(D.range(5).shuffle(3, seed=4).repeat(3))
    c.all(D.range(5).shuffle(3, seed=4, reshuffle_each_iteration=False).repeat(3))


@case
def shuffle_again(c):
    it = tf.data.make_initializable_iterator(D.range(6).shuffle(6, seed=9))
    e = it.get_next()
    for _ in range(3):
        c.run(target=[it.initializer])
        c.run(fetch=[e], repeat=9)


@case
def shuffle_graph_seed(c):
    tf.set_random_seed(42)
    c.all(D.range(6).shuffle(6))


@case
def shuffle_and_repeat(c):
    c.all(D.range(5).apply(tf.data.experimental.shuffle_and_repeat(3, count=3, seed=5)))
    c.all(D.range(2).apply(tf.data.experimental.shuffle_and_repeat(10, seed=5)).take(12))


@case
def shuffle_unbounded(c):
    c.all(D.range(20).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=11))


@case
def sample(c):
    c.all(tf.data.experimental.sample_from_datasets(
        [D.range(5), D.range(100, 105)], [0.3, 0.7], seed=3))


@case
def prefetch(c):
    c.all(D.range(10).prefetch(3))
    c.all(D.range(5).prefetch(0))
    c.all(D.range(30).map(lambda x: x + 1).prefetch(4).batch(7).prefetch(1))
    c.all(D.range(6).prefetch(2).repeat(2).prefetch(tf.data.experimental.AUTOTUNE))


@case
def cache(c):
    c.all(D.range(3).cache().repeat(3))
    c.all(D.range(5).shuffle(5, seed=1).cache().repeat(2))


# Files.
@case
def tfrecord(c):
    for compression, name in ((None, "a.tfrecord"), ("GZIP", "a.tfrecord.gz"),
                              ("ZLIB", "a.tfrecord.z")):
        p = tf.placeholder(tf.string, [None])
        files_case(c, tf.data.TFRecordDataset(p, compression), {p: ["$DIR/" + name]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.TFRecordDataset(p).batch(4), {p: ["$DIR/a.tfrecord", "$DIR/a.tfrecord"]})


@case
def tfrecord_bad(c):
    p = tf.placeholder(tf.string, [None])
    d = tf.data.TFRecordDataset(p)
    files_case(c, d, {p: ["$DIR/cut.tfrecord"]})
    files_case(c, d, {p: ["$DIR/bad.tfrecord"]})
    files_case(c, d, {p: ["$DIR/not there"]})


@case
def tfrecord_parallel(c):
    p = tf.placeholder(tf.string, [None])
    files_case(c, D.from_tensor_slices(p).interleave(
        tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2),
        {p: ["$DIR/a.tfrecord", "$DIR/a.tfrecord", "$DIR/a.tfrecord"]})


@case
def text_lines(c):
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.TextLineDataset(p), {p: ["$DIR/a.txt", "$DIR/b.txt"]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.TextLineDataset(p, "GZIP"), {p: ["$DIR/a.txt.gz"]})


@case
def csv(c):
    none, seven = tf.int32, np.int32([7])
    real, text = np.float32([1.5]), np.array(["d"])
    p = tf.placeholder(tf.string, [None])
    for name, defaults, more in (
            ("a.csv", [seven, real, text], {}),
            ("a.csv", [seven, real, text], dict(header=True)),
            ("a.csv", [seven, text], dict(header=True, select_cols=[0, 2])),
            ("a.csv", [seven, text], dict(header=True, exclude_cols=[1])),
            ("a.csv", [none, real, text], dict(header=True)),
            ("a.csv", [seven, real], dict(header=True)),
            ("a.csv", [seven, real, text, text], dict(header=True)),
            ("b.csv", [seven, text], dict(field_delim=";", na_value="NA")),
            ("b.csv", [seven, text], dict(field_delim=";", na_value="NA",
                                          use_quote_delim=False))):
        d = tf2.data.experimental.CsvDataset(p, defaults, **more)
        files_case(c, plain(d), {p: ["$DIR/" + name]})


@case
def fixed_records(c):
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.FixedLengthRecordDataset(p, 4, 2, 3), {p: ["$DIR/fixed.bin"]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.FixedLengthRecordDataset(p, 4, 2, 3, compression_type="GZIP"),
               {p: ["$DIR/fixed.bin.gz"]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.FixedLengthRecordDataset(p, 5, 2, 3), {p: ["$DIR/fixed.bin"]})


# Iterators.
@case
def one_shot(c):
    e = tf.data.make_one_shot_iterator(D.range(3).map(lambda x: x * 2)).get_next()
    c.run(fetch=[e], repeat=5)


@case
def reinitializable(c):
    it = tf.data.Iterator.from_structure(tf.int64, [])
    a, b = it.make_initializer(D.range(3)), it.make_initializer(D.range(10, 20))
    e = it.get_next()
    c.run(fetch=[e])
    c.run(target=[a])
    c.run(fetch=[e], repeat=2)
    c.run(target=[b])
    c.run(fetch=[e], repeat=3)
    c.run(target=[a])
    c.run(fetch=[e], repeat=5)


@case
def wrong_elements(c):
    it = tf.data.Iterator.from_structure(tf.int64, [None])
    d = D.range(3).batch(2).map(lambda x: tf.cast(x, tf.int32))
    from tensorflow.python.ops import gen_dataset_ops
    c.run(target=[gen_dataset_ops.make_iterator(d._variant_tensor, it._iterator_resource)])
    d = D.range(3)
    c.run(target=[gen_dataset_ops.make_iterator(d._variant_tensor, it._iterator_resource)])


@case
def feedable(c):
    a = tf.data.make_initializable_iterator(D.range(3))
    b = tf.data.make_one_shot_iterator(D.range(100, 110))
    c.run(target=[a.initializer])
    # The texts of handles are the library's own: they are fetched and fed in one step.
    got = tf.data.Iterator.from_string_handle(a.string_handle(), tf.int64, []).get_next()
    c.run(fetch=[got], repeat=2)
    got = tf.data.Iterator.from_string_handle(b.string_handle(), tf.int64, []).get_next()
    c.run(fetch=[got], repeat=2)
    h = tf.raw_ops.IteratorFromStringHandle(string_handle=a.string_handle(),
                                            output_types=[tf.int32], output_shapes=[[]])
    c.run(fetch=tf.raw_ops.IteratorGetNext(iterator=h, output_types=[tf.int32],
                                           output_shapes=[[]]))


@case
def optional_next(c):
    it = tf.data.make_initializable_iterator(D.range(2).map(lambda x: (x, tf.as_string(x))))
    o = tf.data.experimental.get_next_as_optional(it)
    c.run(target=[it.initializer])
    c.run(fetch=[o.has_value()])
    c.run(fetch=list(o.get_value()))
    c.run(fetch=[o.has_value()])


@case
def optionals(c):
    o = tf.experimental.Optional.from_value((np.float32([1, 2]), "s"))
    n = tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32))
    c.run(fetch=[o.has_value(), n.has_value()] + list(o.get_value()))
    c.run(fetch=[n.get_value()])


@case
def nested(c):
    inner = D.range(3).map(lambda x: x + 1)
    c.all(D.range(3).flat_map(lambda x: inner.map(lambda y: x * 10 + y)))


@case
def long_pipeline(c):
    d = D.range(50).filter(lambda x: tf.equal(x % 2, 0)).map(lambda x: x * x, num_parallel_calls=3)
    d = d.shuffle(7, seed=2).batch(4).map(lambda x: tf.reduce_sum(x)).prefetch(2).repeat(2)
    c.all(d)


@case
def filter_parallel_fails(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=6, step=1, **INTS)

    @defun(tf.int64)
    def divides(x):
        return tf.equal(12 % (x - 3), 0)

    @defun(tf.int64)
    def vector(x):
        return tf.fill([2], True)

    for predicate in (divides, vector):
        ints(c, tf.raw_ops.ParallelFilterDataset(input_dataset=r, other_arguments=[], predicate=predicate,
                                                 num_parallel_calls=2, **INTS), repeat=9)
