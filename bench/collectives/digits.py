"""Synchronous training of digits by one client per worker: digits.py FORM [BATCH] [UNITS], where a cluster is up.

FORM is "all-reduce", where every worker keeps the variables and applies the mean of all gradients, or "servers", where
parameter servers keep them (tf.train.SyncReplicasOptimizer). Prints the steps per second of the quickest stretch.
"""

import itertools
import json
import multiprocessing
import os
import sys
import time

import numpy as np
import runnel as tf

STRETCHES, STEPS = 20, 50
SIZES = [int(word) for word in sys.argv[2:]] + [64, 128][len(sys.argv) - 2 :]
BATCH, UNITS = SIZES
CLUSTER = json.loads(os.environ["TF_CONFIG"])["cluster"]
WORKERS, SERVERS = len(CLUSTER["worker"]), len(CLUSTER.get("ps", []))
SHAPES = ([64, UNITS], [UNITS], [UNITS, 10], [10])


def make_variables():
    rng = np.random.default_rng(1)
    return [tf.Variable(rng.normal(0, 0.1, shape).astype(np.float32), name="v%d" % k) for k, shape in enumerate(SHAPES)]


def loss_of(variables, i):
    w1, b1, w2, b2 = variables
    rng = np.random.default_rng(i)
    x, labels = tf.constant(rng.normal(size=[BATCH, 64]).astype(np.float32)), tf.constant(rng.integers(0, 10, BATCH))
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))


def measure(run, steps_done, results):
    """Runs steps until this process is ended; tells the rate of updates in the quickest stretch."""
    for _ in range(STEPS):
        run()
    best = 0
    for _ in range(STRETCHES):
        start, first = time.perf_counter(), steps_done()
        for _ in range(STEPS):
            run()
        best = max(best, (steps_done() - first) / (time.perf_counter() - start))
    results.put(best)
    while True:
        run()


def by_all_reduce(i, target, results):
    with tf.device("/job:worker/task:%d/cpu:0" % i):
        variables = make_variables()
        grads = tf.gradients(loss_of(variables, i), variables)
        mean = tf.raw_ops.CollectiveReduce(
            input=tf.concat([tf.reshape(g, [-1]) for g in grads], 0), group_size=WORKERS, group_key=1, instance_key=1,
            merge_op="Add", final_op="Div", subdiv_offsets=[0],
        )
        parts = tf.split(mean, [int(np.prod(shape)) for shape in SHAPES])
        train = tf.group(*[tf.assign_sub(v, 0.1 * tf.reshape(p, v.shape)) for v, p in zip(variables, parts)])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        stretches = itertools.count()  # each begins and ends with a question
        measure(session.make_callable(train), lambda: next(stretches) * STEPS, results)


def by_servers(i, target, results):
    with tf.device(tf.train.replica_device_setter(ps_tasks=SERVERS, worker_device="/job:worker/task:%d" % i)):
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=WORKERS, total_num_replicas=WORKERS
        )
        train = optimizer.minimize(loss_of(make_variables(), i), global_step=step)
    hook = optimizer.make_session_run_hook(i == 0)
    with tf.train.MonitoredTrainingSession(master=target, is_chief=i == 0, hooks=[hook], log_step_count_steps=None) as session:
        measure(lambda: session.run(train), lambda: session.run(step), results)


def client(i, results):
    {"all-reduce": by_all_reduce, "servers": by_servers}[sys.argv[1]](i, "grpc://" + CLUSTER["worker"][i], results)


def main():
    results = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=client, args=(i, results)) for i in range(WORKERS)]
    for one in clients:
        one.start()
    rates = [results.get() for _ in clients]
    for one in clients:
        one.kill()
    print("%s: %.0f steps/s" % (sys.argv[1], min(rates)))


if __name__ == "__main__":
    main()
