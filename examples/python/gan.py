"""A generative adversarial network that learns a mixture of two normal distributions, around -2 and 2.

The generator turns noise into numbers; the discriminator tells them from real ones. Each has its own
variable scope, and an optimizer that updates only the variables of that scope.
"""

import argparse

import numpy as np
import runnel as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2500)
options = parser.parse_args()
BATCH = 128
random = np.random.RandomState(3)
tf.set_random_seed(4)


def real(count):
    centres = random.choice([-2.0, 2.0], (count, 1))
    return (centres + 0.2 * random.randn(count, 1)).astype(np.float32)


def generator(z):
    with tf.variable_scope("generator"):
        h = tf.layers.dense(z, 32, activation=tf.nn.relu, name="h1")
        h = tf.layers.dense(h, 32, activation=tf.nn.relu, name="h2")
        return tf.layers.dense(h, 1, name="out")


def discriminator(x, reuse):
    with tf.variable_scope("discriminator", reuse=reuse):
        x = tf.concat([x, tf.abs(x - tf.reduce_mean(x))], 1)  # the number, and its distance from the batch's mean
        h = tf.layers.dense(x, 32, activation=tf.nn.leaky_relu, name="h1")
        h = tf.layers.dense(h, 32, activation=tf.nn.leaky_relu, name="h2")
        return tf.layers.dense(h, 1, name="out")


z = tf.placeholder(tf.float32, [None, 4])
x = tf.placeholder(tf.float32, [None, 1])
fake = generator(z)
on_real = discriminator(x, reuse=False)
on_fake = discriminator(fake, reuse=True)


def cross_entropy(logits, label):
    labels = tf.fill(tf.shape(logits), label)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))


d_loss = cross_entropy(on_real, 0.9) + cross_entropy(on_fake, 0.0)
g_loss = cross_entropy(on_fake, 1.0)
d_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="discriminator")
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
d_train = tf.train.AdamOptimizer(0.002, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_train = tf.train.AdamOptimizer(0.001, beta1=0.5).minimize(g_loss, var_list=g_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(options.steps):
        sess.run(d_train, {x: real(BATCH), z: random.randn(BATCH, 4)})
        _, losses = sess.run([g_train, (d_loss, g_loss)], {x: real(BATCH), z: random.randn(BATCH, 4)})
        if step % 500 == 0:
            print("step %d: discriminator %.3f, generator %.3f" % ((step,) + losses))
    samples = sess.run(fake, {z: random.randn(2000, 4)})
left, right = np.mean(np.abs(samples + 2) < 0.7), np.mean(np.abs(samples - 2) < 0.7)
print("gan: %.1f %% around -2, %.1f %% around 2" % (100 * left, 100 * right))
