"""Errors of operations in functions name the program's calls that made the operation: the same ones in stock."""

import functools
import re
import traceback

from both import both as _both

both = functools.partial(_both, v2=True)


def places(tf, call, *names):
    """Returns those of the function names that the text of a call's error names, once each, in its order."""
    try:
        call()
    except tf.errors.OpError as error:
        found = re.findall(r"line \d+, in (\w+)", str(error))
        return list(dict.fromkeys(name for name in found if name in names)), "defined at" in str(error)
    raise AssertionError("no error")


@both
def test_calls_of_functions(tf, np):
    def helper(x):
        return tf.debugging.check_numerics(x, "bad")

    @tf.function
    def inner(x):
        return helper(x) + 1.0

    @tf.function
    def outer(x):
        if tf.reduce_sum(x) < 0.0:
            z = inner(tf.math.log(x))
        else:
            z = x
        return z

    @tf.function
    def checked(x):
        tf.debugging.Assert(x > 3, [x])
        return x
    names = ("helper", "inner", "outer", "checked")
    bad = tf.constant([-1.0])
    return [places(tf, lambda: outer(bad), *names), places(tf, lambda: inner(bad / 0.0), *names), places(tf, lambda: checked(tf.constant(1)), *names)]


@both
def test_operations_of_graphs(tf, np):
    def made(x):
        return again(x, 2)

    def again(x, depth):
        return again(x, depth - 1) if depth else tf.debugging.check_numerics(x, "bad")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        y = made(tf.constant(1.0) / tf.constant(0.0))
        names = [frame.name for frame in y.op.traceback if frame.name in ("made", "again")]
        text = "".join(traceback.format_list(y.op.traceback))
        return names, "in made" in text, places(tf, lambda: session.run(y), "made", "again")


@both
def test_py_function_returns_nested_lists(tf, np):
    one = tf.py_function(lambda: [[1, 2, 3]], [], tf.int32)
    two = tf.py_function(lambda: ([1, 2], [[3.0], [4.0]]), [], [tf.int32, tf.float32])
    return [one, *two, tf.function(lambda: tf.py_function(lambda: [[1, 2, 3]], [], tf.int32))()]
