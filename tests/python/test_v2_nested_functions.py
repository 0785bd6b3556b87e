"""tf.functions that call tf.functions, and tf.functions under a tape: the same programs in stock.

Each program counts how often Python runs a function's body: once per trace, however often and from wherever it is called.
"""

import functools

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_calls_are_nodes(tf, np):
    runs, v, n = [], tf.Variable(3.0), tf.Variable(0)

    @tf.function
    def effect(x):
        runs.append("effect")
        n.assign_add(1)
        return x * v, x + 1.0

    @tf.function
    def pure(x):
        runs.append("pure")
        return tf.sin(x) * v

    @tf.function
    def outer(x):
        a, b = effect(x)
        return a * b + pure(x) * pure(a)

    x = tf.constant(2.0)
    values = [outer(x), outer(x), effect(x), n.numpy()]
    graph = outer.get_concrete_function(x).graph
    calls = sorted(op.type for op in graph.get_operations() if "Call" in op.type)
    return values, runs, len(calls), len(graph.as_graph_def().library.function)


@both
def test_gradients_of_calls_in_graphs(tf, np):
    v, n = tf.Variable(3.0), tf.Variable(0)

    @tf.function
    def effect(x):
        n.assign_add(1)
        return x * v, x + 1.0

    @tf.function
    def pure(x):
        return tf.sin(x) * v

    @tf.function
    def outer(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            a, b = effect(x)
            y = a * b + pure(x) * pure(a)
        return y, tape.gradient(y, x), tape.gradient(y, v), tape.gradient(a, x)

    @tf.function
    def second(x):
        with tf.GradientTape() as outside:
            outside.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = pure(x) * pure(x)
            d = tape.gradient(y, x)
        return outside.gradient(d, x)

    @tf.function
    def loop(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in tf.range(3):
                if i < 2:
                    y = pure(y)
                else:
                    y = effect(y)[0]
        return y, tape.gradient(y, x)

    x = tf.constant(2.0)
    return [*outer(x), second(x), *loop(x), n.numpy()]


@both
def test_order_around_calls(tf, np):
    w = tf.Variable(1.0)

    @tf.function
    def square():
        return w * w

    @tf.function
    def outer(x):
        w.assign(x)
        before = square()
        w.assign(2.0 * x)
        with tf.GradientTape() as tape:
            after = square()
        d = tape.gradient(after, w)
        w.assign(5.0 * x)
        return before, after, d, w.read_value()

    return outer(tf.constant(2.0))


@both
def test_calls_on_untaken_branches(tf, np):
    v = tf.Variable(1.0)

    @tf.function
    def inner(x, c):
        if c:
            v.assign_add(x)
            x = x + 1.0
        else:
            x = x * 3.0
        return x

    @tf.function
    def branch(x, c, d):
        return tf.cond(d, lambda: inner(x, c), lambda: x)

    @tf.function
    def loop(x, c):
        for _ in tf.range(3):
            x = inner(x, c)
        return x

    x, yes, no = tf.constant(2.0), tf.constant(True), tf.constant(False)
    return [branch(x, yes, yes), branch(x, no, yes), branch(x, yes, no), loop(x, yes), loop(x, no), v.numpy()]


@both
def test_variables_of_called_functions(tf, np):
    class Model(tf.Module):
        def __init__(self):
            self.v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(tf.ones([2]) * 4.0)
            return self.v * x

    model = Model()

    @tf.function
    def outer(x):
        return model(x) + model(x)

    @tf.function
    def draws():
        return tf.random.uniform([])

    @tf.function
    def differ():
        return draws() != draws()

    return outer(tf.constant(2.0)), outer(tf.constant(3.0)), model.v.numpy(), differ()


@both
def test_shapes_of_calls(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.int32)])
    def made(x, s):
        return tf.ones(tf.stack([tf.shape(x)[0], s]), tf.int32), x + 1

    shapes = []

    @tf.function
    def outer(x):
        y, z = made(x, 5)
        shapes.extend([y.shape.as_list(), z.shape.as_list()])
        return y

    return outer(tf.zeros([3, 6], tf.int32)), shapes


@both
def test_taped_calls_are_one_step(tf, np):
    runs, n, w = [], tf.Variable(0.0), tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tf.function
    def f(x):
        runs.append(1)
        n.assign_add(1.0)
        kept = tf.nn.dropout(tf.ones([2, 2]), 0.5)
        return {"y": tf.matmul(x, w) * kept, "kept": kept, "number": tf.constant(3)}

    @tf.function
    def twice(x):
        return f(x)["y"] * f(x)["y"]

    x, rows = tf.constant([[1.0, 2.0], [3.0, 4.0]]), []
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = f(x)
            y = tf.reduce_sum(result["y"])
        dx, dw = tape.gradient(y, [x, w])
        rows.append((tf.reduce_sum(abs(dx - tf.matmul(result["kept"], w, transpose_b=True))),
                     tf.reduce_sum(abs(dw - tf.matmul(x, result["kept"], transpose_a=True))), result["number"]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = twice(x)
    return rows, tape.gradient(y, x).shape.as_list(), n.numpy(), runs


@both
def test_taped_calls_with_gradients_of_their_own(tf, np):
    runs, w, table = [], tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable(tf.ones([4, 2]))

    @tf.custom_gradient
    def cube(x):
        y = x * x

        def gradient(dy):
            return dy * 30.0 * y  # not the derivative, so that it can be told from it
        return y * x, gradient

    @tf.function
    def f(x):
        runs.append(1)
        return cube(x) * w, tf.reduce_sum(w)

    @tf.function
    def rows(i):
        table.assign_add(tf.zeros([4, 2]))
        return tf.gather(table, i)

    x, found = tf.constant([[1.0, 2.0], [3.0, 4.0]]), []
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            a, b = f(x)
            y = tf.reduce_sum(a) + b
        found.append(tape.gradient(y, [x, w]))
    with tf.GradientTape() as tape:
        y = rows(tf.constant([1, 2]))
    return found, runs, type(tape.gradient(y, table)).__name__


@both
def test_failing_gradient_that_nothing_asks_for(tf, np):
    @tf.custom_gradient
    def failing(x):
        def gradient(dy):
            raise AssertionError("the gradient was computed")
        return x * 2.0, gradient

    f, x = tf.function(lambda x: failing(x)), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(tf.stop_gradient(x))
    return y, tape.gradient(y, x) is None
