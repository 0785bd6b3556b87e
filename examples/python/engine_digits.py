"""Digits on a cluster that Ray or Dask starts: parameter servers and workers are actors or computations there.

    python3 engine_digits.py --engine ray            # pip install ray
    python3 engine_digits.py --engine dask           # pip install distributed

--address names a running Ray or Dask cluster; by default the script starts one on this machine. Training goes on from the
last checkpoint in --folder when a node is lost, so all nodes must see that folder.
"""

import argparse
import tempfile

import numpy as np
import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--engine", choices=["ray", "dask"], default="ray")
parser.add_argument("--address", help="of Ray or of Dask's scheduler")
parser.add_argument("--ps", type=int, default=1)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--folder", help="where checkpoints go")
options = parser.parse_args()


def start():
    """Starts the tasks; returns the cluster and what to close after it."""
    if options.engine == "ray":
        import ray
        from runnel.ray import cluster
        room = {} if options.address else {"num_cpus": options.ps + options.workers}
        ray.init(options.address, log_to_driver=False, **room)
        return cluster(options.ps, options.workers), ray
    from distributed import Client
    from runnel.dask import cluster
    client = Client(options.address) if options.address else Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
    return cluster(client, options.ps, options.workers), client


def train(tasks, folder):
    images, labels, test_images, test_labels = load()
    random = np.random.RandomState(1)
    losses = []
    with tf.device(tf.train.replica_device_setter(options.ps)):
        x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        hidden = tf.get_variable("hidden", [64, 32])
        out = tf.get_variable("out", [32, 10])
        step = tf.train.get_or_create_global_step()
    for worker in range(options.workers):  # every worker computes the loss of its part of the batch
        with tf.device(tf.train.replica_device_setter(options.ps, worker_device="/job:worker/task:%d" % worker)):
            logits = tf.matmul(tf.nn.relu(tf.matmul(x[worker::options.workers], hidden)), out)
            losses.append(tf.losses.sparse_softmax_cross_entropy(y[worker::options.workers], logits))
    loss = tf.add_n(losses) / options.workers
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(tf.matmul(tf.nn.relu(tf.matmul(x, hidden)), out), 1), y), tf.float32))
    update = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=options.steps), tf.train.CheckpointSaverHook(folder, save_steps=20)]
    with tf.train.MonitoredSession(tasks.session_creator(checkpoint_dir=folder), hooks) as sess:
        while not sess.should_stop():
            pick = random.randint(0, len(images), 64)
            now, _, value = sess.run([step, update, loss], {x: images[pick], y: labels[pick]})
            if now % 20 == 0:
                print("step %d, loss %.4f" % (now, value), flush=True)
            if now >= options.steps - 1:
                good = sess._tf_sess().run(right, {x: test_images, y: test_labels})
    print("engine: %.1f %% of %d unseen digits" % (100 * good, len(test_images)))


if __name__ == "__main__":  # Dask's workers import this file
    tasks, engine = start()
    with tasks, tempfile.TemporaryDirectory() as folder:
        print(" ".join("%s=%s" % (job, "|".join(found)) for job, found in tasks.addresses().items()), flush=True)
        train(tasks, options.folder or folder)
    (engine.shutdown if options.engine == "ray" else engine.close)()
