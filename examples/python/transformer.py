"""A small transformer that predicts the next word of the text of language_model.py.

Every word attends to those before it, in four ways at once (heads): the more a word's query resembles another's key, the
more of that one's value it takes. Two dense layers follow. A model that has learned all successors reaches a perplexity
of 4; guessing gives 200.
"""

import argparse

import numpy as np
import runnel as tf
from device import add_option, session

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
add_option(parser)
options = parser.parse_args()
WORDS, WIDTH, HEADS, BLOCKS, BATCH, LENGTH = 200, 64, 4, 2, 32, 12

random = np.random.RandomState(5)
successors = np.stack([random.permutation(WORDS)[:4] for _ in range(WORDS)])


def sentences():
    words = np.zeros((BATCH, LENGTH + 1), np.int64)
    words[:, 0] = random.randint(0, WORDS, BATCH)
    for i in range(LENGTH):
        words[:, i + 1] = successors[words[:, i], random.randint(0, 4, BATCH)]
    return words


def normalize(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    gamma = tf.Variable(tf.ones([WIDTH]))
    return (x - mean) * tf.rsqrt(variance + 1e-5) * gamma + tf.Variable(tf.zeros([WIDTH]))


def attend(x):
    qkv = tf.reshape(tf.layers.dense(x, 3 * WIDTH), [BATCH, LENGTH, 3, HEADS, WIDTH // HEADS])
    q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
    scores = tf.matmul(q, k, transpose_b=True) / np.sqrt(WIDTH // HEADS)
    seen = tf.constant(np.tril(np.ones((LENGTH, LENGTH), bool)))
    weights = tf.nn.softmax(tf.where(tf.broadcast_to(seen, scores.shape), scores, tf.fill(scores.shape, -1e9)))
    together = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
    return tf.layers.dense(tf.reshape(together, [BATCH * LENGTH, WIDTH]), WIDTH)


def gelu(x):
    return 0.5 * x * (1 + tf.erf(x / np.sqrt(2)))


tf.set_random_seed(1)
words = tf.placeholder(tf.int64, [BATCH, LENGTH + 1])
embedding = tf.Variable(tf.random_normal([WORDS, WIDTH], stddev=0.1, seed=1))
positions = tf.Variable(tf.zeros([LENGTH, WIDTH]))
x = tf.reshape(tf.nn.embedding_lookup(embedding, words[:, :-1]) + positions, [BATCH * LENGTH, WIDTH])
for _ in range(BLOCKS):
    x += attend(normalize(x))
    x += tf.layers.dense(tf.layers.dense(normalize(x), 4 * WIDTH, activation=gelu), WIDTH)
logits = tf.layers.dense(normalize(x), WORDS)
targets = tf.reshape(words[:, 1:], [-1])
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
train = tf.train.AdamOptimizer(0.003).minimize(loss)

with session(options) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(options.steps):
        value, _ = sess.run([loss, train], {words: sentences()})
        if step % 100 == 0:
            print("step %d: perplexity %.1f" % (step, np.exp(value)))
    final = np.mean([sess.run(loss, {words: sentences()}) for _ in range(10)])
print("transformer: perplexity %.2f" % np.exp(final))
