"""What a tape treats as constant: values computed before it, values it does not watch, and tf.stop_gradient;
the same in eager execution and in a tf.function."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


def _each(tf, np, program):
    """The gradients of `program`, executed and in a function."""
    x, v, u = tf.constant([1.0, 2.0]), tf.Variable(3.0), tf.Variable(4.0, trainable=False)
    answers = []
    for way in (lambda f: f, tf.function):
        found = way(lambda a: program(tf, a, v, u))(x)
        answers.append([None if g is None else np.asarray(tf.convert_to_tensor(g)) for g in found])
    return answers


def _before(tf, x, v, u):
    h = x * v
    with tf.GradientTape() as tape:
        tape.watch(h)
        y = tf.reduce_sum(h * h * v)
    return tape.gradient(y, [x, h, v, u])


def _unwatched(tf, x, v, u):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * v * u)
    return tape.gradient(y, [x, v, u])


def _told(tf, x, v, u):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([x, u])
        y = tf.reduce_sum(x * v * u)
    return tape.gradient(y, [x, v, u], unconnected_gradients="zero")


def _paused(tf, x, v, u):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * x
        w = z * x + y
    return [tape.gradient(w, x), tape.gradient(z, x), tape.gradient(y, x)]


def _after(tf, x, v, u):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y * 2.0, [x, y])


def _twice(tf, x, v, u):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x * x)
        g = tape.gradient(y, x)
    return [g, outer.gradient(g, x)]


def _variable(tf, x, v, u):
    with tf.GradientTape() as tape:
        pass
    return tape.gradient(v, [v, u])


def _stopped(tf, x, v, u):
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = tf.stop_gradient(x * 2.0)
        y = z * z
    return tape.gradient(y, [z, x])


def _in_loop(tf, x, v, u):
    def body(i, s):
        with tf.GradientTape() as tape:
            tape.watch(s)
            y = tf.reduce_sum(s * s * x)
        return i + 1, s + 0.1 * tape.gradient(y, s)
    return [tf.while_loop(lambda i, s: i < 2, body, [tf.constant(0), x])[1]]


def _in_branch(tf, x, v, u):
    w = x * 2.0

    def branch():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(w * x)
        return tape.gradient(y, x)
    return [tf.cond(tf.reduce_sum(x) > 0.0, branch, lambda: x)]


def _complex(tf, x, v, u):
    z = tf.complex(x, x)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = z * z
    return [tf.math.real(tape.gradient(y, z))]


@both
def test_what_counts(tf, np):
    programs = (_before, _unwatched, _told, _paused, _after, _twice, _variable, _stopped, _in_loop, _in_branch, _complex)
    return [_each(tf, np, program) for program in programs]


@both
def test_nothing_is_asked_behind_a_stop(tf, np):
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(1)
            return dy
        return x * 1.0, grad
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(tf.stop_gradient(x)) + x
    return [tape.gradient(y, x).numpy(), len(calls)]


@both
def test_custom_gradients_in_functions(tf, np):
    @tf.custom_gradient
    def five(x):
        return x * x, lambda dy: dy * 5.0

    @tf.custom_gradient
    def reads(x):
        y = tf.sin(x)
        return y, lambda dy: dy * x * y

    @tf.function
    def both_of(x):
        return tf.reduce_sum(reads(x) * five(x))

    @tf.function
    def inner(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = both_of(x)
        return tape.gradient(y, x)
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = both_of(x)
    return [y.numpy(), tape.gradient(y, x).numpy(), inner(x).numpy()]


@both
def test_recompute(tf, np):
    f = tf.recompute_grad(lambda a, b: a * a * b)
    x = tf.constant([1.0, 2.0])
    answers = []
    for way in (lambda g: g, tf.function):
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, x)
            return tape.gradient(y, x)
        answers.append(way(gradient)(x).numpy())
    return answers


@both
def test_jacobians_of_nothing(tf, np):
    x, empty = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.zeros([2, 0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, empty])
        y, none = x * x, empty * 2.0
    found = [tape.batch_jacobian(y, x), tape.batch_jacobian(none, empty), tape.batch_jacobian(y, empty)]
    errors = []
    for target, source in ((y[0], x), (y, x[0])):
        try:
            tape.batch_jacobian(target, source)
        except ValueError as e:
            errors.append("must have rank at least 2" in str(e))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    try:
        tape.jacobian(y, x, experimental_use_pfor=False)
    except RuntimeError as e:
        errors.append(str(e).replace("\n", " "))
    return [g.numpy() for g in found] + errors


@both
def test_variable_of_a_function_in_a_loop(tf, np):
    v, table = tf.Variable(1.5), tf.Variable(np.arange(6.0).reshape(3, 2).astype(np.float32))

    @tf.function
    def dense():
        with tf.GradientTape() as tape:
            x = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x * v), [0, tf.constant(2.0)])[1]
        return tape.gradient(x, v)

    @tf.function
    def rows():
        with tf.GradientTape() as tape:
            x = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x * tf.reduce_sum(tf.gather(table, [i, 1]))),
                              [0, tf.constant(2.0)])[1]
        return tf.convert_to_tensor(tape.gradient(x, table))
    return [dense().numpy(), rows().numpy()]


@both
def test_variable_of_a_function_in_a_branch(tf, np):
    v = tf.Variable(2.0)

    @tf.function
    def chosen(p):
        with tf.GradientTape() as tape:
            y = tf.cond(p, lambda: tf.pow(v, 3.0), lambda: tf.constant(1.0))
        return tape.gradient(y, v)
    return [chosen(tf.constant(p)).numpy() for p in (True, False)]


@both
def test_functions_of_derivatives(tf, np):
    """Before tapes they were tf.contrib.eager's; stock still has them inside."""
    if tf.__name__ == "runnel":
        from runnel.contrib import eager as tfe
        names = (tfe.gradients_function, tfe.value_and_gradients_function, tfe.implicit_gradients, tfe.implicit_value_and_gradients)
    else:
        from tensorflow.python.eager import backprop
        names = (backprop.gradients_function, backprop.val_and_grad_function, backprop.implicit_grad, backprop.implicit_val_and_grad)
    by_arguments, with_value, by_variables, with_value_by_variables = names
    v, u = tf.Variable(2.0), tf.Variable(5.0)

    def f(x, y):
        return x * x * y

    def g(x):
        return u * x + v * v * x
    x = tf.constant(3.0)
    answers = [d.numpy() for d in by_arguments(f)(x, x)] + [d.numpy() for d in by_arguments(f, params=["y"])(2.0, 4.0)]
    answers += [d.numpy() for d in by_arguments(f, params=[0])([[1.0]], [[2.0]], dy=tf.constant([[10.0]]))]
    value, found = with_value(f)(x, 4.0)
    answers += [value.numpy()] + [d.numpy() for d in found]
    answers += [(d.numpy(), which is v) for d, which in by_variables(g)(x)]
    value, found = with_value_by_variables(g)(x)
    answers += [value.numpy()] + [(d.numpy(), which is v) for d, which in found]
    for bad in (lambda: by_variables(lambda: tf.constant(1.0))(), lambda: by_variables(lambda: None)()):
        try:
            bad()
        except ValueError as e:
            answers.append(str(e)[:40])
    with tf.GradientTape() as tape:
        g(x)
    return answers + [which is v for which in tape.watched_variables()]
