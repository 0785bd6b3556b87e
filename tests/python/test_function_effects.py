"""Side effects in a tf.function happen in program order, also in loops and branches."""

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


@both()
def test_effects_of_a_branch_follow_each_other(tf, np):
    m, w = tf.Variable(0.0), tf.Variable(0.0)

    @tf.function
    def run(p):
        def yes():
            m.assign_add(1.0)
            w.assign_sub(m * 1.0)
            return 0.0
        return tf.cond(p, yes, lambda: 1.0)
    rows = []
    for p in (True, True, False, True, True):
        rows.append([float(run(tf.constant(p))), float(m), float(w)])
    return rows


@both()
def test_branches_without_results(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def run(p):
        tf.cond(p, lambda: v.assign(v * 5.0), lambda: v.assign_add(6.0))
    rows = []
    for p in (True, False, True):
        run(tf.constant(p))
        rows.append(float(v))
    return rows


@both()
def test_checks_in_a_branch(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def run(x):
        def yes():
            tf.debugging.assert_greater(x, 0.0)
            v.assign_add(1.0)
            return x
        return tf.cond(x < 5.0, yes, lambda: -x)
    rows = [float(run(tf.constant(1.0))), float(run(tf.constant(10.0)))]
    try:
        run(tf.constant(-1.0))
    except tf.errors.InvalidArgumentError:
        rows.append("refused")
    return rows


@both()
def test_prints(tf, np):
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "printed")

        def say(*what):
            tf.print(*what, output_stream="file://" + path)

        @tf.function
        def run(n, p):
            def turn(i):
                say("turn", i)
                tf.cond(tf.equal(i % 2, 0), lambda: (say("even", i), 0)[1], lambda: 1)
                return i + 1

            def yes():
                say("yes")
                last = tf.while_loop(lambda i: i < n, turn, [0])
                say("after")
                return last
            say("start")
            last = tf.cond(p, yes, lambda: -1)
            say("end", last)
        run(tf.constant(3), tf.constant(True))
        run(tf.constant(3), tf.constant(False))
        with open(path) as stream:
            return stream.read()


@both()
def test_functions_that_are_called(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def inner(x):
        v.assign_add(x)
        return v

    @tf.function
    def outer(x):
        first, second = inner(x), inner(x)
        v.assign(100.0)
        return first, second, v.read_value()
    changes, reads = inner.get_concrete_function(tf.constant(1.0)), tf.function(lambda: v * 1.0).get_concrete_function()

    @tf.function
    def concrete(x):
        rows = [changes(x), reads()]
        v.assign(v * 2.0)
        return rows + [changes(x), reads()]
    return [float(x) for x in list(outer(tf.constant(1.0))) + concrete(tf.constant(1.0))] + [float(v)]


@both()
def test_training_in_a_branch(tf, np):
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    optimizer = tf.train.GradientDescentOptimizer(0.1)

    @tf.function
    def step(x, p):
        with tf.GradientTape() as tape:
            loss = (v * x - w) ** 2

        def train():
            optimizer.apply_gradients(zip(gradients, [v, w]))
            return v * 1.0
        gradients = tape.gradient(loss, [v, w])
        return tf.cond(p, train, lambda: -v)
    return [float(step(tf.constant(1.0), tf.constant(p))) for p in (True, False, True)] + [float(v), float(w)]


@both()
def test_arrays_and_effects(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def run(n):
        def turn(i, rows):
            v.assign_add(1.0)
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: rows.write(i, v * 1.0), lambda: rows.write(i, -1.0 * v))
        rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        return tf.while_loop(lambda i, rows: i < n, turn, [0, rows])[1].stack()
    return [run(tf.constant(4)).numpy(), float(v)]


@both()
def test_tables_of_their_own(tf, np):
    """In eager execution tables without a name of their own are different ones."""
    fixed = [tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([i, i + 1])), -1) for i in (1, 5)]
    tables = [tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1) for _ in range(2)]
    tables[0].insert(np.int64([1]), np.int64([2]))
    return [t.lookup(tf.constant(["a", "b", "c"])).numpy() for t in fixed] + [t.lookup(np.int64([1])).numpy() for t in tables]
