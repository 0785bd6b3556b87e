"""Gradients through loops and conditionals: gradient functions in Python, nesting, TensorArrays, map_fn and the like."""

import itertools

from both import both

_count = itertools.count()


def _registered(tf, function):
    name = "LoopRule%d" % next(_count)
    tf.RegisterGradient(name)(function)
    return name


def _values(tf, *fetches, **feeds):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(list(fetches))


@both
def test_rule_in_loop(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    name = _registered(tf, lambda op, grad: grad * 3.0 * op.inputs[0] + op.outputs[0])
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.square(a) * 0.5 + x), [0, x])[1]
    return _values(tf, y, *tf.gradients(y, x))


@both
def test_rule_that_returns_what_it_reads(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    name = _registered(tf, lambda op, a: [op.inputs[1], op.inputs[0]])
    with tf.get_default_graph().gradient_override_map({"Mul": name}):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.multiply(a, x + 1.0)), [0, x])[1]
    return _values(tf, y, *tf.gradients(y, x))


@both
def test_rule_of_constants(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    name = _registered(tf, lambda op, grad: tf.constant([1.0, 2.0, 3.0]) * tf.ones([3]))
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.square(a) + x), [0, x])[1]
    return _values(tf, y, *tf.gradients(y, x))


@both
def test_rule_with_values_from_outside(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    w = tf.Variable([0.5, 2.0, 1.5], use_resource=True)
    r = tf.Variable([0.25, 2.0, 1.5], use_resource=False)
    scale = tf.reduce_sum(x) + 1.0
    name = _registered(tf, lambda op, grad: grad * scale * w + r)
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.square(a) + x), [0, x])[1]
        z = tf.while_loop(
            lambda i, a: i < 2,
            lambda i, a: (i + 1, tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, tf.square(b) * 0.1), [0, a])[1]), [0, x])[1]
    return _values(tf, y, z, *(tf.gradients(y, x) + tf.gradients(z, x)))


@both
def test_rule_in_cond(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    s = tf.placeholder(tf.bool, [])
    name = _registered(tf, lambda op, grad: grad * 10.0 * op.inputs[0])
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.cond(s, lambda: tf.square(x), lambda: x * 2.0)
        z = tf.cond(s, lambda: tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.square(a)), [0, x])[1], lambda: tf.tanh(x))
    grads = tf.gradients(y, x) + tf.gradients(z, x)
    with tf.Session() as sess:
        return [sess.run([y, z] + grads, {s: value}) for value in (True, False)]


@both
def test_rule_in_cond_in_loop(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    name = _registered(tf, lambda op, grad: grad * (10.0 + op.inputs[0]))
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        def body(i, a):
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.square(a) * 0.1, lambda: a + tf.square(x))
        y = tf.while_loop(lambda i, a: i < 4, body, [0, x])[1]
    return _values(tf, y, *tf.gradients(y, x))


@both
def test_rule_with_cond_inside(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])

    def rule(op, grad):
        return tf.cond(tf.reduce_sum(op.inputs[0]) > 3.0, lambda: grad * op.inputs[0], lambda: grad * 5.0)
    name = _registered(tf, rule)
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.square(a) * 0.7 + x), [0, x])[1]
        plain = tf.square(x)
    return _values(tf, y, *(tf.gradients(y, x) + tf.gradients(plain, x)))


def test_rule_with_loop_inside():
    import numpy as np
    import runnel as tf

    def rule(op, grad):
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * op.inputs[0] + 1.0), [0, grad])[1]
    name = _registered(tf, rule)
    with tf.Graph().as_default() as graph, graph.gradient_override_map({"Square": name}):
        x = tf.constant([1.0, 2.0, -0.5])
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.square(a) * 0.7 + x), [0, x])[1]
        z = x
        for _ in range(3):  # the same without a loop
            z = tf.square(z) * 0.7 + x
        looped, unrolled = _values(tf, tf.gradients(y, x)[0], tf.gradients(z, x)[0])
    np.testing.assert_allclose(looped, unrolled, rtol=1e-5)


@both
def test_rule_of_py_func(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    name = _registered(tf, lambda op, grad: grad * 2.0 * op.inputs[0])

    def squared(a):
        with tf.get_default_graph().gradient_override_map({"PyFunc": name, "PyFuncStateless": name}):
            out = tf.py_func(np.square, [a], tf.float32, stateful=False)
        out.set_shape(a.shape)
        return out
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, squared(a) * 0.5), [0, x])[1]
    z = tf.map_fn(squared, x)
    return _values(tf, y, z, *(tf.gradients(y, x) + tf.gradients(z, x)))


@both
def test_custom_gradient_in_loop(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    outside = tf.constant([3.0, 1.0, 2.0])

    @tf.custom_gradient
    def log1pexp(a):
        e = tf.exp(a)

        def grad(dy):
            return dy * (1 - 1 / (1 + e)) * outside
        return tf.log(1 + e), grad

    @tf.custom_gradient
    def clipped(a, b):
        return a * b, lambda dy: (tf.clip_by_value(dy, -0.1, 0.1), dy * a)

    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, log1pexp(a)), [0, x])[1]
    z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, clipped(a, x)), [0, x])[1]
    w = tf.scan(lambda a, e: log1pexp(a + e), tf.stack([x, x * 2.0]), initializer=tf.zeros([3]))
    v = tf.cond(tf.reduce_sum(x) > 0, lambda: log1pexp(x), lambda: clipped(x, x))
    return _values(tf, y, z, w, v, *[tf.gradients(r, x)[0] for r in (y, z, w, v)])


@both
def test_custom_gradient_with_variables_in_loop(tf, np):
    x = tf.constant([[1.0, 2.0]])
    with tf.variable_scope("s", use_resource=True):
        w = tf.get_variable("w", initializer=[[0.5, 0.1], [0.2, -0.3]])

        @tf.custom_gradient
        def layer(a):
            with tf.variable_scope("s", reuse=True, use_resource=True):
                k = tf.get_variable("w", [2, 2])
            out = tf.matmul(a, k)

            def grad(dy, variables=None):
                return tf.matmul(dy, k, transpose_b=True), [tf.matmul(a, dy, transpose_a=True) * 2.0]
            return out, grad
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, layer(a)), [0, x])[1]
    return _values(tf, y, *tf.gradients(y, [x, w]))


@both
def test_gradients_in_a_body(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])

    def body(i, a):
        y = tf.reduce_sum(a * a * x)
        return i + 1, a - 0.1 * tf.gradients(y, a)[0]
    y = tf.while_loop(lambda i, a: i < 5, body, [0, x])[1]
    z = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.gradients(x * x, x)[0] * 2.0, lambda: x)
    jacobian = tf.map_fn(lambda j: tf.gradients(tf.gather(x * x * x, j), x)[0], tf.range(3), dtype=tf.float32)
    return _values(tf, y, z, jacobian, *tf.gradients(y, x))


@both
def test_nested(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    s = tf.placeholder(tf.bool, [])

    def inner(a, n):
        return tf.while_loop(lambda j, b: j < n, lambda j, b: (j + 1, tf.cond(s, lambda: b * x, lambda: tf.sin(b))), [0, a])[1]
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, inner(a, i) + 0.5), [0, x])[1]
    z = tf.cond(s, lambda: inner(x, 2), lambda: tf.cond(tf.reduce_sum(x) > 5.0, lambda: x, lambda: inner(x * x, 3)))
    grads = tf.gradients(y, x) + tf.gradients(z, x)
    with tf.Session() as sess:
        return [sess.run([y, z] + grads, {s: value}) for value in (True, False)]


@both
def test_arrays_through_loops(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    given = tf.TensorArray(tf.float32, 3).unstack(x)
    out = tf.TensorArray(tf.float32, 3, element_shape=[2])
    more = tf.TensorArray(tf.float32, 0, dynamic_size=True)

    def body(i, state, a, b):
        state = tf.tanh(state + given.read(i))
        return i + 1, state, a.write(i, state * 2.0), b.write(i, state[:1])
    _, last, out, more = tf.while_loop(lambda i, *_: i < 3, body, [0, tf.zeros([2]), out, more])
    ys = [last, out.stack(), more.concat()]
    return _values(tf, *(ys + [tf.gradients(y, x)[0] for y in ys] + [out.size()]))


@both
def test_rows_with_several_outputs(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    a, b = tf.map_fn(lambda r: (r * 2.0, tf.reduce_sum(r * r)), x, dtype=(tf.float32, tf.float32))
    d = tf.map_fn(lambda p: {"u": p["k"] * p["l"], "v": p["k"] + 1.0}, {"k": x, "l": x[:, 0]}, dtype={"u": tf.float32, "v": tf.float32})
    i = tf.map_fn(lambda r: tf.cast(r, tf.int32), x, dtype=tf.int32)
    s, t = tf.scan(lambda acc, r: (acc[0] + r, acc[1] * r[0]), x, initializer=(tf.zeros([2]), tf.constant(1.0)), reverse=True)
    f = tf.foldl(lambda acc, r: (acc[0] + r[0], acc[1] + r), x, initializer=(tf.constant(0.0), tf.zeros([2])))
    ys = [a, b, d["u"], d["v"], s, t, f[0], f[1]]
    return _values(tf, *(ys + [i] + [tf.gradients(y, x)[0] for y in ys]))


@both
def test_invariants_and_gradients(tf, np):
    x = tf.constant([[1.0, 2.0]])
    n = tf.placeholder_with_default(3, [])
    _, rows = tf.while_loop(lambda i, m: i < n, lambda i, m: (i + 1, tf.concat([m, tf.tanh(m[-1:]) * x], 0)), [0, x],
                            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])])
    named = {"b": tf.constant(1.0), "a": tf.constant(2.0)}
    looped = tf.while_loop(lambda v: v["a"] < 10.0, lambda v: [{"a": v["a"] * v["b"] + 1.0, "b": v["b"] * 1.1}], [named])
    return _values(tf, rows, tf.gradients(rows, x)[0], looped, *tf.gradients(looped[0]["a"], [named["a"], named["b"]])), str(rows.shape)


@both
def test_embedding_in_loop(tf, np):
    table = tf.get_variable("table", initializer=np.arange(12, dtype=np.float32).reshape(6, 2) / 10)
    ids = tf.constant([1, 3, 3, 5])

    def body(i, a):
        return i + 1, tf.tanh(a + tf.nn.embedding_lookup(table, ids[i]))
    y = tf.while_loop(lambda i, a: i < 4, body, [0, tf.zeros([2])])[1]
    g = tf.gradients(y, table)[0]
    return _values(tf, y, tf.convert_to_tensor(g))


@both
def test_assert_and_print_in_flow(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])

    def body(i, a):
        with tf.control_dependencies([tf.Assert(tf.reduce_all(a < 100.0), [a, i], summarize=4)]):
            a = tf.Print(a * x, [i], message="at ")
        return i + 1, tf.check_numerics(a, "not a number")
    y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
    return _values(tf, y, *tf.gradients(y, x))


@both(raises=True)
def test_failing_assert_in_loop(tf, np):
    def body(i, a):
        with tf.control_dependencies([tf.Assert(a < 3.0, [a])]):
            return i + 1, a * 2.0
    with tf.Session() as sess:
        sess.run(tf.while_loop(lambda i, a: i < 5, body, [0, tf.constant(1.0)]))


@both
def test_resource_variable_in_loop(tf, np):
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    r = tf.get_variable("r", initializer=[0.5, -1.0], use_resource=False)

    def body(i, a):
        return i + 1, a * v + tf.cond(i > 0, lambda: r * 2.0, lambda: v - r)
    y = tf.while_loop(lambda i, a: i < 3, body, [0, tf.ones([2])])[1]
    return _values(tf, y, *tf.gradients(y, [v, r]))


@both
def test_static_rnn_with_cond(tf, np):
    x = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 3, 2) / 10)
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    with tf.variable_scope("r", initializer=tf.constant_initializer(0.1)):
        out, state = tf.nn.dynamic_rnn(cell, x, sequence_length=[2, 3], dtype=tf.float32)
    y = tf.cond(tf.reduce_sum(state) > 0.0, lambda: tf.reduce_sum(out * out), lambda: tf.reduce_sum(state))
    return _values(tf, y, *tf.gradients(y, tf.trainable_variables() + [x]))


@both
def test_stop_and_none(tf, np):
    x, z = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * tf.stop_gradient(x)), [0, z])[1]
    w = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, z], back_prop=False)[1]
    grads = tf.gradients(y, [x, z]) + tf.gradients(w * x, [x, z])
    return [g is None for g in grads], _values(tf, *[g for g in grads if g is not None])


@both
def test_gradients_lead_out_of_a_body(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    h = tf.tanh(x) * x
    s = tf.placeholder_with_default(True, [])

    def jacobian(y, n):
        rows = tf.TensorArray(tf.float32, n)
        return tf.while_loop(lambda i, r: i < n, lambda i, r: (i + 1, r.write(i, tf.gradients(y[i], x)[0])), [0, rows])[1].stack()
    inside = tf.cond(s, lambda: jacobian(tf.exp(h), 3), lambda: tf.zeros([3, 3]))
    nested = tf.map_fn(lambda i: tf.map_fn(lambda j: tf.gradients(h[i] * h[j], [x, h])[0], tf.range(3), dtype=tf.float32),
                       tf.range(3), dtype=tf.float32)
    table = tf.reshape(tf.range(6.0), [3, 2])
    sparse = tf.map_fn(lambda i: tf.convert_to_tensor(tf.gradients(tf.gather(table, [i, i]), table)[0]), tf.range(3), dtype=tf.float32)
    return _values(tf, jacobian(h, 3), inside, nested, sparse)


@both
def test_hessian_of_unknown_shape(tf, np):
    x = tf.placeholder(tf.float32, [None])
    h, = tf.hessians(tf.reduce_sum(x * x * x) * tf.reduce_sum(x), x)
    with tf.Session() as sess:
        return sess.run(h, {x: [1.0, 2.0, 3.0]})


@both
def test_rule_where_gradients_are_asked_in_a_body(tf, np):
    x = tf.constant([1.0, 2.0, -0.5])
    outside = tf.constant([3.0, 1.0, 2.0])
    name = _registered(tf, lambda op, grad: grad * outside * op.inputs[0] + tf.constant(1.0))

    def body(i, a):
        b = tf.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, tf.square(c) * 0.3), [0, a])[1]
        return i + 1, a - 0.01 * tf.gradients(tf.square(a) + b, a)[0]
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
    return _values(tf, y)


@both(raises=True, message=True)
def test_rule_that_raises(tf, np):
    def rule(op, grad):
        raise ZeroDivisionError("not today")
    with tf.get_default_graph().gradient_override_map({"Square": _registered(tf, rule)}):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.square(a)), [0, tf.constant(1.0)])[1]
    tf.gradients(y, tf.constant(1.0))
    z = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"Square": _registered(tf, rule)}):
        tf.gradients(tf.square(z), z)


# --- MetaGraphs

def _flow_graph(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    s = tf.placeholder(tf.bool, [], name="s")
    w = tf.get_variable("w", initializer=[2.0, 3.0])

    def body(i, a):
        b = tf.cond(tf.equal(i % 2, 0), lambda: a * w, lambda: a + tf.while_loop(
            lambda j, c: j < i, lambda j, c: (j + 1, c * x), [0, x])[1])
        return [i + 1, b]
    y = tf.while_loop(lambda i, a: i < 3, body, [0, x], parallel_iterations=7, maximum_iterations=5, name="loop")[1]
    z = tf.cond(s, lambda: y * w, lambda: tf.while_loop(lambda v: v[0] < 10.0, lambda v: v * w, [x], back_prop=False), name="pick")
    return tf.identity(y, name="y"), tf.identity(z, name="z")


def _context_rows(message):
    rows = [(field.name, value) for field, value in message.ListFields() if field.name not in ("values_def", "nested_contexts")]
    rows = [(name, value if isinstance(value, (str, int, bool)) else list(value)) for name, value in rows]
    rows.append(sorted(message.values_def.external_values.items()))
    for nested in message.nested_contexts:
        rows.append(_context_rows(getattr(nested, nested.WhichOneof("ctxt"))))
    return rows


@both
def test_contexts_in_a_meta_graph(tf, np):
    _flow_graph(tf)
    meta = tf.train.export_meta_graph()
    rows = []
    for key in ("cond_context", "while_context"):
        for context in tf.get_collection(key):
            rows.append(_context_rows(context.to_proto()))
        rows.append(len(meta.collection_def[key].bytes_list.value))
    return rows


@both
def test_gradients_of_an_imported_graph(tf, np):
    _flow_graph(tf)
    meta = tf.train.export_meta_graph()
    out = []
    for scope in ("", "one/two"):
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(meta, import_scope=scope or None)
            if scope:
                tf.train.import_meta_graph(meta, import_scope="again")
            out.append(_context_rows(graph.get_collection("while_context")[0].to_proto()))
            prefix = scope and scope + "/"
            x, s, y, z = (graph.get_tensor_by_name(prefix + n + ":0") for n in "xsyz")
            w = [v for v in tf.global_variables() if v.op.name == prefix + "w"][0]
            fetches = [y, z, tf.gradients(y, [x, w]), tf.gradients(z, x)]
            more = tf.while_loop(lambda i, a: i < 2, lambda i, a, y=y: (i + 1, a * y), [0, z])[1]
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                for value in (True, False):
                    out.append(sess.run(fetches + [more], {x: [0.5, -1.5], s: value}))
                if scope:
                    again = [graph.get_tensor_by_name("again/" + n + ":0") for n in "xsy"]
                    out.append(sess.run([y, again[2]], {x: [0.5, -1.5], s: True, again[0]: [1.0, 2.0], again[1]: True}))
            out.append([len(graph.get_collection(key)) for key in ("cond_context", "while_context")])
    return out


def _second_order_error(tf, np, build):
    """The largest difference of first and second gradients from differences, over all choices."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x, choices = tf.placeholder(tf.float64, [2]), [tf.placeholder(tf.bool, []) for _ in range(2)]
        at, weights, worst = np.array([0.3, -0.7]), np.array([1.0, 2.0]), 0.0
        y = tf.reduce_sum(build(x, *choices))
        first = tf.gradients(y, x)[0]
        z = tf.reduce_sum(tf.sin(first) * weights)
        for function, gradient in ((y, first), (z, tf.gradients(z, x)[0])):
            for taken in itertools.product((True, False), repeat=2):
                feeds = dict(zip(choices, taken))
                got = sess.run(gradient, {x: at, **feeds})
                for i, step in enumerate(np.eye(2) * 1e-5):
                    ends = [sess.run(function, {x: at + sign * step, **feeds}) for sign in (1, -1)]
                    worst = max(worst, abs((ends[0] - ends[1]) / 2e-5 - got[i]))
        return worst


def test_choices_in_loops_twice():
    import numpy as np
    import runnel as tf

    def turns(body, start):
        return tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, tf.tanh(body(v))), [0, tf.sin(start)])[1]

    programs = [
        lambda x, p, q: turns(lambda v: tf.cond(p, lambda: tf.sin(x), lambda: v), x),
        lambda x, p, q: turns(lambda v: tf.cond(p, lambda: tf.cond(q, lambda: x, lambda: v), lambda: x), x),
        lambda x, p, q: turns(lambda v: tf.cond(p, lambda: tf.sin(tf.cond(q, lambda: x, lambda: x * v)), lambda: v), x),
        # the same choice once more, within one of its own branches
        lambda x, p, q: turns(lambda v: tf.cond(p, lambda: turns(
            lambda w: tf.sin(w) * x, tf.cond(p, lambda: v, lambda: tf.sin(v))), lambda: tf.sin(v)), x),
        lambda x, p, q: tf.cond(p, lambda: turns(lambda v: tf.cond(
            v[0] > 0.1, lambda: v * x, lambda: tf.cond(q, lambda: tf.cos(v), lambda: x)), x), lambda: x ** 3),
    ]
    for number, build in enumerate(programs):
        assert _second_order_error(tf, np, build) < 1e-6, number


def test_rows_of_a_variable_in_nested_loops():
    import numpy as np
    import runnel as tf
    with tf.Graph().as_default():
        table = tf.get_variable("table", initializer=np.arange(6.0).reshape(3, 2), use_resource=True)

        def turns(unrolled, body, v):
            if unrolled:
                return body(body(v))
            return tf.while_loop(lambda i, w: i < 2, lambda i, w: (i + 1, body(w)), [0, v])[1]

        values = []
        for unrolled in (True, False):
            def body(v, unrolled=unrolled):
                return tf.sin(turns(unrolled, lambda w: w + tf.gather(table, [1, 2, 1]) * v, v))
            gradient = tf.gradients(turns(unrolled, body, tf.ones([3, 2], tf.float64)), table)[0]
            values.append(tf.convert_to_tensor(gradient))
        np.testing.assert_allclose(*_values(tf, *values), rtol=1e-12)


@both
def test_gradients_of_another_loop_in_a_body(tf, np):
    x = tf.constant([0.3, -0.7])

    def loop(n, body, start):
        return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, body(v)), [tf.constant(0), start])[1]
    y = loop(3, lambda v: tf.sin(v) * v, x)
    beside = loop(2, lambda v: v * tf.cos(tf.gradients(loop(2, tf.sin, v), v)[0]), x)
    return [_values(tf, beside), tf.gradients(y, x)[0].shape.as_list()]


def test_gradients_of_values_outside_in_a_body():
    """Stock's loops of this kind cannot."""
    import numpy as np

    import runnel as tf
    with tf.Graph().as_default():
        x = tf.constant([0.3, -0.7])

        def loop(n, body, start):
            return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, body(v)), [tf.constant(0), start])[1]
        y = loop(3, lambda v: tf.sin(v) * v, x)
        z = loop(2, lambda v: v * tf.cos(tf.gradients(y, x)[0]), x)
        found, g = _values(tf, z, tf.gradients(y, x)[0])
        assert np.allclose(found, [0.3, -0.7] * np.cos(g) ** 2)


@both
def test_gated_rows_in_a_loop(tf, np):
    table = tf.get_variable("table", initializer=np.arange(10.0).reshape(5, 2).astype(np.float32))
    cost = tf.while_loop(lambda i, _: i < 5, lambda i, c: (i + 1, c + tf.reduce_sum(tf.nn.embedding_lookup(table + 0.0, [i, 0]))),
                         [tf.constant(0), tf.constant(0.0)])[1]
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(cost)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train)
        return sess.run(table)
