"""Clusters: specs, servers, placement, synchronous replicas, and one script started once per task."""

import json
import os
import subprocess
import sys

import pytest
from both import ROOT, STOCK, both
from support.ports import free_ports

SCRIPT = os.path.join(ROOT, "examples", "python", "distributed_digits.py")


@both
def test_spec(tf, np):
    spec = tf.train.ClusterSpec({"ps": ["localhost:2222", "localhost:2223"], "worker": {0: "a:1", 2: "b:2"}})
    again = tf.train.ClusterSpec(spec.as_cluster_def())
    return [repr(spec), spec.as_dict(), spec.jobs, spec.num_tasks("worker"), spec.task_indices("worker"), spec.task_address("worker", 2),
            spec.job_tasks("worker"), bool(spec), again.as_dict(), str(spec.as_cluster_def())]


@both(raises=True, message=True)
def test_no_such_job(tf, np):
    tf.train.ClusterSpec({"ps": ["a:1"]}).num_tasks("worker")


@both(raises=True, message=True)
def test_no_spec(tf, np):
    tf.train.ClusterSpec(3)


@both(raises=True, message=True)
def test_which_task(tf, np):
    tf.train.Server({"a": ["x:1", "y:2"]})


@both(graph=True)
def test_containers(tf, np):
    with tf.container("box"):
        tf.Variable(7.0, name="u", use_resource=False)
        tf.FIFOQueue(3, tf.float32, shared_name="q")
        with tf.container("inner"):
            tf.ConditionalAccumulator(tf.float32, [], shared_name="a")
        tf.square(2.0)
    tf.FIFOQueue(3, tf.float32, shared_name="outside")


@both(graph=True)
def test_placement(tf, np):
    spec = tf.train.ClusterSpec({"ps": ["a:1", "b:2"], "worker": ["c:3"]})
    with tf.device(tf.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:0")):
        v = tf.Variable([1.0, 2.0], name="v")
        w = tf.get_variable("w", [2], use_resource=True, initializer=tf.ones_initializer())
        tf.Variable(1.0, name="z")
        with tf.device("/cpu:0"):
            tf.add(v, w, name="y")
        tf.assign_add(v, [1.0, 1.0])
    return tf.train.replica_device_setter(0) is None


@both
def test_synchronous_graph(tf, np):
    step = tf.train.get_or_create_global_step()
    v = tf.Variable([1.0, 2.0], name="v")
    e = tf.get_variable("e", [4, 2], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(v)) + tf.reduce_sum(tf.gather(e, [1, 1]))
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.1), 2, 3)
    optimizer.minimize(loss, global_step=step)
    optimizer.get_init_tokens_op()
    optimizer.make_session_run_hook(True)
    return [(node.name, node.op, [i for i in node.input if not i.startswith("gradients")])
            for node in tf.get_default_graph().as_graph_def().node if not node.name.startswith("gradients")]


def test_local_server():
    import runnel as tf
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default():
        v = tf.Variable(2.0)
        with tf.Session(server.target) as sess:
            sess.run(v.initializer)
            assert sess.run(v * 3) == 6.0
        with tf.Session(server.target) as sess:  # the server keeps variables between sessions
            assert sess.run(v) == 2.0


def test_synchronous_steps():
    import runnel as tf
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0])
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1, 1)
        train = optimizer.minimize(tf.reduce_sum(tf.square(v)), global_step=step)
        hooks = [optimizer.make_session_run_hook(True), tf.train.StopAtStepHook(last_step=5)]
        with tf.train.MonitoredTrainingSession(server.target, hooks=hooks) as sess:
            while not sess.should_stop():
                sess.run(train)
            assert abs(sess._tf_sess().run(v)[0] - 0.8 ** 5) < 1e-5


def start(which, arguments, environment=None):
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=os.path.join(ROOT, "python"), **(environment or {}))
    command = [STOCK, SCRIPT] if which == "stock" else [sys.executable, "-m", "runnel", SCRIPT]
    return subprocess.Popen(command + arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("tasks,more", [
    (("runnel", "runnel", "runnel"), []), (("runnel", "runnel", "runnel"), ["--sync"]),
    (("runnel", "runnel", "runnel"), ["--sync", "--backup", "1"]), (("stock", "runnel", "runnel"), [])])
def test_script_started_for_each_task(tasks, more):
    """A parameter server and two workers, each a process of the same script."""
    ps, one, two = free_ports(3)
    shared = ["--ps", "localhost:%d" % ps, "--worker", "localhost:%d,localhost:%d" % (one, two), "--steps", "400"] + more
    processes = [start(tasks[0], ["--job", "ps"] + shared), start(tasks[1], ["--task", "0"] + shared), start(tasks[2], ["--task", "1"] + shared)]
    try:
        for process in processes[1:]:
            text = process.communicate(timeout=120)[0]
            assert process.returncode == 0, text
            assert float(text.split("last batch ")[1].split()[0]) > 85, text
        assert processes[0].poll() is None
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_environment_says_the_task():
    ps, one = free_ports(2)
    cluster = {"ps": ["localhost:%d" % ps], "worker": ["localhost:%d" % one]}
    processes = [start("runnel", ["--steps", "200"], {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})})
                 for job in ("ps", "worker")]
    try:
        text = processes[1].communicate(timeout=120)[0]
        assert processes[1].returncode == 0 and "worker 0: last batch" in text, text
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_server_join_is_interrupted():
    import signal
    import time
    program = "import runnel as tf; s = tf.train.Server.create_local_server(); print('up', flush=True); s.join()"
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    process = subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "up\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()


def test_script_as_client_of_a_cluster():
    """`runnel cluster up` starts the tasks; the script is told of the cluster, and of no task."""
    build = os.path.join(ROOT, os.environ.get("RUNNEL_BUILD", "build/release"))
    command = [os.path.join(build, "cli", "runnel"), "cluster", "up", "--ps", "1", "--workers", "2", "--", sys.executable, "-m", "runnel", SCRIPT]
    for more in ([], ["--sync"]):
        done = subprocess.run(command + ["--steps", "200"] + more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), RUNNEL_BUILD=build))
        assert done.returncode == 0 and float(done.stdout.split("last batch ")[1].split()[0]) > 80, done.stdout
