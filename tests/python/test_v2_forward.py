"""tf.autodiff.ForwardAccumulator: several at once, several times, and eager tensors beside graphs."""

import functools

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_forward_over_forward(tf, np):
    def derivatives(f, x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as outer:
            with tf.autodiff.ForwardAccumulator(x, tf.constant(2.0)) as inner:
                y = f(x)
        first = inner.jvp(y)
        return y, first, outer.jvp(first), outer.jvp(y), inner.jvp(outer.jvp(y)) is None
    x = tf.constant(1.1)
    return [derivatives(lambda x: x ** 3.5, x), derivatives(tf.function(lambda x: tf.sin(x) * x), x)]


@both
def test_accumulators_are_entered_again(tf, np):
    x = tf.constant(-2.0)
    results = []
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.5)) as acc:
        y = 4.0 * x
        results.append(acc.jvp(y))
        try:
            acc.__enter__()
        except ValueError as error:
            results.append(str(error))
    z = 4.0 * x
    results.append(acc.jvp(z) is None)
    with acc:
        results.append(acc.jvp(y * y))
    try:
        tf.autodiff.ForwardAccumulator([x, x], [tf.constant(1.0), tf.constant(2.0)])
    except ValueError as error:
        results.append("multiple times" in str(error))
    return results


def test_eager_tensors_are_no_elements_of_graphs():
    import pytest
    import runnel.v2 as tf
    x = tf.constant(1.0)
    with tf.Graph().as_default() as graph:
        with pytest.raises(TypeError, match="EagerTensor"):
            graph.as_graph_element(x)
