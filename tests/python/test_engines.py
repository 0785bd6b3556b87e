"""Clusters that Ray and Dask start: training survives the loss of a node. Each test is skipped without its package."""

import os
import signal
import subprocess
import sys

import pytest
from both import ROOT

SECONDS = 60.0
STEPS = 60


def train(tasks, folder, lose):
    """Counts to STEPS in a variable of ps 0 and in the global step, and calls `lose` at half of it. Returns both counts,
    the step of every new session, and the addresses before and after."""
    import runnel as tf
    begun = []

    class Begin(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            begun.append(int(session.run(step)))

    before = tasks.addresses()
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
        with tf.device("/job:worker/task:1"):
            one = tf.cast(tf.identity(1.0), tf.int64)
        with tf.control_dependencies([tf.assign_add(count, one)]):
            update = tf.assign_add(step, 1)
        hooks = [tf.train.StopAtStepHook(last_step=STEPS), tf.train.CheckpointSaverHook(folder, save_steps=10), Begin()]
        with tf.train.MonitoredSession(tasks.session_creator(checkpoint_dir=folder), hooks) as sess:
            while not sess.should_stop():
                now = sess.run(update)
                if now >= STEPS // 2 and len(begun) == 1 and lose:
                    lose()
                    lose = None
            # `should_stop` is true, so this session runs no more steps of its own; the cluster does.
        target, config = tasks.session_arguments()
        with tf.Session(target, config=config) as sess:
            tf.train.Saver().restore(sess, tf.train.latest_checkpoint(folder))
            return [int(value) for value in sess.run([count, step])], begun, before, tasks.addresses()


def check(result, lost):
    (count, step), begun, before, after = result
    assert count == step == STEPS
    assert begun[0] == 0 and len(begun) >= 2
    assert all(0 < at <= STEPS and at % 10 in (0, 1) for at in begun[1:]), begun  # a checkpoint, not the beginning
    assert before != after
    job, index = lost
    assert before[job][index] != after[job][index]


@pytest.fixture
def nodes(monkeypatch):
    """A Ray cluster of a head and three nodes with two CPUs each. Ray wants them at this machine's own address."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster
    monkeypatch.setenv("PYTHONPATH", os.path.join(ROOT, "python"))
    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    added = [cluster.add_node(num_cpus=2, **small) for _ in range(3)]
    ray.init(cluster.address, log_to_driver=False)
    yield cluster, added
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.parametrize("lost", [("ps", 0), ("worker", 0)])
def test_ray_loses_a_node(nodes, tmp_path, lost):
    import ray
    from runnel.ray import cluster as start
    cluster, added = nodes
    with start(ps=1, workers=2, timeout=SECONDS) as tasks:
        def lose():
            actor = tasks._engine._actors[lost]
            node = ray._private.state.actors(actor._actor_id.hex())["Address"]["NodeID"]
            cluster.remove_node(next(each for each in added if each.node_id == node), allow_graceful=False)

        check(train(tasks, str(tmp_path), lose), lost)


def test_ray_loses_a_process(nodes, tmp_path):
    import ray
    from runnel.ray import cluster as start
    with start(ps=1, workers=2, timeout=SECONDS) as tasks:
        check(train(tasks, str(tmp_path), lambda: ray.kill(tasks._engine._actors["worker", 1], no_restart=False)), ("worker", 1))


@pytest.fixture
def client():
    """A Dask cluster of three processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.mark.parametrize("lost", [("ps", 0), ("worker", 0)])
def test_dask_loses_a_worker(client, tmp_path, lost):
    from runnel.dask import cluster as start
    with start(client, ps=1, workers=2, timeout=SECONDS) as tasks:
        def lose():
            key = tasks._engine._futures[lost].key
            where = next(worker for worker, keys in client.processing().items() if key in keys)
            os.kill(client.run(os.getpid)[where], signal.SIGKILL)

        check(train(tasks, str(tmp_path), lose), lost)


def test_dask_is_eager_too(client):
    """TensorFlow 2's clients connect to the same tasks."""
    from runnel.dask import cluster as start
    script = """
import sys
import runnel.v2 as tf
from runnel.distribute.cluster_resolver.base import SimpleClusterResolver
tf.config.experimental_connect_to_cluster(SimpleClusterResolver(tf.train.ClusterSpec(eval(sys.argv[1]))))
with tf.device("/job:worker/task:1"):
    y = tf.constant([1.0, 2.0]) * 3
print(y.device, y.numpy().tolist())
"""
    with start(client, workers=2, timeout=SECONDS) as tasks:
        out = subprocess.run([sys.executable, "-c", script, repr(tasks.addresses())], capture_output=True, text=True, timeout=60,
                             env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert out.stdout.strip() == "/job:worker/replica:0/task:1/device:CPU:0 [3.0, 6.0]", out.stderr


@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_example(engine):
    """examples/python/engine_digits.py, on a cluster that it starts itself."""
    pytest.importorskip("ray" if engine == "ray" else "distributed")
    script = os.path.join(ROOT, "examples", "python", "engine_digits.py")
    out = subprocess.run([sys.executable, script, "--engine", engine], capture_output=True, text=True, timeout=240,
                         env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    last = out.stdout.strip().splitlines()[-1:]
    assert last and last[0].startswith("engine: ") and float(last[0].split()[1]) >= 90, out.stdout[-2000:] + out.stderr[-2000:]


def test_cluster_without_tasks():
    from runnel.distribute.launch import check_counts, port_of
    with pytest.raises(ValueError, match="at least one task"):
        check_counts(ps=0, worker=0)
    with pytest.raises(ValueError, match="'ps' is -1"):
        check_counts(ps=-1, worker=1)
    jobs = check_counts(ps=2, worker=3)
    assert [port_of(jobs, "ps", 1, 8888), port_of(jobs, "worker", 2, 8888), port_of(jobs, "worker", 2, None)] == [8889, 8892, 0]


def test_task_that_does_not_start():
    """The client names the task that the engine has not started in time, or that does not answer."""
    import runnel as tf
    from runnel.distribute.launch import Cluster

    class Nothing:
        def __init__(self, address):
            self._address = address

        def address(self, job, index, timeout):
            if self._address is None:
                raise TimeoutError
            return self._address

    for address in (None, "127.0.0.1:1"):
        with pytest.raises(tf.errors.DeadlineExceededError, match="/job:worker/task:0 did not start within 0.2 s"):
            Cluster(Nothing(address), {"worker": 1}, 0.2).addresses()
