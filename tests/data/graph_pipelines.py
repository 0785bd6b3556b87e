"""Pipelines that become graphs, and datasets again."""
import numpy as np
import tensorflow.compat.v1 as tf

from recorder import INTS, VECTORS, case, defun, ints, raw

R = tf.raw_ops


def numbers(n=10):
    return R.RangeDataset(start=0, stop=n, step=1, **INTS)


def again(dataset, **policy):
    return R.DatasetFromGraph(graph_def=R.DatasetToGraphV2(input_dataset=dataset, **policy))


def mapped(dataset, captured=()):
    @defun(tf.int64, *[tf.int64] * len(captured))
    def add(x, *others):
        return tf.add_n([x * 2, *others])
    return R.MapDataset(input_dataset=dataset, other_arguments=list(captured), f=add, **INTS)


@case
def graphs_of_datasets(c):
    ints(c, again(numbers()))
    ints(c, again(mapped(numbers(), [np.int64(5)])))
    ints(c, again(again(mapped(mapped(numbers())))))
    both = R.ConcatenateDataset(input_dataset=numbers(3), another_dataset=mapped(numbers(4)), **INTS)
    ints(c, again(R.RepeatDataset(input_dataset=both, count=2, **INTS)))
    shuffled = R.ShuffleDatasetV3(input_dataset=numbers(), buffer_size=5, seed=3, seed2=4, seed_generator=R.DummySeedGenerator(),
                                  reshuffle_each_iteration=False, **INTS)
    ints(c, again(shuffled))
    raw(c, again(R.BatchDatasetV2(input_dataset=numbers(), batch_size=4, drop_remainder=False, **VECTORS)), [tf.int64], [[None]])
    ints(c, R.DatasetFromGraph(graph_def=R.DatasetToGraph(input_dataset=numbers(2))))
    words = R.TensorSliceDataset(components=[tf.constant([b"a", b"\x00\xff", b""])], output_shapes=[[]])
    raw(c, again(words), [tf.string], [[]])


@case
def graphs_with_state(c):
    @defun(tf.int64)
    def noisy(x):
        return x + tf.random.uniform([], 0, 5, tf.int64)
    dataset = R.MapDataset(input_dataset=numbers(2), other_arguments=[], f=noisy, **INTS)
    for policy in (0, 1):
        c.run(fetch=[R.DatasetCardinality(input_dataset=again(dataset, external_state_policy=policy))])


@case
def graphs_that_make_no_dataset(c):
    empty = tf.GraphDef().SerializeToString()
    ints(c, R.DatasetFromGraph(graph_def=tf.constant(empty)), repeat=1)
