"""AND and OR with one neuron each, XOR with a hidden layer: only the first two are linearly separable.

The program also trains a single neuron for XOR, which never gets all four answers right.
"""

import argparse

import runnel as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
options = parser.parse_args()

INPUTS = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
GATES = {"AND": [0, 0, 0, 1], "OR": [0, 1, 1, 1], "XOR": [0, 1, 1, 0]}


def learn(gate, hidden):
    """Returns the four answers after training; `hidden` is the number of hidden neurons, 0 for no hidden layer."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        x = tf.placeholder(tf.float32, [4, 2])
        t = tf.placeholder(tf.float32, [4, 1])
        layer = x
        if hidden:
            V = tf.Variable(tf.random_normal([2, hidden], seed=1))
            layer = tf.tanh(tf.matmul(x, V) + tf.Variable(tf.zeros([hidden])))
        W = tf.Variable(tf.random_normal([hidden or 2, 1], seed=2))
        b = tf.Variable(tf.zeros([1]))
        logits = tf.matmul(layer, W) + b
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=logits))
        train = tf.train.AdamOptimizer(0.05).minimize(loss)
        feed = {x: INPUTS, t: [[float(v)] for v in GATES[gate]]}
        with tf.Session() as sess:
            sess.run(tf.initialize_all_variables())
            for _ in range(options.steps):
                sess.run(train, feed_dict=feed)
            return sess.run(tf.sigmoid(logits), feed_dict=feed).ravel()


for gate, hidden in [("AND", 0), ("OR", 0), ("XOR", 0), ("XOR", 8)]:
    answers = learn(gate, hidden)
    right = sum(round(float(a)) == t and abs(a - t) < 0.2 for a, t in zip(answers, GATES[gate]))
    print("%-3s with %d hidden: %s, %d of 4 right" % (gate, hidden, " ".join("%.3f" % a for a in answers), right))
