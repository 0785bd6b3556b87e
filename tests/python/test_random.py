"""The same seeds, the same numbers."""

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
