"""tf.__internal__.smart_cond: which conditions are known while a graph is built, against stock TensorFlow 2."""

import pytest

pytest.importorskip("numpy")
from both import both


@both(v2=True)
def test_known_conditions(tf, np):
    smart_cond = tf.__internal__.smart_cond.smart_cond

    def is_built(condition):
        """Tells whether both branches are in the graph, because the condition is not known."""
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [3, None])
            smart_cond(condition(x), lambda: tf.constant(1), lambda: tf.constant(2))
            return any(op.type in ("If", "StatelessIf", "Switch", "Merge") for op in graph.get_operations())

    conditions = [lambda x: True, lambda x: 0, lambda x: tf.constant(True), lambda x: tf.logical_not(False), lambda x: tf.equal(tf.shape(x)[0], 3),
                  lambda x: tf.shape(x)[-2] * 2 > 5, lambda x: tf.rank(x) > 1, lambda x: tf.size(x) > 1, lambda x: tf.shape(x)[1] > 1,
                  lambda x: tf.shape(x)[0] + tf.shape(x)[1] > 1, lambda x: tf.constant(2) * 3 > 5, lambda x: tf.reduce_all([True, False]),
                  lambda x: tf.greater(tf.shape(tf.zeros([2, 3]))[1], 2), lambda x: tf.cast(1, tf.bool), lambda x: tf.constant([1, 2])[0] > 0,
                  lambda x: tf.random.uniform([]) > 0, lambda x: tf.reduce_sum(x) > 0, lambda x: tf.logical_and(tf.shape(x)[0] > 1, True)]
    return [is_built(condition) for condition in conditions]


@both(v2=True)
def test_values(tf, np):
    smart_cond = tf.__internal__.smart_cond.smart_cond

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def choose(x):
        return smart_cond(tf.equal(tf.shape(x)[1], 3), lambda: 1, lambda: 2), smart_cond(tf.shape(x)[0] > 2, lambda: 3, lambda: 4)
    found = [choose(tf.zeros([2, 3])), choose(tf.zeros([3, 3])), smart_cond(tf.constant(False), lambda: 5, lambda: 6)]
    for arguments in ((3, int, int), ("a", int, int), (None, int, int), (2.0, int, int), (True, None, None), (True, int, 3)):
        try:
            found.append(smart_cond(*arguments))
        except TypeError as error:
            found.append(str(error))
    return found
