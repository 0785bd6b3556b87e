"""Digits on a cluster: start this script once per task.

    python3 -m runnel distributed_digits.py --job ps     --task 0 &
    python3 -m runnel distributed_digits.py --job worker --task 0 &     # the chief
    python3 -m runnel distributed_digits.py --job worker --task 1

--ps and --worker have the addresses of the tasks. TF_CONFIG, if set, replaces all these options. If it names
no task, the cluster is already running, and the script trains on its first worker:

    runnel cluster up --ps 1 --workers 2 -- python3 -m runnel distributed_digits.py

With --sync, each step averages the gradients of all workers, or, with --backup N, of all but the N slowest.
Without it, each worker updates the variables on its own. The script also runs with stock TensorFlow.
"""

import argparse
import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps", default="localhost:2222")
parser.add_argument("--worker", default="localhost:2223,localhost:2224")
parser.add_argument("--job", default="worker")
parser.add_argument("--task", type=int, default=0)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--sync", action="store_true")
parser.add_argument("--backup", type=int, default=0)
parser.add_argument("--folder", help="where checkpoints go")
options = parser.parse_args()
tf.disable_v2_behavior()

given = json.loads(os.environ.get("TF_CONFIG") or "{}")
cluster = given.get("cluster", {"ps": options.ps.split(","), "worker": options.worker.split(",")})
if "task" in given:
    options.job, options.task = given["task"]["type"], given["task"]["index"]
server = None if given and "task" not in given else tf.train.Server(tf.train.ClusterSpec(cluster), options.job, options.task)
if server and options.job == "ps":
    server.join()
target = server.target if server else os.environ.get("RUNNEL_TARGET", "grpc://" + cluster["worker"][0])

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "..", "data", "digits.bin"), "rb") as stream:
    rows = np.frombuffer(stream.read()[20:], np.uint8).reshape(-1, 65)
rows = rows[np.random.RandomState(0).permutation(len(rows))]
images, labels = rows[:, :64].astype(np.float32) / 16, rows[:, 64].astype(np.int64)

is_chief = options.task == 0
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % options.task, cluster=cluster)):
    x = tf.placeholder(tf.float32, [None, 64])
    y = tf.placeholder(tf.int64, [None])
    w1 = tf.get_variable("w1", [64, 32])
    b1 = tf.get_variable("b1", [32], initializer=tf.zeros_initializer())
    w2 = tf.get_variable("w2", [32, 10])
    b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(0.01)
    hooks = [tf.train.StopAtStepHook(last_step=options.steps)]
    if options.sync:
        count = len(cluster["worker"]) if server else 1
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, count - options.backup, count)
    train = optimizer.minimize(loss, global_step=step)
    if options.sync:
        hooks.append(optimizer.make_session_run_hook(is_chief))

# Without filters, a session waits for all tasks, including workers that have ended or not yet started.
config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % options.task])
random = np.random.RandomState(options.task)
with tf.train.MonitoredTrainingSession(target, is_chief, options.folder, hooks=hooks, config=config, stop_grace_period_secs=5) as sess:
    while not sess.should_stop():
        pick = random.randint(0, 1500, 64)
        now, value, _, good = sess.run([step, loss, train, right], {x: images[pick], y: labels[pick]})
        if now % 50 == 0:
            print("worker %d: step %d, loss %.4f" % (options.task, now, value), flush=True)
print("worker %d: last batch %.1f %% right" % (options.task, 100 * good), flush=True)
