#!/usr/bin/env python3
"""The digits on a cluster, with stock TensorFlow's Python client: digits_stock.py --cluster C --task N

The servers are `runnel server` processes (or stock's, or the tasks of the C program `digits`); this
is the program of one worker. Started once for each worker, e.g. with two parameter servers:

  runnel server --cluster C --job ps --task 0 &
  runnel server --cluster C --job ps --task 1 &
  runnel server --cluster C --job worker --task 0 &
  runnel server --cluster C --job worker --task 1 &
  digits_stock.py --cluster C --task 0 & digits_stock.py --cluster C --task 1

C is ps=host:port|host:port,worker=host:port|host:port. Task 0 is the chief. With --sync an update
is the mean of one gradient a worker; with --backup N the slowest N are not waited for.
"""

import argparse
import os
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as stock  # noqa: E402

tf = stock.compat.v1
PIXELS, CLASSES, HIDDEN, BATCH, TRAINED = 64, 10, 64, 50, 1500


def read_digits(seed):
    """Images of 0 … 1 and labels, shuffled: the first TRAINED are learned from."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "digits.bin")
    with open(path, "rb") as file:
        data = file.read()
    count, rows, columns = struct.unpack("<8x3I", data[:20])
    table = np.frombuffer(data, np.uint8, offset=20).reshape(count, rows * columns + 1)
    table = table[np.random.RandomState(seed).permutation(count)]
    return table[:, :-1].astype("f") / 16, table[:, -1].astype("i")


def build(options, workers):
    images = tf.placeholder(tf.float32, [None, PIXELS])
    labels = tf.placeholder(tf.int32, [None])
    step = tf.train.get_or_create_global_step()

    def dense(x, size, name):
        with tf.variable_scope(name):
            kernel = tf.get_variable("kernel", [x.shape[1], size])
            bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
        return tf.matmul(x, kernel) + bias

    logits = dense(tf.nn.relu(dense(images, HIDDEN, "hidden")), CLASSES, "out")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    optimizer, hooks = tf.train.AdamOptimizer(0.004), []
    if options.sync or options.backup:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers - options.backup, workers)
    train = optimizer.minimize(loss, global_step=step)
    if options.sync or options.backup:
        hooks.append(optimizer.make_session_run_hook(options.task == 0))
    return images, labels, loss, accuracy, train, step, hooks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--backup", type=int, default=0)
    parser.add_argument("--dir")
    options = parser.parse_args()
    jobs = dict(job.split("=") for job in options.cluster.split(","))
    servers, workers = (jobs[job].split("|") for job in ("ps", "worker"))
    x, y = read_digits(1)
    tf.disable_eager_execution()
    device = f"/job:worker/task:{options.task}"
    with tf.device(tf.train.replica_device_setter(len(servers), worker_device=device)):
        images, labels, loss, accuracy, train, step, hooks = build(options, len(workers))
    # A session takes in the parameter servers and this task: other workers may be away.
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    hooks.append(tf.train.StopAtStepHook(last_step=options.steps))
    random = np.random.RandomState(options.task)
    part = 0
    # The chief's thread still waits for gradients at the end: it is not waited for long.
    with tf.train.MonitoredTrainingSession(
            f"grpc://{workers[options.task]}", is_chief=options.task == 0,
            checkpoint_dir=options.dir if options.task == 0 else None, save_checkpoint_secs=1,
            save_summaries_steps=None, log_step_count_steps=None, hooks=hooks, config=config,
            max_wait_secs=120, stop_grace_period_secs=2) as session:
        while not session.should_stop():
            picks = random.randint(0, TRAINED, BATCH)
            _, at = session.run([train, step], {images: x[picks], labels: y[picks]})
            if at >= options.steps - 200 and options.task == 0 and not session.should_stop():
                part = session.run(accuracy, {images: x[TRAINED:], labels: y[TRAINED:]})
    if options.task:
        return 0
    print(f"digits_stock: {100 * part:.1f} % of {len(x) - TRAINED} unseen digits:",
          "learned" if part >= 0.95 else "NOT learned")
    return 0 if part >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
