"""tf.nn, function by function."""

from both import both


@both
def test_functions(tf, np):
    r = np.random.RandomState(0)
    x = tf.constant(r.randn(2, 6, 6, 3).astype("f"))
    k = tf.constant(r.randn(3, 3, 3, 4).astype("f"))
    tf.set_random_seed(5)
    out = {}
    out["conv"] = tf.nn.conv2d(x, k, [1, 2, 2, 1], "SAME")
    out["convv"] = tf.nn.conv2d(x, k, 1, "VALID", dilations=2)
    out["ct"] = tf.nn.conv2d_transpose(tf.nn.conv2d(x, k, [1, 2, 2, 1], "SAME"), k, [2, 6, 6, 3], [1, 2, 2, 1])
    out["mp"] = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    out["ap"] = tf.nn.avg_pool(x, 2, 2, "SAME")
    out["dw"] = tf.nn.depthwise_conv2d(x, tf.constant(r.randn(3, 3, 3, 2).astype("f")), [1, 1, 1, 1], "SAME")
    out["c1"] = tf.nn.conv1d(x[:, 0], tf.constant(r.randn(3, 3, 5).astype("f")), 2, "SAME")
    logits = tf.constant(r.randn(4, 5).astype("f"))
    out["sm"] = tf.nn.softmax(logits)
    out["sm0"] = tf.nn.softmax(logits, axis=0)
    out["lsm"] = tf.nn.log_softmax(logits)
    lab = tf.nn.softmax(tf.constant(r.randn(4, 5).astype("f")))
    out["xe"] = tf.nn.softmax_cross_entropy_with_logits_v2(labels=lab, logits=logits)
    out["xe0"] = tf.nn.softmax_cross_entropy_with_logits_v2(labels=lab, logits=logits, axis=0)
    out["sxe"] = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2, 0, 4], logits=logits)
    out["sig"] = tf.nn.sigmoid_cross_entropy_with_logits(labels=lab, logits=logits)
    out["w"] = tf.nn.weighted_cross_entropy_with_logits(labels=lab, logits=logits, pos_weight=2.0)
    out["drop"] = tf.nn.dropout(logits, 0.5, seed=3)
    out["drop2"] = tf.nn.dropout(logits, rate=0.3, noise_shape=[4, 1])
    out["mom"] = tf.nn.moments(x, [0, 1, 2])
    out["lrn"] = tf.nn.lrn(x, 2)
    out["l2n"] = tf.nn.l2_normalize(logits, 1)
    out["bn"] = tf.nn.batch_normalization(logits, tf.zeros([5]), tf.ones([5]), tf.fill([5], 0.1), tf.fill([5], 2.0), 1e-3)
    out["fbn"] = tf.nn.fused_batch_norm(x, [1.0, 2.0, 3.0], [0.0, 0.0, 1.0])[:3]
    W = [tf.constant(r.randn(7, 3).astype("f")) for _ in range(3)]
    out["emb"] = tf.nn.embedding_lookup(W, [[0, 5], [20, 3]])
    out["embd"] = tf.nn.embedding_lookup(W, [[0, 5], [20, 3]], partition_strategy="div")
    sp = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 2], tf.int64), [3, 2])
    out["embs"] = tf.nn.embedding_lookup_sparse(W[0], sp, None, combiner="sqrtn")
    out["embw"] = tf.nn.embedding_lookup_sparse(
        W[0], sp, tf.SparseTensor(sp.indices, tf.constant([0.5, 1.0, 2.0]), sp.dense_shape), combiner="mean"
    )
    ww = tf.constant(r.randn(50, 3).astype("f"))
    bb = tf.constant(r.randn(50).astype("f"))
    inp = tf.constant(r.randn(4, 3).astype("f"))
    out["nce"] = tf.nn.nce_loss(
        ww,
        bb,
        tf.constant([[1], [2], [7], [30]], tf.int64),
        inp,
        8,
        50,
        sampled_values=tf.nn.uniform_candidate_sampler([[1], [2], [7], [30]], 1, 8, True, 50, seed=4),
    )
    out["ss"] = tf.nn.sampled_softmax_loss(ww, bb, tf.constant([[1], [2], [7], [30]], tf.int64), inp, 8, 50, seed=9)
    out["tk"] = tf.nn.top_k(logits, 2)
    out["itk"] = tf.nn.in_top_k(logits, [1, 2, 0, 4], 2)
    out["zf"] = tf.nn.zero_fraction(tf.nn.relu(logits))
    out["lp"] = tf.nn.log_poisson_loss(tf.abs(logits) * 3, logits, True)
    out["crelu"] = tf.nn.crelu(logits)
    out["swish"] = tf.nn.swish(logits)
    g = tf.gradients([tf.reduce_sum(out[n]) for n in ("xe", "sxe", "sig", "emb", "nce", "ss")], [logits, W[0], ww, inp])
    out["g"] = [tf.convert_to_tensor(t) for t in g]
    with tf.Session() as sess:
        return sess.run(out)


@both(graph=True)
def test_windows_with_holes(tf, np):
    x = tf.placeholder(tf.float32, [2, 9, 9, 3])
    s = tf.placeholder(tf.float32, [None, None, 4])
    rows = [tf.nn.pool(x, [3, 3], "MAX", "VALID", dilation_rate=[2, 3]), tf.nn.pool(x, [3, 2], "AVG", "SAME", strides=[2, 1]),
            tf.nn.pool(s, [2], "AVG", "VALID", dilation_rate=[2]),
            tf.nn.with_space_to_batch(x, [2, 1], "SAME", lambda v, n, p: tf.nn.avg_pool(v, [1, 3, 3, 1], [1, 1, 1, 1], p),
                                      filter_shape=[3, 3])]
    rows += tf.required_space_to_batch_paddings([5, 7], [2, 3], [[0, 1], [1, 1]])
    with tf.Session() as sess:
        return [r.shape.as_list() for r in rows], sess.run(rows, {x: np.arange(486, dtype="f").reshape(2, 9, 9, 3) % 11,
                                                                  s: np.arange(56, dtype="f").reshape(2, 7, 4) % 5})


@both(raises=True)
def test_pool_same_with_holes(tf, np):
    tf.nn.pool(tf.zeros([1, 5, 5, 1]), [2, 2], "MAX", "SAME", dilation_rate=[2, 2])


def _separable(tf, np):
    x = tf.placeholder(tf.float32, [2, 7, 6, 3])
    deep, wide = tf.constant(np.arange(36, dtype="f").reshape(2, 3, 3, 2) % 5 - 2), tf.ones([1, 1, 6, 4])
    return x, [
        tf.nn.depthwise_conv2d(x, deep, [1, 1, 1, 1], "SAME", rate=[2, 1]), tf.nn.depthwise_conv2d(x, deep, [1, 2, 2, 1], "VALID"),
        tf.nn.separable_conv2d(x, deep, wide, [1, 1, 1, 1], "SAME", rate=[2, 2]),
        tf.nn.separable_conv2d(x, deep, wide, [1, 1, 1, 1], "VALID")]


@both(graph=True)
def test_separable_with_holes(tf, np):
    x, rows = _separable(tf, np)
    with tf.Session() as sess:
        return [r.shape.as_list() for r in rows], sess.run(rows, {x: np.arange(252, dtype="f").reshape(2, 7, 6, 3) % 11})


@both
def test_gradients_of_windows_with_holes(tf, np):
    x, rows = _separable(tf, np)
    grads = tf.gradients([tf.reduce_sum(r * r) for r in rows], [x])
    with tf.Session() as sess:
        return sess.run(grads, {x: np.arange(252, dtype="f").reshape(2, 7, 6, 3) % 11})


@both
def test_channels_first_and_groups(tf, np):
    r = np.random.RandomState(1)
    out = {}
    for depth, groups in ((4, 1), (4, 2), (6, 3)):
        for padding in ("SAME", "VALID"):
            x = tf.constant(r.randint(-3, 4, [2, depth, 5, 6]).astype("f"))
            w = tf.constant(r.randint(-3, 4, [3, 2, depth // groups, 6]).astype("f"))
            first = tf.raw_ops.Conv2D(input=x, filter=w, strides=[1, 1, 2, 1], padding=padding, data_format="NCHW")
            last = tf.raw_ops.Conv2D(input=tf.transpose(x, [0, 2, 3, 1]), filter=w, strides=[1, 2, 1, 1], padding=padding)
            for name, y in (("first", first), ("last", last)):
                key = "%s_%d_%d_%s" % (name, depth, groups, padding)
                out[key] = y
                dx, dw = tf.gradients(y * y, [x, w])
                out[key + "_dx"], out[key + "_dw"] = dx, dw
    with tf.Session() as sess:
        return sess.run(out)


@both
def test_places_do_not_know_windows_across_channels(tf, np):
    x = tf.constant(np.random.RandomState(2).randn(2, 3, 2, 6).astype("f"))
    out = {}
    for padding in ("SAME", "VALID"):
        a = dict(ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding=padding, include_batch_in_index=True)
        out[padding] = list(tf.raw_ops.MaxPoolWithArgmax(input=x, **a))
    with tf.Session() as sess:
        return sess.run(out)


@both
def test_approximate_ranks(tf, np):
    x = tf.constant(np.random.RandomState(3).randn(3, 9).astype("f"))
    values, places = tf.math.approx_max_k(x, 3)
    grads = tf.gradients(values * [1.0, 2.0, 3.0], x)
    with tf.Session() as sess:
        return sess.run([values, places, tf.nn.approx_max_k(x, 2, recall_target=0.5), grads])


def test_smallest_ranks():
    import numpy as np

    import runnel as tf

    x = np.random.RandomState(3).randn(4, 9).astype("f")
    with tf.Graph().as_default(), tf.Session() as sess:
        values, places = sess.run(tf.nn.approx_min_k(x, 3, reduction_dimension=0))
    np.testing.assert_array_equal(places, np.argsort(x, 0)[:3])
    np.testing.assert_array_equal(values, np.sort(x, 0)[:3])


@both
def test_rounding_to_bits(tf, np):
    x = tf.constant(np.linspace(-3, 3, 12).reshape(3, 4).astype("f"))
    q = tf.quantization
    out = [q.quantize_and_dequantize(x, -2.0, 2.0, range_given=True), q.quantize_and_dequantize_v2(x, -2.0, 2.0, range_given=True)]
    grads = [tf.gradients(y * y, x) for y in out]
    per = q.fake_quant_with_min_max_vars_per_channel_gradient(x, x, [-1.0] * 4, [1.0] * 4)
    with tf.Session() as sess:
        return sess.run([out, grads, list(per)])
