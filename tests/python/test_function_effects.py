"""Effects in the loops of a tf.function: turn after turn, after what came before the loop and before
what comes after it."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


def _doubling(tf, v, w):
    @tf.function
    def run(n):
        def turn(i):
            v.assign(v * 2.0 - tf.cast(i, tf.float32))
            return i + 1
        v.assign_add(1.0)
        tf.while_loop(lambda i: i < n, turn, [tf.constant(0)])
        w.assign(v)
        v.assign_sub(0.5)
        return v.read_value()
    return run


@both()
def test_turns_follow_each_other(tf, np):
    v, w = tf.Variable(1.0), tf.Variable(0.0)
    run = _doubling(tf, v, w)
    return [float(run(tf.constant(n))) for n in (5, 0)] + [float(v), float(w)]


@both()
def test_calls_follow_each_other(tf, np):
    v, w = tf.Variable(1.0), tf.Variable(0.0)
    run = _doubling(tf, v, w)
    both_runs = tf.function(lambda n: (run(n), run(n)))
    return [float(x) for x in both_runs(tf.constant(4))] + [float(v), float(w)]


@both()
def test_loops_in_loops(tf, np):
    v, w = tf.Variable(1.0), tf.Variable(0.0)

    @tf.function
    def run(n):
        def inner(j, i):
            v.assign(v * 1.5 + tf.cast(j, tf.float32))
            return j + 1, i

        def outer(i):
            w.assign_add(v)
            tf.while_loop(lambda j, i: j < i, inner, [tf.constant(0), i])
            v.assign_sub(w)
            return i + 1
        tf.while_loop(lambda i: i < n, outer, [tf.constant(0)])
        return v + w
    return [float(run(tf.constant(4))), float(v), float(w)]


@both()
def test_loops_read_what_was_written_before(tf, np):
    v, w = tf.Variable(2.0), tf.Variable(0.0)

    @tf.function
    def run(n):
        w.assign_add(1.0)
        total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + v * w),
                              [tf.constant(0), tf.constant(0.0)])[1]
        v.assign(100.0)
        w.assign_add(1.0)
        return total
    return [float(run(tf.constant(6))), float(v), float(w)]


@both()
def test_a_map_reads_what_was_written_before(tf, np):
    v, w = tf.Variable(3.0), tf.Variable(0.0)

    @tf.function
    def run(x):
        w.assign_add(1.0)
        y = tf.map_fn(lambda e: e * v + w, x)
        w.assign_add(1.0)
        return y
    return [run(tf.constant([1.0, 2.0, 3.0])).numpy(), float(w)]
