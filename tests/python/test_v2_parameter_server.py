"""ParameterServerStrategy and ClusterCoordinator on our servers: results, errors, and tasks that end and come back."""

import json
import os
import subprocess

import numpy as np
import pytest
import runnel.v2 as tf
from runnel.eager import contexts
from support.ports import free_ports

RUNNEL = os.path.join(os.environ["RUNNEL_BUILD"], "cli", "runnel")


class Cluster:
    """Two workers and two parameter servers."""

    def __init__(self):
        ports = free_ports(4)
        self.jobs = {"worker": ["127.0.0.1:%d" % port for port in ports[:2]], "ps": ["127.0.0.1:%d" % port for port in ports[2:]]}
        self.tasks = {}
        for task in (("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1)):
            self.start(*task)

    def start(self, job, index):
        # This process is no task of the cluster, so tasks may connect to it only if they may connect to anyone.
        command = [RUNNEL, "server", "--cluster", json.dumps(self.jobs), "--job", job, "--task", str(index), "--allow", "all"]
        self.tasks[job, index] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.tasks[job, index].stdout.readline()  # it is ready

    def kill(self, job, index):
        task = self.tasks.pop((job, index))
        task.kill()
        task.wait()
        task.stdout.close()

    def resolver(self):
        return tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(self.jobs), rpc_layer="grpc")


@pytest.fixture
def cluster():
    contexts._reset_context()
    made = Cluster()
    yield made
    for task in list(made.tasks):
        made.kill(*task)
    contexts._reset_context()


def begin(cluster, partitioner=None):
    strategy = tf.distribute.ParameterServerStrategy(cluster.resolver(), partitioner)
    return strategy, tf.distribute.coordinator.ClusterCoordinator(strategy)


def test_calls(cluster):
    strategy, coordinator = begin(cluster)
    with strategy.scope():
        scale, count, other = tf.Variable(2.0), tf.Variable(0, dtype=tf.int64), tf.Variable(1.0)
    assert [v.device for v in (scale, count, other)] == ["/job:ps/replica:0/task:%d/device:CPU:0" % i for i in (0, 1, 0)]
    assert strategy.num_replicas_in_sync == 1 and tf.distribute.coordinator.ClusterCoordinator(strategy) is coordinator

    @tf.function
    def f(x):
        count.assign_add(1)
        return {"y": x * scale + other, "worker": tf.constant(tf.distribute.coordinator.experimental_get_current_worker_index())}
    results = [coordinator.schedule(f, args=(tf.constant(float(i)),)) for i in range(6)]
    coordinator.join()
    assert coordinator.done() and count.numpy() == 6
    assert [r["y"] for r in coordinator.fetch(results)] == [2.0 * i + 1 for i in range(6)]
    assert results[3].get()["y"].numpy() == 7 and "/job:worker/" not in results[3].get()["y"].device
    later = coordinator.schedule(lambda value: value["y"] * 10.0, args=(results[1],))  # a Python function, with a remote value
    assert later.fetch() == 30
    with pytest.raises(RuntimeError, match="worker index"):
        tf.distribute.coordinator.experimental_get_current_worker_index()


def test_training(cluster):
    """One step at a time is gradient descent, as NumPy does it."""
    strategy, coordinator = begin(cluster)
    x = np.arange(16, dtype="float32").reshape(8, 2) / 10
    y = x.sum(1, keepdims=True)
    with strategy.scope():
        w = tf.Variable([[1.0], [2.0]])

    def dataset():
        return tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a * 2.0, b * 2.0)).repeat().batch(8)
    iterator = iter(coordinator.create_per_worker_dataset(dataset))

    @tf.function
    def step(iterator):
        def replica(rows, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((rows @ w - labels) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss
        return strategy.run(replica, args=next(iterator))
    expected, losses = np.array([[1.0], [2.0]], "float32"), []
    for _ in range(4):
        loss = coordinator.schedule(step, args=(iterator,))
        coordinator.join()
        error = 2 * x @ expected - 2 * y
        losses.append((loss.fetch(), (error**2).mean()))
        expected = expected - 0.1 * 2 * (2 * x).T @ error / 8
    np.testing.assert_allclose(*zip(*losses), rtol=1e-5)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5)


def test_errors(cluster):
    strategy, coordinator = begin(cluster)

    @tf.function
    def f(x):
        with tf.control_dependencies([tf.debugging.assert_less(x, 3.0)]):
            return tf.identity(x)
    with pytest.raises(tf.errors.InvalidArgumentError):
        for i in range(8):
            coordinator.schedule(f, args=(tf.constant(float(i)),))
        coordinator.join()
    coordinator.join()  # the error was told
    assert coordinator.schedule(f, args=(tf.constant(1.0),)).fetch() == 1
    with pytest.raises(ZeroDivisionError):
        coordinator.schedule(lambda: 1 // 0)
        coordinator.join()
    broken = iter(coordinator.create_per_worker_dataset(lambda: 1 // 0))  # the calls that need it fail, none waits
    with pytest.raises(ZeroDivisionError):
        coordinator.schedule(lambda iterator: next(iterator), args=(broken,))
        coordinator.join()
    for call, error in ((lambda: tf.distribute.coordinator.ClusterCoordinator(tf.distribute.get_strategy()), ValueError),
                        (lambda: coordinator.schedule(3), TypeError), (lambda: strategy.experimental_distribute_dataset(tf.data.Dataset.range(3)), ValueError),
                        (lambda: tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.SimpleClusterResolver(
                            tf.train.ClusterSpec({"worker": ["a:1"]}))), ValueError)):
        with pytest.raises(error):
            call()


def test_lost_worker(cluster):
    """Calls of a worker that ends run elsewhere; when it is back, it gets its iterator again and more calls."""
    strategy, coordinator = begin(cluster)
    with strategy.scope():
        scale = tf.Variable(2.0)
    iterator = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors(1.0).repeat()))

    @tf.function
    def f(iterator, x):
        return next(iterator) * x * scale
    warm = [coordinator.schedule(f, args=(iterator, tf.constant(float(i)))) for i in range(4)]
    assert coordinator.fetch(warm) == [0, 2, 4, 6]  # what a worker computed is gone with it
    cluster.kill("worker", 0)
    results = [coordinator.schedule(f, args=(iterator, tf.constant(float(i)))) for i in range(20)]
    coordinator.join()
    assert coordinator.fetch(results) == [2.0 * i for i in range(20)]
    cluster.start("worker", 0)
    seen = set()
    for _ in range(20000):  # until the coordinator has noticed
        result = coordinator.schedule(f, args=(iterator, tf.constant(1.0)))
        coordinator.join()
        seen.add(result.there().device)
        if len(seen) == 2:
            break
    assert len(seen) == 2


def test_lost_parameter_server(cluster):
    strategy, coordinator = begin(cluster)
    with strategy.scope():
        a, b = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def f():
        return a + b
    assert coordinator.schedule(f).fetch() == 3
    cluster.kill("ps", 1)
    with pytest.raises(tf.errors.UnavailableError):
        for _ in range(4):
            coordinator.schedule(f)
        coordinator.join()


def test_parts_of_variables(cluster):
    p = tf.distribute.experimental.partitioners
    strategy, _ = begin(cluster, p.MinSizePartitioner(4, max_shards=2))
    with strategy.scope():
        table, scalar = tf.Variable(np.arange(10, dtype="float32").reshape(5, 2), name="table"), tf.Variable(1.0)
    assert [(v.name, v.shape.as_list(), "/job:ps/replica:0/task:%d/" % i in v.device) for i, v in enumerate(table.variables)] == [
        ("table/part_0:0", [3, 2], True), ("table/part_1:0", [2, 2], True)]
    assert isinstance(scalar, tf.Variable) and table.shape == [5, 2] and table.dtype == tf.float32
    table.assign_add(tf.ones([5, 2]))
    np.testing.assert_array_equal((table * 2.0).numpy(), (np.arange(10).reshape(5, 2) + 1) * 2)
    np.testing.assert_array_equal(tf.nn.embedding_lookup(table.variables, [0, 4]).numpy(), [[1, 2], [9, 10]])


def test_numbers_of_parts():
    """As stock 2.21 gives."""
    p = tf.distribute.experimental.partitioners
    assert [p.FixedShardsPartitioner(n)(tf.TensorShape([10, 3]), tf.float32) for n in (2, 20)] == [[2, 1], [10, 1]]
    assert p.FixedShardsPartitioner(2)(tf.TensorShape([10, 3]), tf.float32, 1) == [1, 2]
    expected = {(2, 1): [[2, 1], [1, 1], [2, 1], [1, 1], [1, 1], [1, 1]], (3, 2): [[2, 1], [1, 1], [3, 1], [1, 1], [1, 1], [3, 1]],
                (100, 100): [[2, 1], [10, 1], [100, 1], [3, 1], [1, 1], [100, 1]], (6, 6): [[2, 1], [2, 1], [6, 1], [2, 1], [1, 1], [6, 1]]}
    for shape, parts in expected.items():
        made = [(p.MinSizePartitioner(4, max_shards=2), tf.float32), (p.MinSizePartitioner(100, max_shards=10), tf.float32), (p.MaxSizePartitioner(4), tf.float32),
                (p.MaxSizePartitioner(100, max_shards=3), tf.float32), (p.MinSizePartitioner(), tf.string), (p.MaxSizePartitioner(20, None, 2), tf.int64)]
        assert [partitioner(tf.TensorShape(shape), dtype) for partitioner, dtype in made] == parts


def test_connecting(cluster):
    """Without a strategy: operations, variables and functions on the tasks of a cluster."""
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cluster.jobs))
    names = [device.name for device in tf.config.list_logical_devices()]
    assert names == ["/device:CPU:0"] + ["/job:%s/replica:0/task:%d/device:CPU:0" % row for row in (("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1))]
    with tf.device("/job:ps/task:1"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker/task:0"):
        product = v * 3.0

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * 2.0
    with tf.device("/job:worker/task:1"):
        result = f(tf.constant([1.0, 1.0]))
    assert "/job:worker/replica:0/task:1" in result.device  # and not where the variable is
    np.testing.assert_array_equal([product.numpy(), result.numpy(), v.numpy()], [[3, 6], [4, 6], [2, 3]])


def test_dataset_instead_of_a_function(cluster):
    """A dataset is made again on each worker, from its graph."""
    _, coordinator = begin(cluster)
    dataset = tf.data.Dataset.range(5).map(lambda x: x * 2 + 1).repeat()
    made = coordinator.create_per_worker_dataset(dataset)
    assert made.element_spec == dataset.element_spec
    iterator = iter(made)
    step = tf.function(lambda numbers: next(numbers))
    values = [coordinator.schedule(step, args=(iterator,)) for _ in range(6)]
    coordinator.join()
    assert {int(value.fetch()) for value in values} <= {1, 3, 5, 7, 9}
    assert 1 in {int(value.fetch()) for value in values}
    with pytest.raises(TypeError):
        coordinator.create_per_worker_dataset(3)
