"""tf.function of TensorFlow 2: traces, variables, signatures, concrete functions, tapes. The same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, v2=True)


def kind(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


@both
def test_traces(tf, np):
    traces = []

    @tf.function
    def f(x, flag=True, table=None):
        traces.append(1)
        return x if flag else -x
    counts = []

    def count(*args, **kwargs):
        f(*args, **kwargs)
        counts.append(len(traces))
    for value in (1, 1, 2, 3.5, "a"):
        count(value)
    count(tf.constant(1), False)
    count(tf.constant(2), False)
    count(tf.constant([1, 2]), flag=False)
    count(x=tf.constant([3, 4]), flag=False)
    count(tf.constant(1), table={"a": tf.constant(1), "b": [1, 2]})
    count(tf.constant(5), table={"a": tf.constant(7), "b": [1, 2]})
    count(tf.constant(5), table={"a": tf.constant(7), "b": [1, 3]})
    count(np.ones(3))
    count(np.zeros(3))
    count(tf.constant(1), table=(1, 2))
    count(tf.constant(1), table=[1, 2])
    return counts


@both
def test_shapes_are_relaxed(tf, np):
    shapes = []

    @tf.function(reduce_retracing=True)
    def g(x, y):
        shapes.append((str(x.shape), str(y.shape)))
        return tf.reduce_sum(x) + tf.reduce_sum(y)
    results = [g(tf.ones([n]), tf.ones([2, m])) for n, m in ((1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (1, 9))]
    h = tf.function(lambda x: x * 2)
    h.get_concrete_function(tf.TensorSpec([None], tf.float32))
    h(tf.ones([3]))
    h(tf.ones([4]))
    return shapes, results, h.experimental_get_tracing_count()


@both
def test_signatures(tf, np):
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), {"a": tf.TensorSpec([], tf.int32)}])
    def f(x, table, factor=2.0):
        traces.append(str(x.shape))
        return tf.reduce_sum(x) * factor + tf.cast(table["a"], tf.float32)
    results = [f(tf.ones([3, 2]), {"a": 1}), f([[1.0, 2.0]], {"a": tf.constant(5)}), f(x=np.ones((1, 2), np.float32), table={"a": 2})]
    return (results, traces, kind(lambda: f(tf.ones([3]), {"a": 1})), kind(lambda: f(tf.ones([3, 2], tf.float64), {"a": 1})), kind(lambda: f(tf.ones([3, 2]))),
            kind(lambda: f(tf.ones([3, 2]), {"a": 1}, 2.0, 5)))


@both
def test_variables_are_made_once(tf, np):
    class Count(tf.Module):
        def __init__(self):
            self.count, self.traces = None, 0

        @tf.function
        def __call__(self, step):
            self.traces += 1
            if self.count is None:
                self.count = tf.Variable(tf.zeros([2]) + 5.0)
            return self.count.assign_add(tf.ones([2]) * step)
    c = Count()
    results = [c(1.0), c(1.0), c(tf.constant(2.0))]

    @tf.function
    def bad(x):
        return tf.Variable(1.0) + x

    @tf.function
    def of_argument(x):
        if not hasattr(of_argument, "v"):
            of_argument.v = tf.Variable(x)
        return of_argument.v
    return results, c.traces, kind(lambda: bad(tf.constant(1.0))), kind(lambda: of_argument(tf.constant(1.0)))


@both
def test_concrete_functions(tf, np):
    v, w = tf.Variable(2.0), tf.Variable(3.0, trainable=False)

    @tf.function
    def f(x, y, k=3):
        return {"sum": x + y * v, "product": (x * w, k)}
    c = f.get_concrete_function(tf.TensorSpec([None], tf.float32), y=tf.TensorSpec([], tf.float32))
    named = f.get_concrete_function(tf.TensorSpec([2], tf.float32, name="first"), tf.constant(1.0))
    return (c(tf.constant([1.0, 2.0]), tf.constant(3.0)), [str(x.shape) for x in c.inputs[:2]], [x.dtype.name for x in c.inputs], [str(x.shape) for x in c.outputs],
            len(c.variables), len(c.trainable_variables), sorted(c.structured_outputs), len(c.captured_inputs), [op.type for op in c.graph.get_operations() if op.type == "Mul"],
            [spec.name for spec in named.structured_input_signature[0][:2]], named(tf.constant([1.0, 2.0]), tf.constant(1.0))["sum"], c.graph.as_graph_def().node[0].op,
            isinstance(c.graph, tf.Graph), f.get_concrete_function(tf.constant([1.0]), tf.constant(2.0)) is None)


@both
def test_methods_and_nesting(tf, np):
    class Thing:
        def __init__(self, k):
            self.k = tf.Variable(k)

        @tf.function
        def scaled(self, x):
            return self.inner(x) * self.k

        @tf.function
        def inner(self, x):
            self.k.assign_add(1.0)
            return x + self.k
    a, b = Thing(1.0), Thing(10.0)

    @tf.function(jit_compile=True)
    def outer(x):
        y = a.scaled(x)
        return y, b.scaled(y), a.k + b.k
    return a.scaled(tf.constant(1.0)), b.scaled(tf.constant(1.0)), outer(tf.constant(2.0)), outer(tf.constant(2.0)), Thing.scaled is not None


@both
def test_tapes_through_functions(tf, np):
    v, seen = tf.Variable(3.0), tf.Variable(0.0)

    @tf.function
    def f(x):
        seen.assign_add(1.0)
        return tf.sin(x) * v + seen

    @tf.function
    def with_random(x):
        return x * tf.random.stateless_uniform([2], [1, 2])

    @tf.custom_gradient
    def doubled(x):
        return x, lambda dy: dy * 2

    @tf.function
    def g(x):
        return doubled(x) * 3
    x = tf.constant(0.5)
    out = []
    for function in (f, g, with_random):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = function(x)
        out.append((y, tape.gradient(y, [x, v])))
    with tf.GradientTape() as t2:
        t2.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = f(x)
        dy = t1.gradient(y, x)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = (v - 5.0) ** 2
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss
    return out, t2.gradient(dy, x), [step(), step(), step()], v, seen


@both
def test_results_and_structures(tf, np):
    @tf.function
    def nothing(x):
        tf.print(x, output_stream="file:///dev/null")

    @tf.function
    def python_values(x):
        return 1, 2.0, "a", None, [x, (True,)]

    @tf.function
    def composite(r, s):
        return r * 2, tf.sparse.to_dense(s), s
    r = tf.ragged.constant([[1, 2], [3]])
    s = tf.sparse.from_dense([[1, 0], [0, 2]])
    a, b, c = composite(r, s)
    v = tf.Variable(1.0)
    return nothing(tf.constant(1)), python_values(tf.constant(1)), a.to_list(), b, c.values, tf.function(lambda: v)(), tf.function(lambda d: d)({"b": 1, "a": tf.constant(2)})


@both
def test_modes(tf, np):
    seen = []

    @tf.function
    def f(x):
        seen.append(tf.executing_eagerly())
        with tf.init_scope():
            seen.append(tf.executing_eagerly())
        return x
    f(tf.constant(1))
    tf.config.run_functions_eagerly(True)
    f(tf.constant(1))
    tf.config.run_functions_eagerly(False)
    return seen, tf.config.functions_run_eagerly(), f.python_function(3), tf.inside_function(), tf.function(tf.inside_function)()


@both
def test_captured_values_are_current(tf, np):
    v = tf.Variable(1)
    plain = 1
    table = {"k": tf.constant(1)}

    @tf.function
    def f():
        return v + plain + table["k"]
    first = f()
    v.assign(10)
    plain = 100
    table["k"] = tf.constant(1000)
    return first, f()
