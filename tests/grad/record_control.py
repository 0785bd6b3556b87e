#!/usr/bin/env python3
"""Records graphs with conditionals and loops that stock TensorFlow builds without control flow v2, and their
gradients: data/NAME.pb (a GraphDef) and data/NAME.txt.

  x NAME:0 DIMS = VALUES     a fed tensor, with respect to which y is differentiated
  feed NAME:0 DIMS = VALUES  another fed tensor
  y NAME:0                   a tensor to differentiate, with an incoming gradient of ones
  dx DIMS = VALUES           the gradient of each x, in order; "dx none" if there is none
"""
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_control_flow_v2()
tf.disable_eager_execution()
tf.disable_resource_variables()
F = tf.float64
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def ph(name, shape=None, dtype=F):
    return tf.placeholder(dtype, shape, name=name)


@case
def cond_both(r):
    x, y = ph("x", [3]), ph("y", [3])
    p = ph("p", [], tf.bool)
    z = tf.cond(p, lambda: x * y, lambda: tf.sin(x))
    return [z], {x: r(3), y: r(3)}, {p: np.array(True)}


@case
def cond_other(r):
    x, y = ph("x"), ph("y")
    p = ph("p", [], tf.bool)
    z = tf.cond(p, lambda: x * y, lambda: tf.sin(x)) + x
    return [z], {x: r(3), y: r(3)}, {p: np.array(False)}


@case
def cond_constant_branch(r):
    x = ph("x", [2])
    p = ph("p", [], tf.bool)
    z = tf.cond(p, lambda: tf.constant([1.0, 2.0], F), lambda: x * x) * x
    return [z], {x: r(2)}, {p: np.array(True)}


@case
def cond_nested(r):
    x, y = ph("x", [2]), ph("y", [2])
    p, q = ph("p", [], tf.bool), ph("q", [], tf.bool)
    inner = lambda: tf.cond(q, lambda: tf.exp(x) * y, lambda: x - y * y)
    z = tf.cond(p, inner, lambda: tf.tanh(y))
    return [z], {x: r(2), y: r(2)}, {p: np.array(True), q: np.array(False)}


@case
def cond_two_outputs(r):
    x, y = ph("x", [2]), ph("y", [2])
    p = ph("p", [], tf.bool)
    a, b = tf.cond(p, lambda: (x * y, x + y), lambda: (x - y, tf.square(y)))
    return [a * b], {x: r(2), y: r(2)}, {p: np.array(True)}


@case
def case_three(r):
    x = ph("x", [2])
    i = ph("i", [], tf.int32)
    z = tf.case([(tf.equal(i, 0), lambda: x * x), (tf.equal(i, 1), lambda: tf.sin(x))], default=lambda: 3.0 * x)
    return [z], {x: r(2)}, {i: np.array(1, np.int32)}


@case
def while_power(r):
    x = ph("x", [2, 2])
    _, z = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.matmul(a, x)), (0, x))
    return [z], {x: r(2, 2)}, {}


@case
def while_unknown(r):
    x, w = ph("x"), ph("w")
    _, z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a * w + tf.reduce_sum(a))), (0, x))
    return [z], {x: r(3), w: r(3)}, {}


@case
def while_no_turn(r):
    x = ph("x", [2])
    _, z = tf.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a * x), (0, x * x))
    return [z], {x: r(2)}, {}


@case
def while_condition_on_value(r):
    x = ph("x", [])
    z = tf.while_loop(lambda a: a < 100.0, lambda a: a * a * x, [x])
    return [z], {x: np.array(1.7)}, {}


@case
def while_nested(r):
    x, w = ph("x", [2]), ph("w", [2])

    def outer(i, a):
        _, b = tf.while_loop(lambda j, c: j < i + 1, lambda j, c: (j + 1, tf.sin(c * w) + a), (0, a))
        return i + 1, b * x

    _, z = tf.while_loop(lambda i, a: i < 3, outer, (0, x))
    return [z], {x: r(2), w: r(2)}, {}


@case
def while_nested_invariant(r):
    x, w = ph("x", [2, 2]), ph("w", [2, 2])

    def outer(i, a):
        m = tf.matmul(w, w)
        _, b = tf.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, tf.tanh(tf.matmul(c, m))), (0, a))
        return i + 1, b + a

    _, z = tf.while_loop(lambda i, a: i < 2, outer, (0, x), parallel_iterations=1)
    return [z], {x: r(2, 2), w: r(2, 2)}, {}


@case
def cond_in_while(r):
    x, w = ph("x", [2]), ph("w", [2])

    def body(i, a):
        b = tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(a) * w, lambda: a * a + x)
        return i + 1, b

    _, z = tf.while_loop(lambda i, a: i < 5, body, (0, x))
    return [z], {x: r(2), w: r(2)}, {}


@case
def cond_in_while_unknown(r):
    x, w = ph("x"), ph("w")

    def body(i, a):
        b = tf.cond(tf.reduce_sum(a) > 0.3, lambda: tf.sin(a) * w, lambda: tf.exp(a) * 0.7)
        return i + 1, b

    _, z = tf.while_loop(lambda i, a: i < 5, body, (0, x))
    return [z], {x: r(2), w: r(2)}, {}


@case
def nested_cond_in_while(r):
    x, w = ph("x", [2]), ph("w", [2])

    def body(i, a):
        b = tf.cond(tf.equal(i % 2, 0), lambda: tf.cond(i > 1, lambda: tf.sin(a) * w, lambda: a * w * w), lambda: a * a + x)
        return i + 1, b

    _, z = tf.while_loop(lambda i, a: i < 6, body, (0, x))
    return [z], {x: r(2), w: r(2)}, {}


def while_in_cond_case(r, taken):
    x, w = ph("x", [2]), ph("w", [2])
    p = ph("p", [], tf.bool)
    loop = lambda: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a * w)), (0, x))[1]
    z = tf.cond(p, loop, lambda: x * w)
    return [z], {x: r(2), w: r(2)}, {p: np.array(taken)}


@case
def while_in_cond(r):
    return while_in_cond_case(r, True)


@case
def while_in_cond_not_taken(r):
    return while_in_cond_case(r, False)


@case
def while_in_cond_in_while(r):
    x, w = ph("x", [2]), ph("w", [2])

    def body(i, a):
        loop = lambda: tf.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, tf.tanh(c * w)), (0, a))[1]
        b = tf.cond(tf.equal(i % 2, 1), loop, lambda: a * x)
        return i + 1, b

    _, z = tf.while_loop(lambda i, a: i < 4, body, (0, x))
    return [z], {x: r(2), w: r(2)}, {}


@case
def while_array(r):
    x, w = ph("x", [4, 2]), ph("w", [2, 2])
    read = tf.TensorArray(F, 4, clear_after_read=False).unstack(x)
    written = tf.TensorArray(F, 4)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(tf.reshape(read.read(i), [1, 2]) + h, w))
        return i + 1, h, out.write(i, h)

    _, _, out = tf.while_loop(lambda i, h, o: i < 4, body, (0, tf.zeros([1, 2], F), written))
    return [tf.reduce_sum(tf.square(out.stack()))], {x: r(4, 2), w: r(2, 2)}, {}


@case
def while_gather(r):
    table, w = ph("table", [5, 2]), ph("w", [2])
    ids = ph("ids", [3], tf.int32)
    _, z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w + tf.gather(table, ids[i])), (0, w))
    return [z], {table: r(5, 2), w: r(2)}, {ids: np.array([1, 4, 1], np.int32)}


@case
def while_two_exits(r):
    x, w = ph("x", [2]), ph("w", [2])
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * w + b, tf.sin(b) * a), (0, x, w))
    return [a, b], {x: r(2), w: r(2)}, {}


@case
def while_not_asked(r):
    x, n = ph("x", [2]), ph("n", [2])
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * 2.0, b * 3.0), (0, x, n))
    return [a], {x: r(2), n: r(2)}, {}


@case
def array_concat(r):
    x, w = ph("x", [4, 2]), ph("w", [4, 2])
    cut = tf.TensorArray(F, 2, infer_shape=False, clear_after_read=False).split(x, [1, 3])
    return [tf.sin(cut.concat()) * w, cut.read(1)], {x: r(4, 2), w: r(4, 2)}, {}


@case
def list_ops(r):
    x, w = ph("x", [3, 2]), ph("w", [2])
    raw = tf.raw_ops
    shape = tf.constant([2], tf.int32)
    some = raw.EmptyTensorList(element_shape=shape, max_num_elements=tf.constant(-1), element_dtype=F)
    some = raw.TensorListPushBack(input_handle=some, tensor=w * 2.0)
    some = raw.TensorListPushBack(input_handle=some, tensor=tf.sin(w))
    some, last = raw.TensorListPopBack(input_handle=some, element_shape=shape, element_dtype=F)
    rest = raw.TensorListStack(input_handle=some, element_shape=shape, element_dtype=F)
    rows = raw.TensorListFromTensor(tensor=x, element_shape=shape)
    rows = raw.TensorListScatterIntoExistingList(input_handle=rows, tensor=tf.reshape(w * w, [1, 2]), indices=[1])
    rows = raw.TensorListResize(input_handle=rows, size=4)
    rows = raw.TensorListSetItem(input_handle=rows, index=3, item=tf.exp(w))
    chosen = raw.TensorListGather(input_handle=rows, indices=[2, 0, 3, 1], element_shape=shape, element_dtype=F)
    flat, _ = raw.TensorListConcatV2(input_handle=rows, element_shape=shape, leading_dims=tf.constant([], tf.int64),
                                     element_dtype=F)
    return [last, rest, chosen * chosen, flat * 3.0], {x: r(3, 2), w: r(2)}, {}


# The same as functions: If, Case, While and calls.


def functional(f):
    def build(r):
        tf.enable_control_flow_v2()
        try:
            return f(r)
        finally:
            tf.disable_control_flow_v2()

    CASES["fn_" + f.__name__] = build
    return f


for f in [cond_both, cond_other, cond_constant_branch, cond_nested, cond_two_outputs, while_power, while_unknown,
          while_no_turn, while_nested, while_nested_invariant, cond_in_while, nested_cond_in_while, while_in_cond,
          while_in_cond_not_taken, while_in_cond_in_while, while_array, while_gather, while_two_exits]:
    functional(f)


@functional
def switch(r):
    x = ph("x", [2])
    i = ph("i", [], tf.int32)
    z = tf.switch_case(i, [lambda: x * x, lambda: tf.sin(x), lambda: tf.exp(x) * 2.0])
    return [z], {x: r(2)}, {i: np.array(1, np.int32)}


@functional
def call(r):
    x, w = ph("x", [2]), ph("w", [2])

    @tf.function
    def inner(a, b):
        return tf.sin(a) * b, a + 1.0

    @tf.function
    def outer(a, b):
        c, d = inner(a, b)
        e, _ = inner(d, c)
        return e * a

    return [outer(x, w) + x], {x: r(2), w: r(2)}, {}


def text(v):
    v = np.asarray(v)
    return "%s = %s" % (",".join(map(str, v.shape)) or "-", " ".join(repr(float(e)) for e in v.reshape(-1)))


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    os.makedirs(here, exist_ok=True)
    for name, build in CASES.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        rng = np.random.RandomState(7)
        r = lambda *shape: rng.uniform(-1, 1, shape)
        with tf.Graph().as_default() as graph:
            ys, xs, feeds = build(r)
            graph_def = graph.as_graph_def()
            dxs = tf.gradients(ys, list(xs))
            with tf.Session() as session:
                fed = dict(xs); fed.update(feeds)
                wanted = [tf.convert_to_tensor(d) for d in dxs if d is not None]
                values = iter(session.run(wanted, {t: v for t, v in fed.items()}))
            lines = ["x %s %s" % (t.name, text(v)) for t, v in xs.items()]
            lines += ["feed %s %s %s" % (t.name, t.dtype.name, text(v)) for t, v in feeds.items()]
            lines += ["y %s" % t.name for t in ys]
            lines += ["dx none" if d is None else "dx " + text(next(values)) for d in dxs]
        with open(os.path.join(here, name + ".pb"), "wb") as f:
            f.write(graph_def.SerializeToString())
        with open(os.path.join(here, name + ".txt"), "w") as f:
            f.write("\n".join(lines) + "\n")
        print(name)


main()
