"""A convolutional network like LeNet on handwritten digits: two convolutions, dropout, a decaying learning rate."""

import argparse

import numpy as np
import runnel as tf
from digits_data import load

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
options = parser.parse_args()
images, labels, test_images, test_labels = load()
tf.set_random_seed(1)


def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1))


def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))


def conv2d(x, W):
    return tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding="SAME")


def max_pool_2x2(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


x = tf.placeholder(tf.float32, [None, 64])
y_ = tf.placeholder(tf.int64, [None])
keep_prob = tf.placeholder(tf.float32)

x_image = tf.reshape(x, [-1, 8, 8, 1])
h_pool1 = max_pool_2x2(tf.nn.relu(conv2d(x_image, weight_variable([3, 3, 1, 16])) + bias_variable([16])))
h_pool2 = max_pool_2x2(tf.nn.relu(conv2d(h_pool1, weight_variable([3, 3, 16, 32])) + bias_variable([32])))
h_flat = tf.reshape(h_pool2, [-1, 2 * 2 * 32])
h_fc1 = tf.nn.relu(tf.matmul(h_flat, weight_variable([128, 64])) + bias_variable([64]))
h_drop = tf.nn.dropout(h_fc1, keep_prob)
logits = tf.matmul(h_drop, weight_variable([64, 10])) + bias_variable([10])

loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_, logits=logits))
global_step = tf.Variable(0, trainable=False)
rate = tf.train.exponential_decay(0.005, global_step, 100, 0.7)
train_step = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y_), tf.float32))

random = np.random.RandomState(1)
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for i in range(options.steps):
    pick = random.randint(0, len(images), 64)
    if i % 100 == 0:
        print("step %d, training accuracy %g" % (
            i, accuracy.eval(feed_dict={x: images[pick], y_: labels[pick], keep_prob: 1.0})))
    train_step.run(feed_dict={x: images[pick], y_: labels[pick], keep_prob: 0.5})
right = accuracy.eval(feed_dict={x: test_images, y_: test_labels, keep_prob: 1.0})
print("convnet: %.1f %% of %d unseen digits, rate %.5f" % (100 * right, len(test_images), rate.eval()))
