"""An LSTM that predicts the next word, with the full softmax and with a sampled one.

The text is random: each of 200 words has four possible successors. A model that has learned them all
reaches a perplexity of 4; guessing gives 200. --softmax sampled trains with 32 sampled words besides
the true one; the evaluation always uses all words.
"""

import argparse

import numpy as np
import runnel as tf
from device import add_option, session

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--softmax", choices=["full", "sampled"], default="full")
add_option(parser)
options = parser.parse_args()
WORDS, SIZE, BATCH, LENGTH = 200, 64, 32, 12

random = np.random.RandomState(5)
successors = np.stack([random.permutation(WORDS)[:4] for _ in range(WORDS)])


def sentences():
    words = np.zeros((BATCH, LENGTH + 1), np.int64)
    words[:, 0] = random.randint(0, WORDS, BATCH)
    for i in range(LENGTH):
        words[:, i + 1] = successors[words[:, i], random.randint(0, 4, BATCH)]
    return words


tf.set_random_seed(1)
words = tf.placeholder(tf.int64, [BATCH, LENGTH + 1])
embedding = tf.get_variable("embedding", [WORDS, SIZE], initializer=tf.random_uniform_initializer(-0.5, 0.5))
inputs = tf.nn.embedding_lookup(embedding, words[:, :-1])

cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(SIZE) for _ in range(2)])
outputs, last = tf.nn.dynamic_rnn(cell, inputs, initial_state=cell.zero_state(BATCH, tf.float32))

flat = tf.reshape(outputs, [-1, SIZE])
targets = tf.reshape(words[:, 1:], [-1])
softmax_w = tf.get_variable("softmax_w", [WORDS, SIZE])
softmax_b = tf.get_variable("softmax_b", [WORDS], initializer=tf.zeros_initializer())
logits = tf.matmul(flat, softmax_w, transpose_b=True) + softmax_b
full = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
loss = full
if options.softmax == "sampled":
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(
        softmax_w, softmax_b, tf.expand_dims(targets, 1), flat, num_sampled=32, num_classes=WORDS))

tvars = tf.trainable_variables()
grads, norm = tf.clip_by_global_norm(tf.gradients(loss, tvars), 5)
train = tf.train.AdamOptimizer(0.01).apply_gradients(zip(grads, tvars))

with session(options) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(options.steps):
        sess.run(train, {words: sentences()})
        if step % 100 == 0:
            print("step %d: perplexity %.1f" % (step, np.exp(sess.run(full, {words: sentences()}))))
    final = np.mean([sess.run(full, {words: sentences()}) for _ in range(10)])
print("language model, %s softmax: perplexity %.2f" % (options.softmax, np.exp(final)))
