"""Training that resumes from its last checkpoint, even after `kill -9`.

    python3 restart_digits.py --folder /tmp/run --steps 400 &
    kill -9 $!
    python3 restart_digits.py --folder /tmp/run --steps 400
"""

import argparse
import time

import numpy as np
import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--folder", help="where checkpoints and logs go")
parser.add_argument("--slowly", type=float, default=0.0, help="seconds between steps")
options = parser.parse_args()
images, labels, test_images, test_labels = load()
tf.set_random_seed(1)
random = np.random.RandomState(1)
tf.logging.set_verbosity(tf.logging.ERROR)

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
train = tf.train.AdamOptimizer(0.005).minimize(loss, global_step=step)
tf.summary.scalar("loss", loss)


class Pace(tf.train.SessionRunHook):
    """A user-defined hook: prints the first step and the final accuracy, and waits between steps (--slowly)."""

    def after_create_session(self, session, coord):
        print("begins at step", session.run(step), flush=True)

    def after_run(self, run_context, run_values):
        time.sleep(options.slowly)

    def end(self, session):
        now, good = session.run([step, right], {x: test_images, y: test_labels})
        print("restart: %.1f %% of %d unseen digits at step %d" % (100 * good, len(test_images), now))


hooks = [tf.train.StopAtStepHook(last_step=options.steps), tf.train.NanTensorHook(loss), Pace()]
if options.folder:
    hooks.append(tf.train.CheckpointSaverHook(options.folder, save_steps=20))
with tf.train.MonitoredTrainingSession(checkpoint_dir=options.folder, hooks=hooks, save_checkpoint_secs=None,
                                       save_summaries_steps=10, log_step_count_steps=None) as sess:
    while not sess.should_stop():
        pick = random.randint(0, len(images), 64)
        now, value, _ = sess.run([step, loss, train], {x: images[pick], y: labels[pick]})
        if now % 20 == 0:
            print("step %d, loss %.3f" % (now, value), flush=True)
