"""A line through noisy points: gradient descent finds the slope 0.1 and the offset 0.3 that generated them."""

import argparse

import numpy as np
import runnel as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
options = parser.parse_args()

x_data = np.random.RandomState(1).rand(1000).astype(np.float32)
noise = np.random.RandomState(2).normal(0, 0.01, 1000).astype(np.float32)
y_data = 0.1 * x_data + 0.3 + noise

tf.set_random_seed(1)
W = tf.Variable(tf.random_uniform([1], -1.0, 1.0))
b = tf.Variable(tf.zeros([1]))
y = W * x_data + b

loss = tf.reduce_mean(tf.square(y - y_data))
optimizer = tf.train.GradientDescentOptimizer(0.5)
train = optimizer.minimize(loss)

init = tf.initialize_all_variables()
sess = tf.Session()
sess.run(init)
for step in range(options.steps + 1):
    if step % 100 == 0:
        print(step, sess.run(W), sess.run(b))
    sess.run(train)
print("y = %.4f x + %.4f, loss %.6f" % (sess.run(W)[0], sess.run(b)[0], sess.run(loss)))
