"""Learning rates that change with the step.

In a graph each returns a tensor; in eager execution, a function without arguments, which optimizers call.
"""

import functools
import math

import runnel as tf
from runnel.core import framework


def _schedule(function):
    """A decorator that builds a formula in a scope; in eager execution it returns a function that recomputes it at each call."""
    @functools.wraps(function)
    def run(*args, **kwargs):
        if framework.executing_eagerly():
            return functools.partial(function, *args, **kwargs)
        return function(*args, **kwargs)
    return run


def _rate(value):
    return tf.convert_to_tensor(value, name="initial_learning_rate")


@_schedule
def exponential_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None):
    """Returns learning_rate * decay_rate ^ (global_step / decay_steps); with `staircase`, the exponent is an integer."""
    with tf.name_scope(name or "ExponentialDecay") as scope:
        rate = _rate(learning_rate)
        steps, factor = tf.cast(decay_steps, rate.dtype), tf.cast(decay_rate, rate.dtype)
        power = tf.cast(global_step, rate.dtype) / steps
        if staircase:
            power = tf.floor(power)
        return tf.multiply(rate, tf.pow(factor, power), name=scope)


@_schedule
def natural_exp_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None):
    """Returns learning_rate * e ^ (-decay_rate * global_step / decay_steps)."""
    factor = tf.exp(tf.negative(decay_rate))
    return exponential_decay.__wrapped__(learning_rate, global_step, decay_steps, factor, staircase,
                                         name)


@_schedule
def inverse_time_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False,
                       name=None):
    """Returns learning_rate / (1 + decay_rate * global_step / decay_steps)."""
    with tf.name_scope(name or "InverseTimeDecay") as scope:
        rate = _rate(learning_rate)
        steps, factor = tf.cast(decay_steps, rate.dtype), tf.cast(decay_rate, rate.dtype)
        passed = tf.cast(global_step, rate.dtype) / steps
        if staircase:
            passed = tf.floor(passed)
        one = tf.cast(tf.constant(1), rate.dtype)
        return tf.divide(rate, tf.add(one, tf.multiply(factor, passed)), name=scope)


@_schedule
def polynomial_decay(learning_rate, global_step, decay_steps, end_learning_rate=0.0001, power=1.0,
                     cycle=False, name=None):
    """Decays from learning_rate to end_learning_rate by a power of the remaining fraction of decay_steps."""
    with tf.name_scope(name or "PolynomialDecay") as scope:
        rate = _rate(learning_rate)
        end, power = tf.cast(end_learning_rate, rate.dtype), tf.cast(power, rate.dtype)
        step, steps = tf.cast(global_step, rate.dtype), tf.cast(decay_steps, rate.dtype)
        if cycle:
            times = tf.raw_ops.SelectV2(condition=tf.equal(step, 0), t=1.0,
                                        e=tf.ceil(step / decay_steps))
            steps = tf.multiply(steps, times)
        else:
            step = tf.minimum(step, steps)
        done = tf.divide(step, steps)
        return tf.add(tf.multiply(rate - end, tf.pow(1 - done, power)), end, name=scope)


@_schedule
def piecewise_constant(x, boundaries, values, name=None):
    """Returns values[0] up to boundaries[0], values[1] up to boundaries[1], and so on."""
    boundaries = [tf.convert_to_tensor(b) for b in tf.nest.flatten(boundaries)]
    values = [tf.convert_to_tensor(v) for v in tf.nest.flatten(values)]
    found = tf.convert_to_tensor(x)
    for i, boundary in enumerate(boundaries):
        if boundary.dtype.base_dtype != found.dtype.base_dtype:
            if boundary.dtype.base_dtype == tf.int32 and found.dtype.base_dtype == tf.int64:
                boundaries[i] = tf.cast(boundary, found.dtype.base_dtype)
            else:
                raise ValueError("Boundaries (%s) must have the same dtype as x (%s)." % (
                    boundary.dtype.base_dtype, found.dtype.base_dtype))
    for value in values[1:]:
        if value.dtype.base_dtype != values[0].dtype.base_dtype:
            raise ValueError("Values must have elements all with the same dtype (%s vs %s)." % (
                values[0].dtype.base_dtype, value.dtype.base_dtype))
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with tf.name_scope(name or "PiecewiseConstant"):
        found = tf.convert_to_tensor(x)
        cases = [(found <= boundaries[0], lambda: values[0]),
                 (found > boundaries[-1], lambda: values[-1])]
        for low, high, value in zip(boundaries[:-1], boundaries[1:], values[1:-1]):
            cases.append(((found > low) & (found <= high), lambda v=value: v))
        return tf.case(cases, lambda: values[0], exclusive=True)


def _cosine(fraction):
    return 0.5 * (1.0 + tf.cos(tf.constant(math.pi) * fraction))


@_schedule
def cosine_decay(learning_rate, global_step, decay_steps, alpha=0.0, name=None):
    """Decays along half a cosine from learning_rate to alpha * learning_rate."""
    with tf.name_scope(name or "CosineDecay"):
        rate = _rate(learning_rate)
        steps = tf.cast(decay_steps, rate.dtype)
        step = tf.minimum(tf.cast(global_step, rate.dtype), steps)
        return tf.multiply(rate, (1 - alpha) * _cosine(step / steps) + alpha)


@_schedule
def cosine_decay_restarts(learning_rate, global_step, first_decay_steps, t_mul=2.0, m_mul=1.0,
                          alpha=0.0, name=None):
    """Decays along half a cosine repeatedly, each time `t_mul` times as long and `m_mul` times as high."""
    with tf.name_scope(name or "SGDRDecay") as scope:
        rate = _rate(learning_rate)
        first, alpha, longer, higher = (tf.cast(v, rate.dtype) for v in (
            first_decay_steps, alpha, t_mul, m_mul))
        done = tf.cast(global_step, rate.dtype) / first

        def even():
            count = tf.floor(done)
            return count, done - count

        def geometric():
            count = tf.floor(tf.log(1.0 - done * (1.0 - longer)) / tf.log(longer))
            before = (1.0 - longer ** count) / (1.0 - longer)
            return count, (done - before) / longer ** count

        count, fraction = tf.cond(tf.equal(longer, 1.0), even, geometric)
        height = higher ** count
        wave = 0.5 * height * (1.0 + tf.cos(tf.constant(math.pi) * fraction))
        return tf.multiply(rate, (1 - alpha) * wave + alpha, name=scope)


@_schedule
def linear_cosine_decay(learning_rate, global_step, decay_steps, num_periods=0.5, alpha=0.0,
                        beta=0.001, name=None):
    """Decays along a line times a cosine."""
    with tf.name_scope(name or "LinearCosineDecay") as scope:
        rate = _rate(learning_rate)
        steps, periods, alpha, beta = (tf.cast(v, rate.dtype) for v in (
            decay_steps, num_periods, alpha, beta))
        step = tf.minimum(tf.cast(global_step, rate.dtype), steps)
        line = (steps - step) / steps
        done = step / steps
        wave = _cosine(2.0 * periods * done)
        return tf.multiply(rate, (alpha + line) * wave + beta, name=scope)


@_schedule
def noisy_linear_cosine_decay(learning_rate, global_step, decay_steps, initial_variance=1.0,
                              variance_decay=0.55, num_periods=0.5, alpha=0.0, beta=0.001, name=None):
    """Like linear_cosine_decay, with noise that decreases."""
    with tf.name_scope(name or "NoisyLinearCosineDecay") as scope:
        rate = _rate(learning_rate)
        steps, variance, fading, periods, alpha, beta = (tf.cast(v, rate.dtype) for v in (
            decay_steps, initial_variance, variance_decay, num_periods, alpha, beta))
        step = tf.minimum(tf.cast(global_step, rate.dtype), steps)
        line = (steps - step) / steps
        deviation = tf.sqrt(variance / tf.pow(1.0 + step, fading))
        noisy = line + tf.random_normal(line.shape, stddev=deviation)
        done = step / steps
        wave = _cosine(2.0 * periods * done)
        return tf.multiply(rate, (alpha + noisy) * wave + beta, name=scope)


piecewise_constant_decay = piecewise_constant
