"""Strategies and eager collectives over several GPUs: virtual devices of one card. What CPUs come to is the reference."""

import threading

import numpy as np
import pytest
import runnel.compat.v2 as tf

tf.compat.v1.enable_v2_behavior()

N = 3

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration() for _ in range(N)]
)
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("GPU")[0], [tf.config.LogicalDeviceConfiguration(memory_limit=200) for _ in range(N)]
)


def devices(kind):
    return ["/device:%s:%d" % (kind, i) for i in range(N)]


def on_devices(kind, call):
    """The results of `call(i)` on each device, by a thread each."""
    results, errors = [None] * N, []

    def run(i):
        try:
            with tf.device(devices(kind)[i]):
                results[i] = call(i)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(N)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors, errors
    return results


VALUES = [np.random.RandomState(i).uniform(-1, 1, 1500001).astype("float32") for i in range(N)]


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_eager(kind):
    group = {"CPU": 30, "GPU": 31}[kind]
    reference = ((VALUES[0] + VALUES[1]) + VALUES[2]) / np.float32(N)
    for turn in range(2):
        sums = on_devices(kind, lambda i: tf.raw_ops.CollectiveReduceV2(
            input=tf.constant(VALUES[i]), ordering_token=[], merge_op="Add", final_op="Div", group_size=N, group_key=group,
            instance_key=turn))
        for i, one in enumerate(sums):
            assert one.device.endswith(devices(kind)[i])
            np.testing.assert_array_equal(one.numpy(), reference)


def test_function():
    """Members in one function, on three devices."""

    @tf.function
    def step(scale):
        outs = []
        for i in range(N):
            with tf.device(devices("GPU")[i]):
                # In TensorFlow, side effects of the second version are in program order: the first member would wait for ever.
                mean = tf.raw_ops.CollectiveReduce(
                    input=tf.constant(VALUES[i][:1000]) * scale, merge_op="Add", final_op="Div", group_size=N, group_key=32,
                    instance_key=1, subdiv_offsets=[0])
                outs.append(mean + 1.0)
        return outs

    for turn in range(4):
        scale = np.float32(turn + 1)
        want = sum(value[:1000] * scale for value in VALUES) / np.float32(N) + np.float32(1)
        for one in step(tf.constant(scale)):
            np.testing.assert_allclose(one.numpy(), want, rtol=1e-5, atol=1e-6)


def losses(kind, in_function, cross_device_ops=None):
    """A small network on batches that are divided between the replicas."""
    strategy = tf.distribute.MirroredStrategy(devices(kind), cross_device_ops=cross_device_ops)
    random = np.random.RandomState(5)
    x = random.rand(24, 6).astype("float32")
    y = (x.sum(1, keepdims=True) ** 2).astype("float32")
    with strategy.scope():
        w1 = tf.Variable(random.rand(6, 8).astype("float32") - 0.5)
        w2 = tf.Variable(random.rand(8, 1).astype("float32") - 0.5)
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(12).repeat(4))

    def replica_step(batch):
        inputs, targets = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(tf.tanh(tf.matmul(inputs, w1)), w2) - targets)) / 12.0
        gradients = tape.gradient(loss, [w1, w2])
        total = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        for variable, gradient in zip((w1, w2), total):
            variable.assign_sub(0.02 * gradient)
        return loss

    def step(batch):
        per_replica = strategy.run(replica_step, args=(batch,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)

    if in_function:
        step = tf.function(step)
    results = [float(step(batch)) for batch in dataset]
    for copy, device in zip(strategy.experimental_local_results(w1), devices(kind)):
        assert copy.device.endswith(device), (copy.device, device)
        np.testing.assert_allclose(copy.numpy(), strategy.experimental_local_results(w1)[0].numpy(), rtol=0)
    return results


@pytest.mark.parametrize("in_function", [False, True])
def test_mirrored(in_function):
    on_gpus = losses("GPU", in_function)
    np.testing.assert_allclose(on_gpus, losses("CPU", in_function), rtol=1e-4)
    assert on_gpus[-1] < on_gpus[0] / 2


@pytest.mark.parametrize("make", [tf.distribute.NcclAllReduce, tf.distribute.HierarchicalCopyAllReduce])
def test_cross_device_ops(make):
    np.testing.assert_allclose(losses("GPU", True, make()), losses("CPU", True), rtol=1e-4)
