#!/usr/bin/env python3
"""Records how stock TensorFlow's optimizers move a dense and a sparse problem over 100 steps.

usage: record_optimizers.py > optimizers.txt

The problems (tests/train/optimizer_test.c builds the same ones):
  dense   w [3,4];  loss = sum((a w - b)^2) / 2 + sum(sin w)
  sparse  w [6,3];  loss = sum((c w[i] - d)^2) / 2, i = t, 3t + 1, t, 4 (mod 6) at step t
with w, a, b, c, d from wave(n, k) = sin(k (n + 1)).

Lines: "case KEY PROBLEM DTYPE", "step T VALUES", "slot NAME VALUES" (after the last step).
"""
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
t1 = v1.train
STEPS = (1, 10, 100)


def wave(shape, k, dtype):
    n = np.arange(int(np.prod(shape)))
    return np.sin(k * (n + 1)).reshape(shape).astype(dtype)


def indices(t):
    return np.array([t % 6, (3 * t + 1) % 6, t % 6, 4], np.int32)


def values(x):
    return ' '.join('%.9g' % v for v in np.asarray(x, np.float64).ravel())


def loss_of(problem, w, idx, dtype):
    if problem == 'dense':
        a, b = wave((3, 4), 0.7, dtype), wave((3, 4), 1.3, dtype)
        return tf.reduce_sum((a * w - b) ** 2) / 2 + tf.reduce_sum(tf.sin(w))
    c, d = wave((4, 3), 0.9, dtype), wave((4, 3), 1.7, dtype)
    return tf.reduce_sum((c * tf.gather(w, idx) - d) ** 2) / 2


def first_value(problem, dtype):
    return wave((3, 4) if problem == 'dense' else (6, 3), 0.5, dtype)


GRAPH_CASES = {
    'sgd': lambda step: t1.GradientDescentOptimizer(0.1),
    'momentum': lambda step: t1.MomentumOptimizer(0.05, 0.9),
    'nesterov': lambda step: t1.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    'adagrad': lambda step: t1.AdagradOptimizer(0.3),
    'adagrad_da': lambda step: t1.AdagradDAOptimizer(0.3, step, 0.1, 0.01, 0.02),
    'adadelta': lambda step: t1.AdadeltaOptimizer(0.5, rho=0.9, epsilon=1e-6),
    'adam': lambda step: t1.AdamOptimizer(0.02),
    'adam_betas': lambda step: t1.AdamOptimizer(0.02, 0.8, 0.95, 1e-4),
    'rmsprop': lambda step: t1.RMSPropOptimizer(0.02),
    'rmsprop_momentum': lambda step: t1.RMSPropOptimizer(0.01, 0.8, 0.5, 1e-3),
    'rmsprop_centered': lambda step: t1.RMSPropOptimizer(0.01, 0.9, 0.3, 1e-3, centered=True),
    'ftrl': lambda step: t1.FtrlOptimizer(0.3),
    'ftrl_l1_l2': lambda step: t1.FtrlOptimizer(0.3, l1_regularization_strength=0.01,
                                                l2_regularization_strength=0.02),
    'ftrl_shrinkage': lambda step: t1.FtrlOptimizer(
        0.3, learning_rate_power=-0.6, initial_accumulator_value=0.2,
        l1_regularization_strength=0.01, l2_regularization_strength=0.02,
        l2_shrinkage_regularization_strength=0.03),
    'proximal_sgd': lambda step: t1.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    'proximal_adagrad': lambda step: t1.ProximalAdagradOptimizer(0.3, 0.1, 0.01, 0.02),
}


def record_graph(key, problem, dtype):
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.Variable(first_value(problem, dtype), name='w')
        step = t1.get_or_create_global_step()
        idx = v1.placeholder(tf.int32, [4])
        loss = loss_of(problem, w, idx, dtype)
        train = GRAPH_CASES[key](step).minimize(loss, global_step=step)
        session.run(v1.global_variables_initializer())
        for t in range(1, STEPS[-1] + 1):
            session.run(train, {idx: indices(t)})
            if t in STEPS:
                print('step', t, values(session.run(w)))
        for v in v1.global_variables():
            if v is not w and v is not step:
                print('slot', v.op.name, values(session.run(v)))


KERAS_CASES = {
    # Betas that floats hold exactly: Keras computes 1 - beta in doubles, tf.compat.v1 in floats.
    'adamw': lambda: tf.keras.optimizers.AdamW(0.02, 0.05, 0.875, 0.96875, epsilon=1e-8),
    'amsgrad': lambda: tf.keras.optimizers.Adam(0.02, 0.8, 0.9, 1e-8, amsgrad=True),
}


def record_keras(key, problem, dtype):
    tf.keras.backend.set_floatx(dtype)
    optimizer = KERAS_CASES[key]()
    w = tf.keras.Variable(first_value(problem, dtype), dtype=dtype, name='w')
    optimizer.build([w])
    for t in range(1, STEPS[-1] + 1):
        with tf.GradientTape() as tape:
            loss = loss_of(problem, w.value, indices(t), dtype)
        gradient = tf.convert_to_tensor(tape.gradient(loss, w.value))
        optimizer.apply([gradient], [w])
        if t in STEPS:
            print('step', t, values(w.numpy()))


for dtype in ('float32', 'float64'):
    for problem in ('dense', 'sparse'):
        for key in GRAPH_CASES:
            # Stock refuses the proximal optimizers on doubles.
            if dtype == 'float64' and key.startswith('proximal'):
                continue
            print('case', key, problem, dtype)
            record_graph(key, problem, dtype)
        for key in KERAS_CASES:
            print('case', key, problem, dtype)
            record_keras(key, problem, dtype)
