#!/usr/bin/env python3
"""Records stock TensorFlow's results for learning rates, clipping, averages, losses and metrics.

usage: record_values.py > values.txt

Lines: "NAME VALUES". Inputs are wave(shape, k) = sin(k (n + 1)), as in the tests.
"""
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
t1 = v1.train
v1.disable_eager_execution()
STEPS = (0, 1, 5, 10, 13, 25, 50)


def wave(shape, k, dtype=np.float32):
    n = np.arange(int(np.prod(shape)))
    return np.sin(k * (n + 1)).reshape(shape).astype(dtype)


def put(name, x):
    print(name, ' '.join('%.9g' % v for v in np.asarray(x, np.float64).ravel()))


def run(x, feeds=None):
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        return session.run(x, feeds)


def schedules():
    step = v1.placeholder(tf.int64, [])
    d = {
        'exponential': t1.exponential_decay(0.1, step, 10, 0.9),
        'exponential_staircase': t1.exponential_decay(0.1, step, 10, 0.9, staircase=True),
        'natural_exp': t1.natural_exp_decay(0.1, step, 10, 0.5),
        'inverse_time': t1.inverse_time_decay(0.1, step, 10, 0.5),
        'inverse_time_staircase': t1.inverse_time_decay(0.1, step, 10, 0.5, staircase=True),
        'polynomial': t1.polynomial_decay(0.1, step, 20, 0.01, 0.5),
        'polynomial_cycle': t1.polynomial_decay(0.1, step, 20, 0.01, 2.0, cycle=True),
        'cosine': t1.cosine_decay(0.1, step, 20, alpha=0.1),
        'restarts': t1.cosine_decay_restarts(0.1, step, 10, alpha=0.05),
        'restarts_even': t1.cosine_decay_restarts(0.1, step, 10, t_mul=1.0, m_mul=0.8),
        'restarts_long': t1.cosine_decay_restarts(0.1, step, 7, t_mul=1.5, m_mul=0.9),
        'linear_cosine': t1.linear_cosine_decay(0.1, step, 20, num_periods=2, alpha=0.1),
        'piecewise': t1.piecewise_constant(step, [1, 10, 20], [1.0, 0.5, 0.25, 0.125]),
    }
    with v1.Session() as session:
        for name, rate in d.items():
            put('schedule/' + name, [session.run(rate, {step: s}) for s in STEPS])


def clips():
    a, b = wave((3, 4), 0.7), wave((5,), 1.1)
    put('clip/value', run(tf.clip_by_value(a, -0.3, 0.5)))
    put('clip/norm', run(tf.clip_by_norm(a, 0.8)))
    put('clip/norm_idle', run(tf.clip_by_norm(a, 80.0)))
    put('clip/norm_zero', run(tf.clip_by_norm(np.zeros(3, np.float32), 1.0)))
    put('clip/average', run(v1.clip_by_average_norm(a, 0.1)))
    clipped, norm = run(tf.clip_by_global_norm([tf.constant(a), tf.constant(b)], 0.8))
    put('clip/global_a', clipped[0])
    put('clip/global_b', clipped[1])
    put('clip/global_norm', norm)


def averages():
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.Variable(wave((4,), 0.5), name='w')
        move = w.assign_add(np.full(4, 0.25, np.float32))
        n = v1.placeholder(tf.float32, [])
        average = tf.train.ExponentialMovingAverage(0.9, num_updates=n)
        apply = average.apply([w])
        session.run(v1.global_variables_initializer())
        for i in range(5):
            session.run(move)
            session.run(apply, {n: i})
        put('average/num_updates', session.run(average.average(w)))
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable('v', initializer=np.zeros(4, np.float32), trainable=False)
        x = v1.placeholder(tf.float32, [4])
        from tensorflow.python.training import moving_averages
        apply = moving_averages.assign_moving_average(v, x, 0.9, zero_debias=True)
        session.run(v1.global_variables_initializer())
        for i in range(3):
            session.run(apply, {x: wave((4,), 0.5 + i)})
        put('average/debias', session.run(v))


def losses():
    y, p = wave((4, 3), 0.7), wave((4, 3), 1.3)
    w = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32)
    l = v1.losses
    R = l.Reduction
    put('loss/mse', run(l.mean_squared_error(y, p)))
    put('loss/mse_weights', run(l.mean_squared_error(y, p, w)))
    put('loss/mse_sum', run(l.mean_squared_error(y, p, w, reduction=R.SUM)))
    put('loss/mse_mean', run(l.mean_squared_error(y, p, w, reduction=R.MEAN)))
    put('loss/mse_count', run(l.mean_squared_error(y, p, w, reduction=R.SUM_OVER_BATCH_SIZE)))
    put('loss/mse_none', run(l.mean_squared_error(y, p, w, reduction=R.NONE)))
    put('loss/absolute', run(l.absolute_difference(y, p, 0.5)))
    put('loss/huber', run(l.huber_loss(y, p, delta=0.4)))
    put('loss/log', run(l.log_loss(np.abs(y), np.abs(p))))
    put('loss/cosine', run(l.cosine_distance(y, p, axis=1)))
    hard = (y > 0).astype(np.float32)
    put('loss/hinge', run(l.hinge_loss(hard, p)))
    put('loss/sigmoid', run(l.sigmoid_cross_entropy(hard, p, label_smoothing=0.1)))
    hot = np.eye(3, dtype=np.float32)[[2, 0, 1, 1]]
    put('loss/softmax', run(l.softmax_cross_entropy(hot, p, label_smoothing=0.2)))
    put('loss/sparse', run(l.sparse_softmax_cross_entropy(
        np.array([2, 0, 1, 1]), p, np.array([1.0, 0.0, 2.0, 0.5], np.float32))))


def metrics():
    m = v1.metrics
    y, p = v1.placeholder(tf.float32, [8]), v1.placeholder(tf.float32, [8])
    w = v1.placeholder(tf.float32, [8])
    d = {
        'mean': m.mean(p, w), 'mse': m.mean_squared_error(y, p, w),
        'rmse': m.root_mean_squared_error(y, p), 'mae': m.mean_absolute_error(y, p, w),
        'accuracy': m.accuracy(y > 0, p > 0), 'precision': m.precision(y > 0, p > 0, w),
        'recall': m.recall(y > 0, p > 0), 'fp': m.false_positives(y > 0, p > 0, w),
        'auc': m.auc(y > 0, tf.abs(p), w),
        'auc_pr': m.auc(y > 0, tf.abs(p), num_thresholds=20, curve='PR',
                        summation_method='trapezoidal'),
        'below': m.percentage_below(p, 0.3, w),
        'relative': m.mean_relative_error(y, p, tf.nn.relu(w - 0.5)),
        'cosine': m.mean_cosine_distance(tf.reshape(y, [4, 2]), tf.reshape(p, [4, 2]), 1),
    }
    # Classes 0 … 3; the value alone, for what stock gives as an update is something else.
    class_of = lambda x: tf.cast(tf.abs(x) * 3.99, tf.int64)
    classes = {
        'iou': m.mean_iou(class_of(y), class_of(p), 5),
        'iou_weights': m.mean_iou(class_of(y), class_of(p), 4, w),
        'class_accuracy': m.mean_per_class_accuracy(class_of(y), class_of(p), 4),
        'class_accuracy_weights': m.mean_per_class_accuracy(class_of(y), class_of(p), 5, w),
    }
    with v1.Session() as session:
        session.run(v1.local_variables_initializer())
        for i in range(3):
            feeds = {y: wave((8,), 0.7 + i), p: wave((8,), 1.3 + i), w: np.abs(wave((8,), 0.4 + i))}
            updates = session.run({k: x[1] for k, x in d.items()}, feeds)
            session.run([x[1] for x in classes.values()], feeds)
        for name, x in d.items():
            put('metric/' + name, [session.run(x[0]), updates[name]])
        for name, x in classes.items():
            put('metric/' + name, [session.run(x[0])] * 2)


def initializers():
    from tensorflow.python.ops import init_ops as i
    d = {
        'uniform': i.random_uniform_initializer(-1, 2, seed=7),
        'normal': i.random_normal_initializer(1, 0.5, seed=7),
        'truncated': i.truncated_normal_initializer(1, 0.5, seed=7),
        'glorot_uniform': i.glorot_uniform_initializer(seed=7),
        'glorot_normal': i.glorot_normal_initializer(seed=7),
        'he_uniform': i.he_uniform(seed=7), 'he_normal': i.he_normal(seed=7),
        'lecun_uniform': i.lecun_uniform(seed=7), 'lecun_normal': i.lecun_normal(seed=7),
        'orthogonal': i.orthogonal_initializer(2.0, seed=7),
        'identity': i.identity_initializer(3.0),
    }
    for name, init in d.items():
        put('init/' + name, run(init([3, 4], tf.float32)))
    put('init/he_normal_conv', run(d['he_normal']([2, 2, 3, 4], tf.float32)))


def sampling():
    weights, biases = wave((6, 3), 0.9), wave((6,), 1.9)
    x, labels = wave((4, 3), 1.1), np.array([[1], [5], [0], [2]], np.int64)
    sampled = (np.array([3, 1, 4], np.int64), np.abs(wave((4, 1), 0.3)), np.abs(wave((3,), 0.8)))
    put('sample/softmax', run(tf.nn.sampled_softmax_loss(
        weights, biases, labels, x, 3, 6, sampled_values=sampled)))
    put('sample/softmax_hits', run(tf.nn.sampled_softmax_loss(
        weights, biases, labels, x, 3, 6, sampled_values=sampled, remove_accidental_hits=False)))
    put('sample/nce', run(tf.nn.nce_loss(
        weights, biases, labels, x, 3, 6, sampled_values=sampled)))
    true = np.array([[3], [1]], np.int64)
    for name, draw in (('log_uniform', tf.random.log_uniform_candidate_sampler),
                       ('uniform', tf.random.uniform_candidate_sampler),
                       ('learned', tf.random.learned_unigram_candidate_sampler)):
        put('sample/' + name, np.concatenate([np.ravel(v) for v in run(
            draw(true, 1, 4, True, 10, seed=5))]))
    put('sample/fixed', np.concatenate([np.ravel(v) for v in run(
        tf.random.fixed_unigram_candidate_sampler(true, 1, 4, True, 6, distortion=0.75, seed=5,
                                                  unigrams=[1, 2, 3, 4, 5, 6]))]))


for part in (schedules, clips, averages, losses, metrics, initializers, sampling):
    part()
