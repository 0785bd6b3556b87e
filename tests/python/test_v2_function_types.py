"""Types of arguments of tf.function: which calls share a trace, how arguments are bound, signatures and their texts. The same programs in stock."""

import collections
import functools

from both import both as _both

both = functools.partial(_both, v2=True)
Point = collections.namedtuple("Point", "x y")


def failure(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0].split(" Received args")[0]
    return None


def counted(tf, function, calls, **options):
    """Returns how many traces there are after each call."""
    f, counts = tf.function(function, **options), []
    for args, kwargs in calls:
        f(*args, **kwargs)
        counts.append(f.experimental_get_tracing_count())
    return counts


@both
def test_variables_of_one_type_share_a_trace(tf, np):
    def f(a, b):
        return a + b
    one, two, long = tf.Variable(1.0), tf.Variable(2.0), tf.Variable([1.0, 2.0])
    counts = counted(tf, f, [((x, y), {}) for x, y in ((one, two), (two, one), (one, one), (two, two), (one, long))])
    g = tf.function(f)
    values = [g(one, two), g(two, one), g(one, one)]
    with tf.GradientTape() as tape:
        loss = tf.function(lambda v, w: v * v * w)(two, one)
    return counts, values, tape.gradient(loss, [one, two])


@both
def test_objects_and_structures(tf, np):
    class Thing:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __hash__(self):
            return self.n

    class Typed:
        def __init__(self, n):
            self.n = n

        def __tf_tracing_type__(self, context):
            return Kind(self.n)

    class Kind(tf.types.experimental.TraceType):
        def __init__(self, n):
            self.n = n

        def is_subtype_of(self, other):
            return isinstance(other, Kind) and self.n <= other.n

        def most_specific_common_supertype(self, others):
            return Kind(max([self.n] + [other.n for other in others]))

        def placeholder_value(self, context):
            return Typed(self.n)

        def cast(self, value, context):
            return value

        def __eq__(self, other):
            return isinstance(other, Kind) and self.n == other.n

        def __hash__(self):
            return self.n

    kept = [Thing(1), Thing(1), Thing(2), Typed(3), Typed(2), Typed(5)]
    calls = [((x,), {}) for x in (
        [1, 2], (1, 2), [1, 2], Point(1, 2), {"a": 1, "b": 2}, {"b": 2, "a": 1}, float("nan"), float("nan"), range(3), True, 1, 1.0, *kept)]
    return counted(tf, lambda x: tf.constant(1), calls)


@both
def test_defaults_keywords_and_the_rest(tf, np):
    def f(a, b=2, *rest, c=3, **named):
        return tf.constant(1)
    calls = [((1,), {}), ((1, 2), {}), ((1,), {"b": 2}), ((1, 2, 3), {}), ((1, 2, 3), {"c": 3}), ((1,), {"d": 4}), ((1,), {"d": 4, "e": 5}),
             ((1,), {"e": 5, "d": 4})]

    def ordered(b, a):
        return b - a
    g = tf.function(ordered)
    return counted(tf, f, calls), g(tf.constant(5), tf.constant(3)), g(a=tf.constant(3), b=tf.constant(5)), g(tf.constant(5), a=tf.constant(3))


@both
def test_texts_of_signatures(tf, np):
    @tf.function
    def f(x, y=2, *rest, z):
        return {"sum": tf.reduce_sum(x["a"]) + y, "none": None, "pair": (x["b"][0], z)}
    c = f.get_concrete_function({"a": tf.TensorSpec([None], tf.int32), "b": [tf.constant(1), tf.TensorSpec((), tf.int32)]}, z=tf.constant("s"))
    named = tf.function(lambda p: p).get_concrete_function(tf.TensorSpec([2], name="given"))
    return [str(c.structured_input_signature), c.pretty_printed_signature(), str(named.structured_input_signature), str(c.output_shapes),
            [x.name for x in c.inputs], str(f.function_type if hasattr(f, "function_type") else f.function_spec.function_type)]


@both
def test_concrete_functions_check_their_arguments(tf, np):
    c = tf.function(lambda x, n, y: x * n + y).get_concrete_function(tf.TensorSpec([2], name="first"), 3, tf.TensorSpec([2], name="second"))
    x, y = tf.constant([1.0, 2.0]), tf.constant([10.0, 20.0])
    return [c(x, 3, y), c(first=x, second=y), c(x, second=y), failure(lambda: c(x, 4, y)), failure(lambda: c(x)), failure(lambda: c(x, 3, y, y)),
            failure(lambda: c(x, 3, y=tf.constant([1, 2]))), failure(lambda: c(x, 3, z=y)), failure(lambda: c._call_with_flat_signature((x, y, y), {})),
            failure(lambda: c._call_with_flat_signature((x,), {})), failure(lambda: c._call_with_flat_signature((x, 1.0), {}))]


@both
def test_input_signatures(tf, np):
    spec = tf.TensorSpec([None], tf.float32)
    f = tf.function(lambda x, n=2: x * n, input_signature=[spec])
    return [f(tf.constant([1.0])), f([1.0, 2.0]), f(np.float32([3.0])), f.experimental_get_tracing_count(), failure(lambda: f(tf.constant([1]))),
            failure(lambda: f(tf.constant(1.0))), failure(lambda: f()), failure(lambda: tf.function(lambda x: x, input_signature=[1])),
            failure(lambda: tf.function(lambda x: x, input_signature=[spec, spec])), failure(lambda: tf.function(lambda x, y: x, input_signature=[spec])),
            failure(lambda: tf.function(lambda x: x, input_signature=spec))[0]]


@both
def test_what_functions_may_not_do(tf, np):
    def grows(items):
        items.append(1)
        return tf.constant(1)
    return [failure(lambda: tf.function(grows)([tf.constant(1)]))[0], failure(lambda: tf.function(lambda: object())())[0],
            tf.function(lambda: None)() is None,
            failure(lambda: tf.function(lambda x: x)(bytearray(b"x")))[0]]


@both
def test_values_of_the_time_of_the_call(tf, np):
    value = [1.0]

    @tf.function
    def f(x):
        return x + tf.compat.v1.get_default_graph().capture_call_time_value(lambda: tf.constant(value[0]), tf.TensorSpec([]))
    results = [f(tf.constant(2.0))]
    value[0] = 5.0
    results.append(f(tf.constant(2.0)))
    value[0] = [1.0]
    return results, f.experimental_get_tracing_count(), failure(lambda: f(tf.constant(2.0)))[0]
