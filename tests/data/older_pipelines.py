"""Pipelines of older ops, and of ops that Python adds elsewhere; iterators that are saved."""
import numpy as np
import tensorflow.compat.v1 as tf

from recorder import D, INTS, VECTORS, as_written, case, defun, ints, raw


# Ops of older graphs, and ops that Python adds elsewhere.
@case
def old_batches(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INTS)
    raw(c, tf.raw_ops.BatchDataset(input_dataset=r, batch_size=3, **VECTORS), [tf.int64], [[None]])
    raw(c, tf.raw_ops.PaddedBatchDataset(
        input_dataset=tf.raw_ops.BatchDataset(input_dataset=r, batch_size=3, **VECTORS),
        batch_size=2, padded_shapes=[np.int64([4])], padding_values=[np.int64(9)],
        output_shapes=[[None, 4]]), [tf.int64], [[None, 4]])


@case
def old_maps(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INTS)

    @defun(tf.int64, tf.int64)
    def add(x, y):
        return x + y

    @defun(tf.int64)
    def odd(x):
        return tf.equal(x % 2, 1)

    @defun(tf.int64)
    def row(x):
        return tf.raw_ops.RepeatDataset(input_dataset=tf.raw_ops.TensorDataset(
            components=[x], output_shapes=[[]]), count=x, **INTS)

    ints(c, tf.raw_ops.ParallelMapDataset(input_dataset=r, other_arguments=[np.int64(5)],
                                          num_parallel_calls=2, f=add, **INTS))
    ints(c, tf.raw_ops.MapDataset(input_dataset=r, other_arguments=[np.int64(5)], f=add, **INTS))
    ints(c, tf.raw_ops.ParallelFilterDataset(input_dataset=r, other_arguments=[], predicate=odd,
                                             num_parallel_calls=2, **INTS))
    # The variant of a dataset cannot be returned by all functions of old; those that can are here.
    for op, more in ((tf.raw_ops.ParallelInterleaveDatasetV2, dict(num_parallel_calls=2)),
                     (tf.raw_ops.ParallelInterleaveDatasetV3, dict(num_parallel_calls=2)),
                     (tf.raw_ops.LegacyParallelInterleaveDatasetV2,
                      dict(buffer_output_elements=1, prefetch_input_elements=0,
                           deterministic="true"))):
        ints(c, op(input_dataset=r, other_arguments=[], cycle_length=2, block_length=1, f=row,
                   **more, **INTS))


@case
def old_records(c):
    p = tf.placeholder(tf.string, [None])
    d = tf.raw_ops.FixedLengthRecordDataset(filenames=p, header_bytes=2, record_bytes=4,
                                            footer_bytes=3, buffer_size=0)
    it = tf.raw_ops.IteratorV2(shared_name="", container="", output_types=[tf.string],
                               output_shapes=[[]])
    d = as_written(d, [tf.string], [[]])
    c.run(target=[tf.raw_ops.MakeIterator(dataset=d, iterator=it)], feed={p: ["$DIR/fixed.bin"]})
    c.run(fetch=tf.raw_ops.IteratorGetNextSync(iterator=it, output_types=[tf.string],
                                               output_shapes=[[]]), repeat=9)
    d = tf.raw_ops.TFRecordDatasetV2(filenames=p, compression_type="", buffer_size=0,
                                     byte_offsets=np.int64([21]))
    it = tf.raw_ops.Iterator(shared_name="", container="", output_types=[tf.string],
                             output_shapes=[[]])
    d = as_written(d, [tf.string], [[]])
    c.run(target=[tf.raw_ops.MakeIterator(dataset=d, iterator=it)], feed={p: ["$DIR/a.tfrecord"]})
    c.run(fetch=tf.raw_ops.IteratorGetNext(iterator=it, output_types=[tf.string],
                                           output_shapes=[[]]), repeat=9)


@case
def shared_seeds(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INTS)
    for changes in (True, False):
        h, d = tf.raw_ops.AnonymousSeedGenerator(seed=3, seed2=4, reshuffle=changes)
        s2 = tf.raw_ops.ShuffleDatasetV2(input_dataset=r, buffer_size=4, seed_generator=h, **INTS)
        s3 = tf.raw_ops.ShuffleDatasetV3(input_dataset=r, buffer_size=4, seed=3, seed2=4,
                                         seed_generator=h, **INTS)
        s4 = tf.raw_ops.ShuffleAndRepeatDatasetV2(input_dataset=r, buffer_size=4, seed=3, seed2=4,
                                                  count=2, seed_generator=h, **INTS)
        both = tf.raw_ops.ConcatenateDataset(input_dataset=s2, another_dataset=s3, **INTS)
        both = tf.raw_ops.ConcatenateDataset(input_dataset=both, another_dataset=s4, **INTS)
        with tf.control_dependencies([both]):
            end = tf.raw_ops.DeleteSeedGenerator(handle=h, deleter=d)
        ints(c, tf.raw_ops.RepeatDataset(input_dataset=both, count=2, **INTS), repeat=60)
        del end
    s3 = tf.raw_ops.ShuffleDatasetV3(input_dataset=r, buffer_size=4, seed=3, seed2=4,
                                     seed_generator=tf.raw_ops.DummySeedGenerator(), **INTS)
    ints(c, tf.raw_ops.RepeatDataset(input_dataset=s3, count=3, **INTS))


@case
def caches(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=3, step=1, **INTS)
    for handle in (tf.raw_ops.DummyMemoryCache(), tf.raw_ops.AnonymousMemoryCache()[0]):
        d = tf.raw_ops.CacheDatasetV2(input_dataset=r, filename="", cache=handle, **INTS)
        ints(c, tf.raw_ops.RepeatDataset(input_dataset=d, count=2, **INTS))
    d = tf.raw_ops.CacheDataset(input_dataset=r, filename="", **INTS)
    ints(c, tf.raw_ops.RepeatDataset(input_dataset=d, count=2, **INTS))


@case
def deleted(c):
    h, d = tf.raw_ops.AnonymousMemoryCache()
    c.run(target=[tf.raw_ops.DeleteMemoryCache(handle=h, deleter=d)], beyond=True)
    h, d = tf.raw_ops.AnonymousRandomSeedGenerator(seed=1, seed2=2)
    c.run(target=[tf.raw_ops.DeleteRandomSeedGenerator(handle=h, deleter=d)], beyond=True)


@case
def nameless(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=3, step=1, **INTS)
    one = tf.raw_ops.AnonymousIterator(**INTS)
    two = tf.raw_ops.AnonymousIteratorV2(**INTS)
    three = tf.raw_ops.AnonymousIteratorV3(**INTS)
    for h in (one, two.handle, three):
        with tf.control_dependencies([tf.raw_ops.MakeIterator(dataset=r, iterator=h)]):
            a = tf.raw_ops.IteratorGetNext(iterator=h, **INTS)[0]
        with tf.control_dependencies([a]):
            b = tf.raw_ops.IteratorGetNext(iterator=h, **INTS)[0]
        fetch = [a, b]
        if h is two.handle:
            with tf.control_dependencies([b]):
                end = tf.raw_ops.DeleteIterator(handle=h, deleter=two.deleter)
            c.run(fetch=fetch, target=[end])
        c.run(fetch=fetch, repeat=2)


@case
def multi_device(c):
    def make(h, count):
        return tf.raw_ops.MultiDeviceIteratorInit(
            dataset=as_written(tf.raw_ops.RangeDataset(start=0, stop=count, step=1, **INTS),
                               [tf.int64], [[]]), multi_device_iterator=h, max_buffer_size=3)

    devices = ["/cpu:0", "/cpu:1"]
    h = tf.raw_ops.MultiDeviceIterator(devices=devices, shared_name="m", container="", **INTS)
    shard = tf.placeholder(tf.int32, [])
    incarnation = tf.placeholder(tf.int64, [])
    e = tf.raw_ops.MultiDeviceIteratorGetNextFromShard(
        multi_device_iterator=h, shard_num=shard, incarnation_id=incarnation, **INTS)
    text = tf.raw_ops.MultiDeviceIteratorToStringHandle(multi_device_iterator=h)
    e2 = tf.raw_ops.MultiDeviceIteratorGetNextFromShard(
        multi_device_iterator=tf.raw_ops.MultiDeviceIteratorFromStringHandle(
            string_handle=text, **INTS), shard_num=shard, incarnation_id=incarnation, **INTS)
    start = make(h, 9)
    c.run(fetch=[start])
    for n, fetch in ((0, e), (1, e), (1, e2), (1, e), (0, e2), (0, e), (0, e), (0, e), (0, e),
                     (1, e), (1, e), (1, e)):
        c.run(fetch=fetch, feed={shard: np.int32(n), incarnation: np.int64(1)})
    c.run(fetch=e, feed={shard: np.int32(0), incarnation: np.int64(7)})
    c.run(fetch=[start])
    c.run(fetch=e, feed={shard: np.int32(0), incarnation: np.int64(2)})
    for h in (tf.raw_ops.AnonymousMultiDeviceIterator(devices=devices, **INTS).handle,
              tf.raw_ops.AnonymousMultiDeviceIteratorV3(devices=devices, **INTS)):
        a = tf.raw_ops.MultiDeviceIteratorGetNextFromShard(
            multi_device_iterator=h, shard_num=0, incarnation_id=make(h, 4), **INTS)
        c.run(fetch=a, repeat=2)
    h, d = tf.raw_ops.AnonymousMultiDeviceIterator(devices=devices, **INTS)
    c.run(target=[tf.raw_ops.DeleteMultiDeviceIterator(multi_device_iterator=h, iterators=[],
                                                       deleter=d)], beyond=True)


@case
def unchanged(c):
    d = tf.raw_ops.RangeDataset(start=0, stop=3, step=1, **INTS)
    d = tf.raw_ops.OptionsDataset(input_dataset=d, serialized_options="", **INTS)
    d = tf.raw_ops.ModelDataset(input_dataset=d, **INTS)
    d = tf.raw_ops.OptimizeDataset(input_dataset=d, optimizations=[], **INTS)
    d = tf.raw_ops.OptimizeDatasetV2(input_dataset=d, optimizations_enabled=[],
                                     optimizations_disabled=[], optimizations_default=[], **INTS)
    d = tf.raw_ops.FinalizeDataset(input_dataset=d, **INTS)
    d = tf.raw_ops.UnwrapDatasetVariant(input_handle=tf.raw_ops.WrapDatasetVariant(input_handle=d))
    c.run(fetch=[tf.raw_ops.DatasetCardinality(input_dataset=d)])
    c.run(fetch=[tf.raw_ops.GetOptions(input_dataset=d)])
    ints(c, d)


@case
def generator(c):
    v = tf.get_variable("v", initializer=np.int64(0), use_resource=True)

    @defun()
    def init():
        return tf.constant(np.int64(10))

    @defun(tf.int64, tf.resource)
    def following(state, handle):
        n = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
        with tf.control_dependencies([n]):
            step = tf.raw_ops.AssignAddVariableOp(resource=handle, value=np.int64(1))
        with tf.control_dependencies([step]):
            return state + n

    @defun(tf.int64)
    def last(state):
        return state

    d = tf.raw_ops.GeneratorDataset(
        init_func_other_args=[], next_func_other_args=[v.handle], finalize_func_other_args=[],
        init_func=init, next_func=following, finalize_func=last, **INTS)
    c.run(target=[v.initializer])
    ints(c, tf.raw_ops.TakeDataset(input_dataset=d, count=4, **INTS))


@case
def generator_of_queue(c):
    """It ends when the queue that it takes from is closed."""
    queue = tf.FIFOQueue(9, [tf.int64], [[]], name="q")

    @defun()
    def init():
        return tf.constant(np.int64(0))

    @defun(tf.int64, tf.resource)
    def following(state, handle):
        return state + tf.raw_ops.QueueDequeueV2(handle=handle, component_types=[tf.int64])[0]

    @defun(tf.int64)
    def last(state):
        return state

    d = tf.raw_ops.GeneratorDataset(
        init_func_other_args=[], next_func_other_args=[queue.queue_ref],
        finalize_func_other_args=[], init_func=init, next_func=following, finalize_func=last, **INTS)
    c.run(target=[queue.enqueue_many([np.int64([4, 5, 6])])])
    c.run(target=[queue.close()])
    ints(c, d)


# Iterators whose state is saved, and who go on from there. The state is the library's own.
SAVED = {
    "range": lambda: D.range(8),
    "map": lambda: D.range(8).map(lambda x: x * x),
    "parallel_map": lambda: D.range(12).map(lambda x: x * x, num_parallel_calls=3),
    "batch": lambda: D.range(14).batch(2),
    "padded": lambda: D.range(1, 9).map(lambda x: tf.fill([x], x)).padded_batch(2, [None]),
    "shuffle": lambda: D.range(12).shuffle(5, seed=3),
    "shuffle_repeat": lambda: D.range(5).shuffle(3, seed=3).repeat(3),
    "repeat": lambda: D.range(3).repeat(4),
    "prefetch": lambda: D.range(9).prefetch(3),
    "interleave": lambda: D.range(1, 6).interleave(lambda x: D.from_tensors(x).repeat(x), 2, 2),
    "interleave_parallel": lambda: D.range(1, 6).interleave(
        lambda x: D.from_tensors(x).repeat(x), 3, 2, num_parallel_calls=2),
    "flat_map": lambda: D.range(5).flat_map(lambda x: D.range(x)),
    "zip": lambda: D.zip((D.range(9), D.range(20, 30).take(8))),
    "concatenate": lambda: D.range(3).concatenate(D.range(10, 15)),
    "filter": lambda: D.range(20).filter(lambda x: tf.equal(x % 2, 0)),
    "scan": lambda: D.range(9).apply(tf.data.experimental.scan(
        np.int64(1), lambda s, x: (s + x, s))),
    "cache": lambda: D.range(3).cache().repeat(3),
    "window": lambda: D.range(14).window(3, 2).flat_map(lambda w: w.batch(3)),
    "unbatch": lambda: D.range(9).batch(4).apply(tf.data.experimental.unbatch()),
    "skip_take": lambda: D.range(20).skip(2).take(9).shard(2, 0),
    "slices": lambda: D.from_tensor_slices(np.array([b"a", b"b", b"c", b"d", b"e", b"f"])),
    "unique": lambda: D.from_tensor_slices(np.int64([1, 2, 1, 3, 4, 2, 5, 6])).apply(
        tf.data.experimental.unique()),
    "take_while": lambda: D.range(9).apply(tf.data.experimental.take_while(lambda x: x < 7)),
    "random": lambda: tf.data.experimental.RandomDataset(seed=7).take(8),
    "pipeline": lambda: D.range(40).map(lambda x: x + 1, num_parallel_calls=2).shuffle(6, seed=8)
                         .batch(3).prefetch(2),
}


def saved_case(name, make):
    def record(c):
        from tensorflow.python.ops import gen_dataset_ops as ops
        it = tf.data.make_initializable_iterator(make())
        e = tf.nest.flatten(it.get_next())
        handle = it._iterator_resource
        state = ops.serialize_iterator(handle)
        queue = tf.FIFOQueue(2, [tf.variant], name="states")
        put, got = queue.enqueue(state), queue.dequeue()
        restore = ops.deserialize_iterator(handle, got)
        c.run(target=[it.initializer])
        c.run(fetch=e, repeat=3)
        c.run(target=[put])
        c.run(fetch=e, repeat=20)
        c.run(target=[it.initializer])
        c.run(fetch=e, repeat=1)
        c.run(target=[restore])
        c.run(fetch=e, repeat=20)
    record.__name__ = "saved_" + name
    case(record)


for _name, _make in SAVED.items():
    saved_case(_name, _make)
