"""A program of MultiWorkerMirroredStrategy. Each of its processes gets TF_CONFIG, and prints its results as JSON.

test_v2_multi_worker.py runs it here and in stock.
"""

import json
import sys

import numpy as np
import tensorflow as tf


def plain(x):
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(value) for value in x]
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x).tolist()


def variables(strategy, results):
    offset = strategy.cluster_resolver.task_id  # the first process decides what variables begin with
    with strategy.scope():
        v = tf.Variable([1.0 + offset, 2.0 + offset], name="v")
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        first = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        count, average = [tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=how, trainable=False)
                          for how in (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN)]
    results["initial"] = [plain(v), v.name, v.device]

    def step():
        n = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1.0
        total.assign_add(n)
        mean.assign(n)
        first.assign(n * 10)
        count.assign_add(n)
        average.assign(n)
        return v * n + count
    results["steps"] = plain([strategy.experimental_local_results(strategy.run(step)),
                              strategy.experimental_local_results(tf.function(lambda: strategy.run(step))())])
    results["variables"] = plain([total, mean, first, count.read_value(), average.read_value()])


def reductions(strategy, results):
    x = strategy.experimental_distribute_values_from_function(lambda c: tf.constant([1.0, 2.0]) * (c.replica_id_in_sync_group + 1.0))
    uneven = strategy.experimental_distribute_values_from_function(
        lambda c: tf.ones([c.replica_id_in_sync_group + 1, 2]) * (c.replica_id_in_sync_group + 1.0))

    def step(value):
        value = value * 1.0
        context = tf.distribute.get_replica_context()
        n = context.replica_id_in_sync_group
        with tf.GradientTape() as tape:
            tape.watch(value)
            y = tf.reduce_sum(context.all_reduce("SUM", value * value) * value)
        slices = context.all_reduce("SUM", tf.IndexedSlices(tf.ones([2, 3]) * tf.cast(n + 1, tf.float32), tf.constant([0, 1]) + n, tf.constant([8, 3])))
        return [context.all_reduce("SUM", value), *context.all_reduce("MEAN", [value, value * 2]), context.all_gather(value, 0),
                tape.gradient(y, value), tf.math.unsorted_segment_sum(slices.values, slices.indices, 8)]
    results["all_reduce"] = [plain(strategy.experimental_local_results(r)) for r in tf.function(lambda q: strategy.run(step, (q,)))(x)]
    results["reduce"] = plain([strategy.reduce("SUM", x, axis=None), strategy.reduce("MEAN", x, axis=None), strategy.reduce("SUM", x, axis=0),
                               strategy.reduce("MEAN", x, axis=0), strategy.gather(x, 0), strategy.gather(uneven, 0), strategy.reduce("MEAN", uneven, axis=0)])


def datasets(strategy, results):
    def rows(dataset):
        return [plain(strategy.experimental_local_results(element)) for element in dataset]
    for n, size in ((16, 4), (14, 4), (10, 3)):
        results["batches of %d: %d" % (n, size)] = rows(strategy.experimental_distribute_dataset(tf.data.Dataset.range(n).batch(size)))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    results["undivided"] = rows(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4).with_options(options)))
    results["own"] = rows(strategy.distribute_datasets_from_function(
        lambda c: tf.data.Dataset.range(12).shard(c.num_input_pipelines, c.input_pipeline_id).batch(c.get_per_replica_batch_size(4))))
    # One process has no data any more while the other still has some.
    results["uneven"] = rows(strategy.distribute_datasets_from_function(lambda c: tf.data.Dataset.range(4 if c.input_pipeline_id else 8).batch(2)))


def training(strategy, results):
    with strategy.scope():
        w = tf.Variable([[1.0], [2.0]])
    x = np.arange(16, dtype="float32").reshape(8, 2) / 10
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(4).repeat(3))

    def step(data):
        rows, labels = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((rows @ w - labels) ** 2) / 4
        w.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, w)))
        return loss

    @tf.function
    def train(iterator):
        return strategy.reduce("SUM", strategy.run(step, args=(next(iterator),)), axis=None)

    @tf.function
    def train_all():
        total = 0.0
        for data in dataset:
            total += strategy.reduce("SUM", strategy.run(step, args=(data,)), axis=None)
        return total
    iterator = iter(dataset)
    results["losses"] = [plain(train(iterator)) for _ in range(6)]
    results["loss of an epoch"] = plain(train_all())
    results["weights"] = plain(w)


def main():
    strategy, results = tf.distribute.MultiWorkerMirroredStrategy(), {}
    extended = strategy.extended
    results["strategy"] = [strategy.num_replicas_in_sync, strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id, extended.should_checkpoint,
                           extended.should_save_summary, extended.experimental_between_graph, list(extended.worker_devices), list(extended.parameter_devices)]
    for part in (variables, reductions, datasets, training):
        part(strategy, results)
    print(json.dumps(results), file=sys.stdout, flush=True)


main()
