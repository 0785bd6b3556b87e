"""Functions that are told of every operation, and tf.debugging.enable_check_numerics, against stock TensorFlow 2."""

import threading

from both import both


def _module(tf):
    """Returns the module of op callbacks, here or in stock."""
    if tf.__name__.startswith("runnel"):
        from runnel.eager import op_callbacks
        return op_callbacks
    from tensorflow.python.framework import op_callbacks
    return op_callbacks


def _watched(tf, program, replace=None):
    """Returns [(op, inputs, outputs, whether it has a name, whether in a graph)] of what a program runs or builds."""
    module, seen = _module(tf), []

    def watch(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        seen.append((op_type, len(inputs), len(outputs), op_name is not None, graph is not None, "T" in attrs))
        return replace(op_type, outputs) if replace else None

    module.add_op_callback(watch)
    try:
        result = program()
    finally:
        module.remove_op_callback(watch)
    return seen, result


@both(v2=True)
def test_eager_operations(tf, np):
    x = tf.constant([1.0, 4.0])
    seen, y = _watched(tf, lambda: tf.square(tf.math.log(x)) + 1.0)
    return seen, y


@both(v2=True)
def test_operations_of_a_graph(tf, np):
    def program():
        with tf.Graph().as_default():
            x = tf.raw_ops.Placeholder(dtype=tf.float32)
            return tf.math.log(x + tf.constant(2.0)).name
    return _watched(tf, program)


@both(v2=True)
def test_outputs_are_replaced_in_graphs(tf, np):
    def replace(op_type, outputs):
        return [tf.identity(one) * 3.0 for one in outputs] if op_type == "Log" else outputs

    @tf.function
    def f(x):
        return tf.math.log(x) + 1.0
    seen, value = _watched(tf, lambda: f(tf.constant(2.0)), replace)
    return sorted({row[0] for row in seen if row[0] in ("Log", "AddV2", "Mul")}), value, f(tf.constant(2.0))


@both(v2=True)
def test_threads_have_callbacks_of_their_own(tf, np):
    found = []

    def work():
        found.append([row[0] for row in _watched(tf, lambda: tf.cos(tf.constant(1.0)))[0]])

    def program():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return tf.sin(tf.constant(1.0))
    return [row[0] for row in _watched(tf, program)[0]], found


@both(v2=True)
def test_wrong_callbacks(tf, np):
    module, found = _module(tf), []
    for call in (lambda: module.add_op_callback(None), lambda: module.add_op_callback(5), lambda: module.remove_op_callback(print),
                 lambda: _watched(tf, tf.function(lambda: tf.constant(1.0) + 1.0), lambda op, outputs: list(outputs) * 2)):
        try:
            call()
            found.append("no error")
        except (KeyError, TypeError, ValueError) as error:
            found.append(type(error).__name__)
    module.clear_op_callbacks()
    return found


@both(v2=True)
def test_numbers_are_checked(tf, np):
    x = tf.constant([0.0, -1.0, 4.0])
    bad, good = tf.function(tf.math.log), tf.function(lambda x: tf.math.log(x + 2.0))
    with tf.Graph().as_default() as graph:
        fed = tf.compat.v1.placeholder(tf.float32)
        unchecked = tf.math.log(fed)
    texts = []

    def note(call):
        try:
            texts.append(np.asarray(call()).tolist())
        except tf.errors.InvalidArgumentError as error:
            lines = [line.strip() for line in str(error).splitlines()]
            texts.append([line for line in lines if line.startswith(("!!!", "dtype", "shape", "#", "Input tensor"))])

    tf.debugging.enable_check_numerics()
    tf.debugging.enable_check_numerics()
    try:
        for call in (lambda: tf.math.log(x), lambda: tf.constant(1.0) / [0.0], lambda: tf.sqrt(x[2:]), lambda: bad(x), lambda: good(x)):
            note(call)
        with graph.as_default():
            checked = tf.math.log(fed)
        for fetch in (unchecked, checked):
            note(lambda fetch=fetch: tf.compat.v1.Session(graph=graph).run(fetch, {fed: 0.0}))
    finally:
        tf.debugging.disable_check_numerics()
    note(lambda: tf.math.log(x))
    return texts


@both(v2=True)
def test_checked_loops_and_gradients(tf, np):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = tf.cond(y > 2.0, lambda: tf.sqrt(y), lambda: tf.exp(y))  # noqa: B023
        return y, tape.gradient(y, x)

    tf.debugging.enable_check_numerics()
    try:
        results = f(tf.constant(1.0))
        try:
            f(tf.constant(float("nan")))
            results += ("no error",)
        except tf.errors.InvalidArgumentError:
            results += ("error",)
    finally:
        tf.debugging.disable_check_numerics()
    return results
