"""Softmax regression on handwritten digits, with summaries for TensorBoard.

    python3 softmax_digits.py --logs /tmp/digits && tensorboard --logdir /tmp/digits
"""

import argparse

import numpy as np
import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--logs", help="folder for event files")
options = parser.parse_args()
images, labels, test_images, test_labels = load()
one_hot = np.eye(10, dtype=np.float32)

x = tf.placeholder(tf.float32, [None, 64], name="x")
y_ = tf.placeholder(tf.float32, [None, 10], name="labels")
with tf.name_scope("layer"):
    W = tf.Variable(tf.zeros([64, 10]), name="W")
    b = tf.Variable(tf.zeros([10]), name="b")
    y = tf.nn.softmax(tf.matmul(x, W) + b, name="y")
with tf.name_scope("cross_entropy"):
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)), reduction_indices=[1]))
with tf.name_scope("train"):
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
with tf.name_scope("accuracy"):
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

tf.summary.scalar("cross_entropy", cross_entropy)
tf.summary.scalar("accuracy", accuracy)
tf.summary.histogram("weights", W)
tf.summary.image("digits", tf.reshape(x, [-1, 8, 8, 1]), max_outputs=3)
tf.summary.text("about", tf.constant("softmax regression, **64** pixels to 10 digits"))
merged = tf.summary.merge_all()

random = np.random.RandomState(1)
with tf.Session() as sess:
    writer = tf.summary.FileWriter(options.logs, sess.graph) if options.logs else None
    sess.run(tf.global_variables_initializer())
    for i in range(options.steps):
        pick = random.randint(0, len(images), 100)
        feed = {x: images[pick], y_: one_hot[labels[pick]]}
        sess.run(train_step, feed_dict=feed)
        if writer and i % 20 == 0:
            writer.add_summary(sess.run(merged, feed_dict=feed), i)
    if writer:
        metadata = tf.RunMetadata()
        trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(train_step, feed_dict=feed, options=trace, run_metadata=metadata)
        writer.add_run_metadata(metadata, "last step", options.steps)
        writer.close()
    right = sess.run(accuracy, feed_dict={x: test_images, y_: one_hot[test_labels]})
    print("softmax: %.1f %% of %d unseen digits" % (100 * right, len(test_images)))
