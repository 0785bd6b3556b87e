"""tf.losses with every reduction."""

from both import both


@both
def test_losses(tf, np):
    r = np.random.RandomState(0)
    p = tf.placeholder(tf.float32, [4, 3])
    labels = tf.placeholder(tf.float32, [4, 3])
    P = r.rand(4, 3).astype("f")
    LABELS = (r.rand(4, 3) > 0.5).astype("f")
    out = []
    for w in (1.0, [[1.0], [0.0], [2.0], [0.0]], tf.constant(r.rand(4, 3).astype("f"))):
        for f in ("absolute_difference", "mean_squared_error", "hinge_loss", "huber_loss", "log_loss", "sigmoid_cross_entropy"):
            for red in ("weighted_sum_by_nonzero_weights", "weighted_mean", "none", "weighted_sum"):
                out.append(getattr(tf.losses, f)(labels, p, w, reduction=red))
    out.append(tf.losses.cosine_distance(labels, p, 1))
    out.append(tf.losses.mean_pairwise_squared_error(labels, p))
    out.append(tf.losses.mean_pairwise_squared_error(labels, p, weights=[[1.0], [0.0], [2.0], [0.0]]))
    out.append(tf.losses.softmax_cross_entropy(labels, p, weights=[1.0, 2.0, 0.0, 1.0], label_smoothing=0.1))
    out.append(tf.losses.sparse_softmax_cross_entropy([[1], [0], [2], [1]], p, weights=2.0))
    out.append(tf.losses.get_total_loss() if 0 else tf.reduce_sum(tf.losses.get_losses()[0]))
    g = tf.gradients([tf.reduce_sum(o) for o in out], p)[0]
    with tf.Session() as sess:
        return sess.run(out + [g], {p: P, labels: LABELS})
