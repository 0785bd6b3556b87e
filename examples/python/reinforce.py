"""REINFORCE: an agent learns to balance a pole on a cart, which this file simulates.

The network outputs the logits of pushing left and right, and the graph samples the action. After an
episode, the gradient of each action's log-probability is weighted with the return that followed it,
minus the average return.
"""

import argparse

import numpy as np
import runnel as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300, help="episodes")
options = parser.parse_args()
random = np.random.RandomState(1)
tf.set_random_seed(1)
LONGEST = 200


def push(state, action):
    """Returns the state 0.02 s later: position, speed, angle, angular speed."""
    place, speed, angle, turn = state
    force, sin, cos = (10.0 if action else -10.0), np.sin(angle), np.cos(angle)
    common = (force + 0.05 * turn ** 2 * sin) / 1.1
    bend = (9.8 * sin - cos * common) / (0.5 * (4 / 3 - 0.1 * cos ** 2 / 1.1))
    slide = common - 0.05 * bend * cos / 1.1
    return np.array([place + 0.02 * speed, speed + 0.02 * slide, angle + 0.02 * turn, turn + 0.02 * bend])


def stands(state):
    return abs(state[0]) < 2.4 and abs(state[2]) < 0.21


states = tf.placeholder(tf.float32, [None, 4])
actions = tf.placeholder(tf.int32, [None])
weights = tf.placeholder(tf.float32, [None])
hidden = tf.layers.dense(states, 16, activation=tf.nn.tanh)
logits = tf.layers.dense(hidden, 2)
choice = tf.squeeze(tf.multinomial(logits, 1), axis=[1])
neg_log = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
train = tf.train.AdamOptimizer(0.02).minimize(tf.reduce_mean(neg_log * weights))

lengths = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    draw = sess.make_callable(choice, feed_list=[states])
    while len(lengths) < options.steps and np.mean(lengths[-20:] or [0]) < 195:
        state, seen, done = random.uniform(-0.05, 0.05, 4), [], []
        while stands(state) and len(done) < LONGEST:
            action = draw(state.reshape(1, 4).astype(np.float32))[0]
            seen.append(state)
            done.append(action)
            state = push(state, action)
        rewards, after = np.zeros(len(done)), 0.0
        for i in reversed(range(len(done))):
            rewards[i] = after = 1 + 0.98 * after
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        sess.run(train, {states: np.stack(seen), actions: done, weights: rewards})
        lengths.append(len(done))
        if len(lengths) % 50 == 0:
            print("episode %d: stands for %.1f time steps" % (len(lengths), np.mean(lengths[-20:])))
print("reinforce: %.1f of %d time steps, after %d episodes" % (np.mean(lengths[-20:]), LONGEST, len(lengths)))
