"""Pipelines of tf.data.experimental: ops that Python adds on request, and their older names."""
import numpy as np
import tensorflow.compat.v1 as tf

from older_pipelines import saved_case
from recorder import D, INTS, VECTORS, as_written, case, defun, ints, raw

R = tf.raw_ops


def numbers(n=10):
    return R.RangeDataset(start=0, stop=n, step=1, **INTS)


def vectors(c, dataset, repeat=40):
    raw(c, dataset, [tf.int64], [[None]], repeat)


def strings(c, dataset, feed, repeat=40, count=1):
    kind = dict(output_types=[tf.string] * count, output_shapes=[[]] * count)
    it = R.IteratorV2(shared_name="", container="", **kind)
    make = R.MakeIterator(dataset=as_written(dataset, **{"types": [tf.string] * count, "shapes": [[]] * count}),
                          iterator=it)
    c.run(target=[make], feed=feed)
    c.run(fetch=R.IteratorGetNext(iterator=it, **kind), repeat=repeat)


def both(name):
    """An op and its older name."""
    return [getattr(R, name), getattr(R, "Experimental" + name)]


@case
def sliding_window(c):
    for size, shift, stride in ((3, 2, 2), (2, 5, 1), (4, 1, 1), (20, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
        for op in both("SlidingWindowDataset"):
            vectors(c, op(input_dataset=numbers(), window_size=size, window_shift=shift, window_stride=stride, **VECTORS))
    vectors(c, R.SlidingWindowDataset(input_dataset=numbers(), window_size=3, window_shift=2, window_stride=2,
                                      drop_remainder=False, **VECTORS))


@case
def sampling(c):
    for rate in (0.5, 0.0, 2.0):
        ints(c, R.SamplingDataset(input_dataset=numbers(), rate=rate, seed=1, seed2=2, **INTS))


@case
def random_again(c):
    generator, _ = R.AnonymousSeedGenerator(seed=1, seed2=2, reshuffle=True)
    for flag in (False, True):
        ints(c, R.RandomDatasetV2(seed=1, seed2=2, seed_generator=R.DummySeedGenerator(),
                                  rerandomize_each_iteration=flag, **INTS), repeat=3)
    d = R.RandomDatasetV2(seed=1, seed2=2, seed_generator=R.DummySeedGenerator(), rerandomize_each_iteration=True, **INTS)
    ints(c, R.RepeatDataset(input_dataset=R.TakeDataset(input_dataset=d, count=3, **INTS), count=3, **INTS))
    ints(c, R.ExperimentalRandomDataset(seed=3, seed2=4, **INTS), repeat=3)


@case
def rebatch_by_replicas(c):
    batches = R.BatchDataset(input_dataset=numbers(), batch_size=4, **VECTORS)
    for op in both("RebatchDataset"):
        for replicas in (1, 2, 3, 0):
            vectors(c, op(input_dataset=batches, num_replicas=replicas, **VECTORS))
    vectors(c, R.RebatchDataset(input_dataset=numbers(), num_replicas=2, **VECTORS))


@case
def thread_pools(c):
    pool = R.ThreadPoolHandle(num_threads=2, display_name="x")
    for op in both("ThreadPoolDataset"):
        ints(c, op(input_dataset=numbers(3), thread_pool=pool, **INTS))
    ints(c, R.ThreadPoolDataset(input_dataset=numbers(3), thread_pool=R.ExperimentalThreadPoolHandle(
        num_threads=1, display_name="y"), **INTS))
    for op in both("MaxIntraOpParallelismDataset"):
        for n in (-1, 0, 2):
            ints(c, op(input_dataset=numbers(3), max_intra_op_parallelism=n, **INTS))
    for op in both("PrivateThreadPoolDataset"):
        for n in (-1, 0, 2):
            ints(c, op(input_dataset=numbers(3), num_threads=n, **INTS))


@case
def thread_pool_bad(c):
    c.run(fetch=[], target=[R.ThreadPoolHandle(num_threads=-1, display_name="x")])


@case
def passing(c):
    for op in both("NonSerializableDataset"):
        ints(c, op(input_dataset=numbers(3), **INTS))
    for op in both("SleepDataset"):
        for micros in (-1, 0, 20):
            ints(c, op(input_dataset=numbers(3), sleep_microseconds=micros, **INTS))
    ints(c, R.ExperimentalIgnoreErrorsDataset(input_dataset=numbers(3), **INTS))
    ints(c, R.ExperimentalUniqueDataset(input_dataset=numbers(3), **INTS))
    ints(c, R.ExperimentalUnbatchDataset(
        input_dataset=R.BatchDataset(input_dataset=numbers(5), batch_size=2, **VECTORS), **INTS))
    c.run(fetch=[R.ExperimentalDatasetCardinality(input_dataset=numbers(5))])


@case
def stats(c):
    for handle, add, latency, put, summary in (
            (R.StatsAggregatorHandle, R.BytesProducedStatsDataset, R.LatencyStatsDataset, R.SetStatsAggregatorDataset,
             R.StatsAggregatorSummary),
            (R.ExperimentalStatsAggregatorHandle, R.ExperimentalBytesProducedStatsDataset, R.ExperimentalLatencyStatsDataset,
             R.ExperimentalSetStatsAggregatorDataset, R.ExperimentalStatsAggregatorSummary)):
        kind = dict(output_types=[tf.string], output_shapes=[[]])
        words = R.TensorSliceDataset(components=[np.array(["a", "long enough to be on the heap"])], output_shapes=[[]])
        for source, what, tag in ((words, kind, "T"), (numbers(5), INTS, "")):
            h = handle(container="", shared_name=tag + handle.__name__)
            d = put(input_dataset=add(input_dataset=source, tag="bytes", **what), stats_aggregator=h, tag=tag,
                    counter_prefix="p", **what)
            raw(c, d, what["output_types"], [[]])
            c.run(fetch=[summary(iterator=h)])
        ints(c, latency(input_dataset=numbers(5), tag="time", **INTS))


@case
def list_of_elements(c):
    ints(c, R.ListDataset(tensors=[np.int64(1), np.int64(2), np.int64(5)], **INTS))
    pair = dict(output_types=[tf.int64, tf.string], output_shapes=[[], []])
    raw(c, R.ListDataset(tensors=[np.int64(1), "a", np.int64(5), "b"], **pair), [tf.int64, tf.string], [[], []])
    c.run(fetch=[R.DatasetCardinality(input_dataset=R.ListDataset(tensors=[np.int64(1), "a", np.int64(5), "b"], **pair))])
    # Stock cannot make a graph of this dataset, which its iterators need in a session.
    it = R.IteratorV2(shared_name="", container="", **pair)
    c.run(target=[R.MakeIterator(dataset=R.WindowOp(inputs=[np.int64(1), "a"], **pair), iterator=it)], beyond=True)


@case
def choose_fastest(c):
    for op in both("ChooseFastestDataset"):
        ints(c, op(input_datasets=[numbers(5), numbers(5)], num_experiments=2, **INTS))
        ints(c, op(input_datasets=[numbers(5), numbers(4)], num_experiments=2, **INTS))
        ints(c, op(input_datasets=[numbers(5), R.TensorDataset(components=[np.float32(1)], output_shapes=[[]])],
                   num_experiments=2, **INTS))


@case
def sparse_batches(c):
    @defun(tf.int64)
    def row(x):
        return tf.fill([x], x)

    @defun(tf.int64)
    def square(x):
        return tf.as_string(tf.fill([x, 2], x))

    for f, dtype, shape in ((row, tf.int64, [10]), (row, tf.int64, [3]), (square, tf.string, [5, 3]), (square, tf.string, [3]),
                            (row, tf.int64, [-1])):
        for op in both("DenseToSparseBatchDataset"):
            d = R.MapDataset(input_dataset=numbers(5), other_arguments=[], f=f, output_types=[dtype], output_shapes=[None])
            d = op(input_dataset=d, batch_size=2, row_shape=np.int64(shape), output_types=[tf.variant], output_shapes=[None])
            kind = dict(output_types=[tf.variant], output_shapes=[None])
            it = R.IteratorV2(shared_name="", container="", **kind)
            c.run(target=[R.MakeIterator(dataset=as_written(d, [tf.variant], [None]), iterator=it)])
            e = R.IteratorGetNext(iterator=it, **kind)[0]
            parts = R.DeserializeSparse(serialized_sparse=e, dtype=dtype)
            c.run(fetch=list(parts), repeat=9)
    ints(c, R.DenseToSparseBatchDataset(input_dataset=numbers(5), batch_size=0, row_shape=np.int64([3]), **INTS))


@case
def group_by_reducer(c):
    @defun(tf.int64)
    def key(x):
        return 1 - x % 3

    @defun(tf.int64)
    def init(k):
        return np.int64(0), k * 100

    @defun(tf.int64, tf.int64, tf.int64)
    def reduce(total, first, x):
        return total + x, first

    @defun(tf.int64, tf.int64)
    def finalize(total, first):
        return total + first

    @defun(tf.int64)
    def bad_key(x):
        return 12 % (x - 3)

    for op in both("GroupByReducerDataset"):
        for n, k in ((10, key), (0, key), (6, bad_key)):
            ints(c, op(input_dataset=numbers(n), key_func_other_arguments=[], init_func_other_arguments=[],
                       reduce_func_other_arguments=[], finalize_func_other_arguments=[], key_func=k, init_func=init,
                       reduce_func=reduce, finalize_func=finalize, **INTS), repeat=6)


@case
def older_names(c):
    @defun(tf.int64)
    def small(x):
        return x < 4

    @defun(tf.int64, tf.int64)
    def add(state, x):
        return state + x, state * 10

    @defun(tf.int64)
    def twice(x):
        return x * 2

    @defun(tf.int64)
    def parity(x):
        return x % 2

    @defun(tf.int64)
    def two(k):
        return tf.constant(2, tf.int64)

    @defun(tf.int64, tf.variant)
    def join(k, window):
        return R.BatchDataset(input_dataset=window, batch_size=10, **VECTORS)

    @defun(tf.int64)
    def row(x):
        return R.RepeatDataset(input_dataset=R.TensorDataset(components=[x], output_shapes=[[]]), count=x, **INTS)

    ints(c, R.ExperimentalTakeWhileDataset(input_dataset=numbers(), other_arguments=[], predicate=small, **INTS))
    ints(c, R.ExperimentalScanDataset(input_dataset=numbers(5), initial_state=[np.int64(1)], other_arguments=[], f=add, **INTS))
    vectors(c, R.ExperimentalMapAndBatchDataset(input_dataset=numbers(5), other_arguments=[], batch_size=2,
                                                num_parallel_calls=2, drop_remainder=False, f=twice, **VECTORS))
    ints(c, R.ExperimentalDirectedInterleaveDataset(selector_input_dataset=R.TensorSliceDataset(
        components=[np.int64([0, 1, 1, 0])], output_shapes=[[]]), data_input_datasets=[numbers(), numbers(3)], **INTS))
    vectors(c, R.ExperimentalGroupByWindowDataset(
        input_dataset=numbers(5), key_func_other_arguments=[], reduce_func_other_arguments=[],
        window_size_func_other_arguments=[], key_func=parity, reduce_func=join, window_size_func=two, **VECTORS))
    for op in both("ParallelInterleaveDataset"):
        for cycle, block in ((2, 1), (3, 2), (0, 1)):
            ints(c, op(input_dataset=numbers(5), other_arguments=[], cycle_length=cycle, block_length=block, sloppy=False,
                       buffer_output_elements=1, prefetch_input_elements=0, f=row, **INTS))


@case
def csv_v1(c):
    names = tf.placeholder(tf.string, [None])
    kind = dict(output_types=[tf.int32, tf.float32, tf.string], output_shapes=[[], [], []])
    for op in both("CSVDataset"):
        for columns, more in (([], {}), ([2, 0], {}), ([], dict(field_delim=";;"))):
            d = op(filenames=names, compression_type="", buffer_size=100, header=True,
                   field_delim=more.get("field_delim", ","), use_quote_delim=True, na_value="",
                   select_cols=np.int64(columns), record_defaults=[np.int32([7]), np.float32([1.5]), np.array(["d"])],
                   output_shapes=kind["output_shapes"])
            it = R.IteratorV2(shared_name="", container="", **kind)
            c.run(target=[R.MakeIterator(dataset=as_written(d, **{"types": kind["output_types"], "shapes": kind["output_shapes"]}),
                                         iterator=it)], feed={names: ["$DIR/a.csv"]})
            c.run(fetch=R.IteratorGetNext(iterator=it, **kind), repeat=9)


@case
def matching_files(c):
    @defun(tf.string)
    def base(name):
        return tf.strings.regex_replace(name, ".*/", "")

    for op in both("MatchingFilesDataset"):
        p = tf.placeholder(tf.string, [None])
        names = R.MapDataset(input_dataset=op(patterns=p), other_arguments=[], f=base, output_types=[tf.string], output_shapes=[[]])
        strings(c, names, {p: ["$DIR/a.t*", "$DIR/*.csv"]})


@case
def sql(c):
    source = tf.placeholder(tf.string, [])
    types = [tf.string, tf.int32, tf.int64, tf.double, tf.bool, tf.int8, tf.uint16]
    kind = dict(output_types=types, output_shapes=[[]] * len(types))
    for op in both("SqlDataset"):
        for driver, query in (("sqlite", "SELECT name, a, b, x, flag, a, b FROM t ORDER BY id"),
                              ("sqlite", "SELECT name FROM t"), ("sqlite", "SELECT nothing FROM t"), ("mysql", "SELECT 1"),
                              ("sqlite", "SELECT name, a, b, x, flag, a, b FROM t WHERE id > 100")):
            d = op(driver_name=driver, data_source_name=source, query=query, **kind)
            it = R.IteratorV2(shared_name="", container="", **kind)
            c.run(target=[R.MakeIterator(dataset=as_written(d, types, [[]] * len(types)), iterator=it)],
                  feed={source: "$DIR/a.sqlite"})
            c.run(fetch=R.IteratorGetNext(iterator=it, **kind), repeat=9)


@case
def lmdb(c):
    names = tf.placeholder(tf.string, [None])
    for op in both("LMDBDataset"):
        d = op(filenames=names, output_types=[tf.string] * 2, output_shapes=[[]] * 2)
        c.run(fetch=[R.DatasetCardinality(input_dataset=d)], feed={names: ["$DIR/a.txt"]})


@case
def element_at(c):
    @defun(tf.int64)
    def twice(x):
        return x * 2

    @defun(tf.int64)
    def big(x):
        return x > 1

    r = numbers(7)
    batches = R.BatchDatasetV2(input_dataset=r, batch_size=3, drop_remainder=False, **VECTORS)
    mapped = R.MapDataset(input_dataset=r, other_arguments=[], f=twice, preserve_cardinality=True, **INTS)
    kinds = [(r, INTS), (mapped, INTS), (batches, VECTORS),
             (R.ParallelMapDatasetV2(input_dataset=r, other_arguments=[], num_parallel_calls=2, f=twice,
                                     preserve_cardinality=True, **INTS), INTS),
             (R.TakeDataset(input_dataset=r, count=2, **INTS), INTS), (R.SkipDataset(input_dataset=r, count=2, **INTS), INTS),
             (R.ShardDataset(input_dataset=r, num_shards=3, index=1, **INTS), INTS),
             (R.RepeatDataset(input_dataset=r, count=3, **INTS), INTS),
             (R.ConcatenateDataset(input_dataset=r, another_dataset=mapped, **INTS), INTS),
             (R.PrefetchDataset(input_dataset=r, buffer_size=2, **INTS), INTS),
             (R.CacheDataset(input_dataset=r, filename="", **INTS), INTS),
             (R.TensorSliceDataset(components=[np.int64([4, 5, 6])], output_shapes=[[]]), INTS),
             (R.TensorDataset(components=[np.int64(4)], output_shapes=[[]]), INTS),
             (R.ListDataset(tensors=[np.int64(1), np.int64(2)], **INTS), INTS)]
    for dataset, kind in kinds:
        for index in (0, 1, 9, -1):
            c.run(fetch=R.GetElementAtIndex(dataset=dataset, index=index, **kind))
    pair = dict(output_types=[tf.int64] * 2, output_shapes=[[]] * 2)
    c.run(fetch=R.GetElementAtIndex(dataset=R.ZipDataset(input_datasets=[r, mapped], **pair), index=4, **pair))
    c.run(fetch=R.GetElementAtIndex(dataset=R.FilterDataset(input_dataset=r, other_arguments=[], predicate=big, **INTS),
                                    index=0, **INTS))


@case
def compressed(c):
    def again(values, types, shapes=None):
        return R.UncompressElement(compressed=R.CompressElement(components=values), output_types=types,
                                   output_shapes=shapes or [None] * len(types))
    words = np.array(["a", "", "long enough to be on the heap"])
    c.run(fetch=again([np.int64([[1, 2], [3, 4]]), words, np.float32(5), np.zeros([0, 3], np.int8)],
                      [tf.int64, tf.string, tf.float32, tf.int8]))
    c.run(fetch=again([np.zeros([1000], np.int32)], [tf.int32]))
    inner = R.CompressElement(components=[np.int64([7])])
    c.run(fetch=R.UncompressElement(compressed=again([inner], [tf.variant])[0], output_types=[tf.int64], output_shapes=[None]))
    c.run(fetch=again([np.int64([1]), words], [tf.int64]))
    c.run(fetch=again([np.int64([1])], [tf.float32]))


@case
def batch_sizes(c):
    batches = D.range(9).batch(3)
    cases = [D.range(5), batches, batches.map(lambda x: x).prefetch(1), D.range(5).padded_batch(3, []), batches.batch(2),
             batches.unbatch(), batches.take(1).repeat(2).shuffle(2), D.zip((batches, batches)),
             batches.concatenate(D.range(6).batch(3)), batches.concatenate(D.range(6).batch(2)),
             batches.filter(lambda x: True), batches.cache(), batches.shard(2, 0), batches.skip(1)]
    c.run(fetch=[R.ComputeBatchSize(input_dataset=d._variant_tensor) for d in cases])
    marks = [R.DatasetFingerprint(input_dataset=d) for d in (numbers(5), numbers(5), numbers(6))]
    c.run(fetch=[tf.equal(marks[0], marks[1]), tf.equal(marks[0], marks[2])])


@case
def to_tfrecord(c):
    name = tf.placeholder(tf.string, [])
    words = R.TensorSliceDataset(components=[np.array(["a", "", "long enough to be on the heap"])], output_shapes=[[]])
    for op in both("DatasetToTFRecord"):
        for compression in ("", "GZIP", "ZLIB"):
            c.run(target=[op(input_dataset=words, filename=name, compression_type=compression)], feed={name: "$TMP/r"})
            strings(c, R.TFRecordDataset(filenames=name, compression_type=compression, buffer_size=0), {name: "$TMP/r"})
        c.run(target=[op(input_dataset=numbers(), filename=name, compression_type="")], feed={name: "$TMP/r"})
        pair = R.ZipDataset(input_datasets=[words, words], output_types=[tf.string] * 2, output_shapes=[[]] * 2)
        c.run(target=[op(input_dataset=pair, filename=name, compression_type="")], feed={name: "$TMP/r"})


@case
def fill_table(c):
    words = R.TensorSliceDataset(components=[np.array(["a", "b", "c"])], output_shapes=[[]])
    kind = dict(output_types=[tf.int64, tf.string], output_shapes=[[], []])
    entries = R.ZipDataset(input_datasets=[numbers(3), words], **kind)
    table = R.HashTableV2(key_dtype=tf.int64, value_dtype=tf.string)
    c.run(target=[R.InitializeTableFromDataset(table_handle=table, dataset=entries)])
    c.run(fetch=[R.LookupTableFindV2(table_handle=table, keys=np.int64([2, 0, 5]), default_value="none"),
                 R.LookupTableSizeV2(table_handle=table)])


@case
def map_rows(c):
    @defun(tf.int64, tf.int64)
    def add(x, y):
        return x + y

    @defun(tf.int64)
    def fill(x):
        return tf.fill([x], x), tf.as_string(x)

    @defun(tf.int64)
    def divide(x):
        return 12 // (x - 2)

    def run(args, captured, f, types=(tf.int64,), shapes=([],)):
        c.run(fetch=R.MapDefun(arguments=args, captured_inputs=captured, f=f, output_types=list(types), output_shapes=list(shapes)))
    feed = tf.placeholder_with_default
    run([np.int64([1, 2, 3]), np.int64([4, 5, 6])], [], add)
    run([np.int64(range(40)), np.int64(range(40))], [], add)
    run([np.int64([[1, 2], [3, 4]])], [np.int64(10)], add, shapes=([2],))
    run([feed(np.int64([1, 2, 3]), [None]), feed(np.int64([4, 5]), [None])], [], add)
    run([feed(np.int64(1), None), np.int64([4, 5])], [], add)
    run([np.zeros([0], np.int64), np.zeros([0], np.int64)], [], add)
    run([np.int64([2, 2, 2])], [], fill, (tf.int64, tf.string), ([None], []))
    run([np.int64([2])], [], fill, (tf.int64, tf.string), ([3], []))
    run([np.int64([1, 2, 3])], [], divide)


@case
def asserted(c):
    def after(names):
        d = R.AssertNextDataset(input_dataset=numbers(3), transformations=np.array(names), **INTS)
        ints(c, R.SkipDataset(input_dataset=R.TakeDataset(input_dataset=d, count=2, **INTS), count=1, **INTS))
    after(["FiniteTake", "FiniteSkip"])
    after(["FiniteTake"])
    after(["FiniteTake", "Map"])
    after(["FiniteTake", "FiniteSkip", "Root", "A", "B"])
    d = R.ExperimentalAssertNextDataset(input_dataset=numbers(3), transformations=np.array(["Shard"]), **INTS)
    ints(c, R.ShardDataset(input_dataset=d, num_shards=2, index=0, **INTS))

    def before(names):
        d = R.TakeDataset(input_dataset=R.SkipDataset(input_dataset=numbers(4), count=1, **INTS), count=2, **INTS)
        ints(c, R.AssertPrevDataset(input_dataset=d, transformations=np.array(names), **INTS))
    before(["name: 'TakeDataset'", "name: 'SkipDataset'"])
    before(["name: 'TakeDataset'", "name: 'MapDataset'"])
    before(["name: 'TakeDataset'"] * 5)
    before(["TakeDataset"])


@case
def iterator_device(c):
    it = R.IteratorV2(shared_name="", container="", **INTS)
    for op in both("IteratorGetDevice"):
        c.run(fetch=[op(resource=it)])
    c.run(fetch=[R.IteratorGetModelProto(iterator=it)])
    c.run(target=[R.DummyIterationCounter()])


def examples(count=4):
    def feature(**kind):
        return tf.train.Feature(**kind)
    return np.array([tf.train.Example(features=tf.train.Features(feature={
        "n": feature(int64_list=tf.train.Int64List(value=[i])),
        "x": feature(float_list=tf.train.FloatList(value=[i, i * 2.5])),
        "s": feature(bytes_list=tf.train.BytesList(value=[b"w"] * i))})).SerializeToString() for i in range(count)], object)


def parsed(op, messages, **more):
    batches = R.BatchDataset(input_dataset=R.TensorSliceDataset(components=[messages], output_shapes=[[]]), batch_size=2,
                             output_types=[tf.string], output_shapes=[[None]])
    kind = dict(input_dataset=batches, num_parallel_calls=1, dense_defaults=[np.int64([]), np.float32([])], sparse_keys=["s"],
                dense_keys=["x", "n"][::-1], sparse_types=[tf.string], dense_shapes=[[], [2]],
                output_types=[tf.int64, tf.variant, tf.float32], output_shapes=[None] * 3)
    kind.update(more)
    return op(**kind)


@case
def parse_examples(c):
    kind = dict(output_types=[tf.int64, tf.variant, tf.float32], output_shapes=[None] * 3)
    for op in (R.ParseExampleDatasetV2, R.ParseExampleDataset, R.ExperimentalParseExampleDataset):
        for messages, more in ((examples(), {}), (np.array([b""], object), {}),
                               (examples(), dict(num_parallel_calls=0)), (examples(), dict(num_parallel_calls=-1))):
            it = R.IteratorV2(shared_name="", container="", **kind)
            d = as_written(parsed(op, messages, **more), kind["output_types"], kind["output_shapes"])
            c.run(target=[R.MakeIterator(dataset=d, iterator=it)])
            n, s, x = R.IteratorGetNext(iterator=it, **kind)
            c.run(fetch=[n, x] + list(R.DeserializeSparse(serialized_sparse=s, dtype=tf.string)), repeat=4)
    # Ragged features.
    kind = dict(output_types=[tf.int64, tf.variant], output_shapes=[None] * 2)
    d = parsed(R.ParseExampleDatasetV2, examples(), sparse_keys=[], sparse_types=[], dense_keys=["n"], dense_shapes=[[]],
               dense_defaults=[np.int64([])], ragged_keys=["s"], ragged_value_types=[tf.string], ragged_split_types=[tf.int32], **kind)
    it = R.IteratorV2(shared_name="", container="", **kind)
    c.run(target=[R.MakeIterator(dataset=as_written(d, **{"types": kind["output_types"], "shapes": kind["output_shapes"]}), iterator=it)])
    n, s = R.IteratorGetNext(iterator=it, **kind)
    splits, values = R.RaggedTensorFromVariant(encoded_ragged=s, input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.string,
                                               Tsplits=tf.int32)
    c.run(fetch=[n, splits[0], values], repeat=4)
    c.run(fetch=[R.DatasetCardinality(input_dataset=d)])


@case
def auto_shard(c):
    @defun(tf.int64)
    def twice(x):
        return x * 2

    @defun(tf.string)
    def read(name):
        return R.TextLineDataset(filenames=name, compression_type="", buffer_size=0)

    mapped = R.MapDataset(input_dataset=numbers(), other_arguments=[], f=twice, **INTS)
    for op in both("AutoShardDataset"):
        for policy in (-1, 0, 2, 3):
            ints(c, op(input_dataset=mapped, num_workers=3, index=1, auto_shard_policy=policy, **INTS))
        for workers, index in ((0, 0), (2, 2), (2, -1), (1, 0)):
            ints(c, op(input_dataset=mapped, num_workers=workers, index=index, **INTS))
        names = tf.placeholder(tf.string, [None])
        kind = dict(output_types=[tf.string], output_shapes=[[]])
        source = R.TensorSliceDataset(components=[names], output_shapes=[[]])
        lines = R.FlatMapDataset(input_dataset=source, other_arguments=[], f=read, **kind)
        for policy in (0, 1, 2):
            d = op(input_dataset=R.TakeDataset(input_dataset=lines, count=9, **kind), num_workers=2, index=1,
                   auto_shard_policy=policy, **kind)
            strings(c, d, {names: ["$DIR/a.txt", "$DIR/b.txt", "$DIR/a.txt"]})


@case
def global_shuffle(c):
    def shuffled(dataset, seed=1, again=False):
        return R.GlobalShuffleDataset(input_dataset=dataset, seed=seed, seed2=2, seed_generator=R.DummySeedGenerator(),
                                      reshuffle_each_iteration=again, **INTS)

    @defun(tf.int64)
    def twice(x):
        return x * 2

    @defun(tf.int64)
    def big(x):
        return x > 3

    mapped = R.MapDataset(input_dataset=numbers(), other_arguments=[], f=twice, preserve_cardinality=True, **INTS)
    for dataset in (numbers(), numbers(1), numbers(300), mapped):
        ints(c, shuffled(dataset))
    ints(c, shuffled(numbers(), -7))
    ints(c, R.RepeatDataset(input_dataset=shuffled(numbers(4), again=True), count=3, **INTS))
    ints(c, shuffled(R.FilterDataset(input_dataset=numbers(), other_arguments=[], predicate=big, **INTS)))


@case
def weighted_flat_map(c):
    for counts, weights in (((10, 10), (0.25, 0.75)), ((10, 10), (1, 1)), ((10, 10, 5), (1, 2, 0.5)), ((10, 10), (1, 0))):
        d = R.WeightedFlatMapDataset(input_datasets=[numbers(n) for n in counts], weights=[np.float64(w) for w in weights], **INTS)
        ints(c, d)


# What is saved and continued.
def reduced():
    from tensorflow.python.data.experimental.ops import grouping
    return D.range(10).apply(grouping.group_by_reducer(lambda x: x % 5, grouping.Reducer(
        lambda k: np.int64(0), lambda s, x: s + x, lambda s: s)))


for _name, _make in {
        "list": lambda: tf.data.experimental.from_list([np.int64(i) for i in range(6)]),
        "random_again": lambda: D.random(seed=4, rerandomize_each_iteration=False).take(9),
        "reduced": reduced}.items():
    saved_case(_name, _make)


def flat(n, cardinality, find=None):
    @defun(tf.int64)
    def make(x):
        return tf.stack([x, 10 * x])

    @defun(tf.int64)
    def place(i):
        return i // 2, i % 2

    return R.IndexFlatMapDataset(
        input_dataset=numbers(n), map_func_other_args=[], index_map_func_other_args=[], output_cardinality=cardinality,
        map_func=make, index_map_func=find or place, **INTS)


@case
def index_flat_map(c):
    for cardinality in (8, 5, -2):
        ints(c, flat(4, cardinality))
        c.run(fetch=[R.DatasetCardinality(input_dataset=flat(4, cardinality))])
    ints(c, flat(0, 0))

    @defun(tf.int64)
    def same(x):
        return x

    @defun(tf.int64, tf.int64)
    def halves(i, n):
        return i // n, i % n

    ints(c, R.IndexFlatMapDataset(
        input_dataset=numbers(3), map_func_other_args=[], index_map_func_other_args=[np.int64(2)], output_cardinality=6,
        map_func=same, index_map_func=halves, **INTS))

    @defun(tf.int64)
    def three(i):
        return i, i, i

    ints(c, flat(4, 8, three), repeat=1)
    generator, _ = R.AnonymousSeedGenerator(seed=1, seed2=2, reshuffle=False)
    ints(c, R.GlobalShuffleDataset(input_dataset=flat(4, 8), seed=1, seed2=2, seed_generator=generator, **INTS))


def branches(numerator=1, denominator=1, per_branch=2, n=7):
    @defun(tf.int64)
    def double(x):
        return 2 * x

    @defun(tf.variant)
    def first(d):
        return R.MapDataset(input_dataset=d, other_arguments=[], f=double, **INTS)

    @defun(tf.variant, tf.int64)
    def second(d, unused):
        return R.MapDataset(input_dataset=d, other_arguments=[], f=double, **INTS)

    return R.ChooseFastestBranchDataset(
        input_dataset=numbers(n), ratio_numerator=numerator, ratio_denominator=denominator, other_arguments=[np.int64(3)],
        num_elements_per_branch=per_branch, branches=[first, second], other_arguments_lengths=[0, 1], **INTS)


@case
def choose_fastest_branch(c):
    for per_branch in (1, 2, 100):
        ints(c, branches(per_branch=per_branch))
    ints(c, branches(n=0))
    c.run(fetch=[R.DatasetCardinality(input_dataset=branches())])
    c.run(fetch=[R.DatasetCardinality(input_dataset=branches(2, 1))])
    for numerator, denominator in ((0, 1), (1, 0), (1, 4)):
        ints(c, branches(numerator, denominator), repeat=1)


@case
def stats_to_a_writer(c):
    h = R.StatsAggregatorHandleV2(container="", shared_name="second version")
    d = R.SetStatsAggregatorDataset(
        input_dataset=R.BytesProducedStatsDataset(input_dataset=numbers(5), tag="bytes", **INTS), stats_aggregator=h, tag="t",
        counter_prefix="p", **INTS)
    ints(c, d)
    c.run(fetch=[R.StatsAggregatorSummary(iterator=h)])
