"""tf.compat.v1.wrap_function: graphs in the style of 1.x as functions, and parts of them. The same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_variables_live_with_the_function(tf, np):
    def f(x, adds):
        v = tf.compat.v1.Variable(5.0)
        op = v.assign_add(x) if adds else v.assign_sub(x)
        with tf.control_dependencies([op]):
            return v.read_value()
    spec = tf.TensorSpec((), tf.float32)
    one, two = tf.compat.v1.wrap_function(f, [spec, True]), tf.compat.v1.wrap_function(f, [spec, False])
    return [one(1.0), one(tf.constant(1.0)), two(1.0), two(2.0), one(0.5)]


@both
def test_only_what_results_depend_on_runs(tf, np):
    v = tf.Variable(0)

    def f(x):
        v.assign_add(1)
        return x * 2
    g = tf.compat.v1.wrap_function(f, [tf.TensorSpec((), tf.int32)])
    return g(tf.constant(3)), g(tf.constant(4)), v


@both
def test_pruned_functions(tf, np):
    v = tf.Variable(2.0)
    w = []

    def f(z, y):
        w.append(tf.compat.v1.Variable(3.0))
        tf.identity(y + 1.0, "other")
        v.assign_add(1.0, name="increment", read_value=False)
        return tf.identity(v * w[0] * z, "fetch")
    g = tf.compat.v1.wrap_function(f, [tf.TensorSpec((), tf.float32)] * 2)
    graph = g.graph
    x = tf.constant(4.0)
    part = g.prune(graph.inputs[0], "fetch:0")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = part(x)
    other = g.prune(graph.inputs[1], [graph.get_tensor_by_name("other:0")])
    step = g.prune([], "increment")
    return [y, tape.gradient(y, [x, v, w[0]]), other(x), step() is None, v, part(x), len(part.inputs), len(other.inputs)]


@both
def test_structures(tf, np):
    g = tf.compat.v1.wrap_function(lambda x: {"r": x * 2.0, "x": (x, tf.reduce_sum(x))}, [tf.TensorSpec([2], tf.float32)])
    return g(tf.constant([1.0, 2.0])), sorted(g.structured_outputs)
