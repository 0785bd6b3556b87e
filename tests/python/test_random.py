"""Random ops: the same seeds give the same numbers as in stock."""

import pytest
from both import both


@both(graph=True)
def test_graph_seed(tf, np):
    tf.set_random_seed(42)
    rows = [tf.random_normal([3]), tf.random_uniform([2, 2]), tf.random_uniform([3], 0, 10, tf.int32), tf.truncated_normal([3], stddev=0.1), tf.random_uniform([2], -1, 1),
            tf.random_shuffle(tf.range(5)), tf.multinomial([[0.1, 0.9]], 4)]
    with tf.Session() as sess:
        return [sess.run(rows), sess.run(rows)]


@both(graph=True)
def test_op_seed(tf, np):
    rows = [tf.random_normal([3], seed=1), tf.random_uniform([2, 2], seed=2), tf.random_normal([2], 5.0, 2.0, seed=3), tf.random_uniform([2], maxval=3.0, seed=4), tf.random_gamma([2], 1.0, seed=3)]
    with tf.Session() as sess:
        return sess.run(rows)


def test_different_classes_that_cannot_be_drawn():
    """Classes without a weight are never drawn, and those with a tiny one take longer than a step may."""
    import runnel as tf
    from runnel import raw_ops

    def draw(weights):
        return raw_ops.FixedUnigramCandidateSampler(true_classes=[[0]], num_true=1, num_sampled=3, unique=True, range_max=len(weights), unigrams=weights, seed=1)
    with tf.Graph().as_default(), tf.Session() as sess:
        assert sorted(sess.run(draw([1.0, 0.0, 2.0, 3.0])).sampled_candidates) == [0, 2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Too few classes can be drawn to have 3 different ones"):
            sess.run(draw([1.0, 0.0, 2.0, 0.0]))
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(draw([1.0, 1e-30, 2.0]), options=tf.RunOptions(timeout_in_ms=100))
