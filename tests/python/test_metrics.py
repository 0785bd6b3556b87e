"""tf.metrics over three batches."""

from both import both


@both
def test_metrics(tf, np):
    r = np.random.RandomState(0)
    labels = tf.placeholder(tf.int64, [None])
    p = tf.placeholder(tf.float32, [None])
    w = tf.placeholder(tf.float32, [None])
    z = tf.placeholder(tf.float32, [None, 5])
    c = tf.placeholder(tf.int64, [None])
    M = tf.metrics
    ms = {}
    pi = tf.cast(p > 0.5, tf.int64)
    for n in "accuracy precision recall true_positives false_positives true_negatives false_negatives".split():
        ms[n] = getattr(M, n)(labels, pi)
        ms[n + "_w"] = getattr(M, n)(labels, pi, weights=w)
    for n in "mean_absolute_error mean_squared_error root_mean_squared_error".split():
        ms[n] = getattr(M, n)(tf.cast(labels, tf.float32), p, weights=w)
    ms["mean"] = M.mean(p)
    ms["pb"] = M.percentage_below(p, 0.3)
    ms["auc"] = M.auc(labels, p)
    ms["aucpr"] = M.auc(labels, p, curve="PR", weights=w, summation_method="careful_interpolation")
    ms["auct"] = M.auc(labels, p, summation_method="minoring", num_thresholds=20)
    ms["pt"] = M.precision_at_thresholds(labels, p, [0.2, 0.5])
    ms["rt"] = M.recall_at_thresholds(labels, p, [0.2, 0.5])
    ms["iou"] = M.mean_iou(c, tf.argmax(z, 1), 5)
    ms["mpc"] = M.mean_per_class_accuracy(c, tf.argmax(z, 1), 5)
    ms["rk"] = M.recall_at_k(c, z, 2)
    ms["pk"] = M.precision_at_k(tf.expand_dims(c, 1), z, 2)
    ms["rkc"] = M.recall_at_k(c, z, 2, class_id=1)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        updates = []
        for _ in range(3):
            feeds = {labels: r.randint(0, 2, 8), p: r.rand(8), w: r.rand(8), z: r.randn(8, 5), c: r.randint(0, 5, 8)}
            updates.append(sess.run({k: v[1] for k, v in ms.items()}, feeds))
        return updates, sess.run({k: v[0] for k, v in ms.items()}), sorted(v.name for v in tf.local_variables() if "_at_2" not in v.name)
