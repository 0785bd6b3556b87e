"""tf.losses, tf.metrics and checks build the same nodes as stock: seeds of later ops depend on the number of nodes."""

from both import both


@both(graph=True)
def test_losses(tf, np):
    labels, scores = np.array([[1, 0, 0], [0, 0, 1]], np.float32), np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]], np.float32)
    rows = []
    for weights in (1.0, 2.5, [[1.0], [0.0]]):
        for name in ("absolute_difference", "mean_squared_error", "huber_loss", "log_loss", "hinge_loss",
                     "mean_pairwise_squared_error", "sigmoid_cross_entropy"):
            rows.append(getattr(tf.losses, name)(labels, scores, weights))
        rows.append(tf.losses.cosine_distance(labels, scores, axis=1, weights=weights))
    rows.append(tf.losses.softmax_cross_entropy(labels, scores, [1.0, 2.0], label_smoothing=0.1))
    rows.append(tf.losses.sparse_softmax_cross_entropy([[0], [2]], scores, [[1.0], [0.0]]))
    for reduction in tf.losses.Reduction.all():
        rows.append(tf.losses.mean_squared_error(labels, scores, 2.0, reduction=reduction))
    with tf.Session() as sess:
        return sess.run(rows)


@both(graph=True)
def test_losses_of_shapes_that_are_not_known(tf, np):
    scores = tf.placeholder(tf.float32)
    labels = tf.placeholder(tf.float32, [None, 2])
    weights = tf.placeholder(tf.float32)
    loss = tf.losses.mean_squared_error(labels, scores, weights)
    feeds = {scores: [[1, 2], [3, 4]], labels: [[0, 2], [1, 4]]}
    with tf.Session() as sess:
        good = [sess.run(loss, {**feeds, weights: w}) for w in (2.0, [[1.0], [0.5]])]
        try:
            sess.run(loss, {**feeds, weights: [1.0, 2.0]})
        except tf.errors.InvalidArgumentError as error:
            return good, "weights can not be broadcast to values" in str(error)
    return good


@both(raises=True, message=True)
def test_weights_that_do_not_fit(tf, np):
    tf.losses.mean_squared_error(np.ones((2, 3), "f"), np.zeros((2, 3), "f"), tf.constant([1.0, 2.0], name="w"))


@both(raises=True, message=True)
def test_labels_that_are_not_given(tf, np):
    tf.losses.hinge_loss(None, [1.0])


@both(graph=True)
def test_metrics(tf, np):
    labels, flags, scores = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.bool, [None]), tf.placeholder(tf.float32, [None])
    weights = tf.placeholder(tf.float32, [None])
    M = tf.metrics
    rows = [M.mean(scores), M.mean(scores, weights), M.accuracy(labels, tf.cast(scores > 0.5, tf.int64), weights),
            M.precision(labels, flags), M.recall(labels, flags, weights), M.true_negatives(labels, flags, weights),
            M.auc(labels, scores, num_thresholds=5), M.auc(labels, scores, curve="PR", summation_method="careful_interpolation"),
            M.precision_at_thresholds(labels, scores, [0.2, 0.6], weights), M.false_negatives_at_thresholds(labels, scores, [0.4]),
            M.sensitivity_at_specificity(labels, scores, 0.5, num_thresholds=4),
            M.specificity_at_sensitivity(labels, scores, 0.5, num_thresholds=4),
            M.mean_iou(labels, tf.cast(flags, tf.int64), 2), M.mean_per_class_accuracy(labels, tf.cast(flags, tf.int64), 2, weights),
            M.mean_relative_error(tf.cast(labels, tf.float32), scores, weights), M.percentage_below(scores, 0.5),
            M.root_mean_squared_error(tf.cast(labels, tf.float32), scores), M.mean_tensor(tf.stack([scores[0], scores[1]]))]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        given = [sess.run([update for _, update in rows], {labels: [0, 1, 1, 0], flags: [True, True, False, False],
                                                           scores: s, weights: [1, 2, 0, 0.5]})
                 for s in ([0.1, 0.9, 0.4, 0.6], [0.7, 0.2, 1.0, 0.0])]
        return given, sess.run([value for value, _ in rows]), [v.name for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)]


@both(graph=True)
def test_metrics_of_the_best_predictions(tf, np):
    scores = tf.placeholder(tf.float32, [None, 4])
    labels = tf.placeholder(tf.int64, [None, 2])
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 3, 2], tf.int64), [2, 4])
    M = tf.metrics
    rows = [M.recall_at_k(labels, scores, 2), M.precision_at_k(labels, scores, 2), M.precision_at_k(sparse, scores, 2),
            M.recall_at_k(sparse, scores, 2, class_id=3), M.precision_at_k(labels, scores, 3, class_id=1),
            M.average_precision_at_k(labels, scores, 3), M.average_precision_at_k(sparse, scores, 2),
            M.recall_at_top_k(labels, tf.nn.top_k(scores, 2)[1], weights=[1.0, 0.5])]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        given = sess.run([update for _, update in rows], {scores: [[0.1, 0.5, 0.2, 0.9], [0.3, 0.2, 0.8, 0.1]],
                                                          labels: [[1, 0], [2, 2]]})
        return given, sess.run([value for value, _ in rows]), [v.name for v in tf.local_variables()]


@both
def test_predictions_out_of_range(tf, np):
    _, update = tf.metrics.auc(tf.constant([0, 1]), tf.constant([0.5, 1.5]) + tf.placeholder(tf.float32, []))
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        try:
            sess.run(update, {"Placeholder:0": 0.0})
        except tf.errors.InvalidArgumentError as error:
            return "predictions must be in [0, 1]" in str(error)


@both(graph=True)
def test_checks_of_ranks(tf, np):
    x, rank = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    y = tf.constant([[1.0]])
    with tf.control_dependencies([tf.assert_rank(x, 2), tf.assert_rank_at_least(x, rank), tf.assert_rank_in(y, (0, tf.rank(x))),
                                  tf.assert_rank_in(y, (1, 2)), tf.assert_type(y, tf.float32), tf.assert_integer(rank)]):
        z = tf.reduce_sum(x)
    with tf.Session() as sess:
        return sess.run(z, {x: [[1, 2]], rank: 1}), z.shape.as_list()


@both(raises=True, message=True)
def test_rank_that_is_wrong(tf, np):
    tf.assert_rank(tf.constant([[1.0]], name="x"), 1, message="told you")


@both
def test_what_is_checked_at_once(tf, np):
    """Only what is seen without computing is checked while the graph is built."""
    try:
        tf.assert_equal(tf.constant(1), tf.constant(2))
    except tf.errors.InvalidArgumentError:
        found = ["constants"]
    check = tf.assert_equal(tf.constant(1) + 1, 3)
    with tf.Session() as sess:
        try:
            sess.run(check)
        except tf.errors.InvalidArgumentError:
            found.append("sums, when they run")
    partly = tf.get_static_value(tf.stack([tf.constant(1), tf.placeholder(tf.int32, [])]), partial=True)
    return (found, tf.get_static_value(tf.constant(1) + 1) is None, tf.get_static_value(tf.shape(tf.zeros([2, 3]))),
            tf.get_static_value(tf.cast(tf.range(3), tf.float32)), int(partly[0]), partly[1] is None)
