"""Loss scaling and mixed precision: the same graphs, scales and losses as in stock TensorFlow."""

import pytest
from both import both


def _train(tf, np, optimizer, steps, factors=None):
    """Trains a line with `optimizer`; a factor on the loss makes gradients infinite. Returns what each step leaves."""
    w = tf.get_variable("w", initializer=np.float32([[0.5], [-1.0]]), use_resource=True)
    x = tf.placeholder(tf.float32, [3, 2])
    factor = tf.placeholder(tf.float32, [])
    count = tf.train.get_or_create_global_step()
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) - 1.0)) * factor
    train = optimizer.minimize(loss, global_step=count)
    weights = optimizer._loss_scale._weights.values()
    seen = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(steps):
            feed = {x: np.float32([[1, 2], [i, 1], [-1, 0.5]]), factor: factors[i] if factors else 1.0}
            sess.run(train, feed)
            seen.append(sess.run([w, count] + list(weights)))
    return seen


@both()
def test_dynamic_scale(tf, np):
    scale = tf.mixed_precision.DynamicLossScale(initial_loss_scale=8, increment_period=3)
    optimizer = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.01), scale)
    bad = float("inf")
    return _train(tf, np, optimizer, 14, [1, 1, 1, 1, bad, 1, 1, bad, bad, bad, bad, 1, 1, 1])


@both()
def test_fixed_scale(tf, np):
    optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(tf.train.MomentumOptimizer(0.01, 0.9), 128)
    return _train(tf, np, optimizer, 3) + [optimizer.get_name(), [v.name for v in optimizer.variables()]]


@both(graph=True)
def test_graph_of_updates(tf, np):
    w = tf.get_variable("w", initializer=np.float32([1, 2]), use_resource=True)
    gradient = tf.placeholder(tf.float32, [2])
    optimizer = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), "dynamic")
    train = optimizer.apply_gradients([(gradient, w), (None, w)], tf.train.get_or_create_global_step())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {gradient: [1, 1]})
        sess.run(train, {gradient: [1, float("nan")]})
        return [train.name, sess.run(w), sess.run(optimizer._loss_scale())]


@both()
def test_sparse_gradients(tf, np):
    table = tf.get_variable("table", initializer=np.float32([[1, 2], [3, 4], [5, 6]]), use_resource=True)
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [0, 2, 0]) ** 2)
    optimizer = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.AdagradOptimizer(0.1), "dynamic")
    pairs = optimizer.compute_gradients(loss)
    train = optimizer.apply_gradients(pairs)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(pairs[0][0])
        sess.run(train)
        return [before.values, before.indices, sess.run(table), [v.name for v in optimizer.variables()]]


@both()
def test_scales_as_values(tf, np):
    fixed = tf.mixed_precision.experimental.FixedLossScale(4)
    dynamic = tf.mixed_precision.experimental.DynamicLossScale(16, 5, 4)
    again = type(dynamic).from_config(dynamic.get_config())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [repr(fixed), repr(dynamic), fixed.get_config(), again.get_config(), sess.run([fixed(), dynamic()]),
                issubclass(type(fixed), tf.train.experimental.LossScale),
                [dynamic.initial_loss_scale, dynamic.increment_period, dynamic.multiplier]]


def _refusal(tf, call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return "nothing was raised"


@both()
def test_wrong_arguments(tf, np):
    good = tf.train.GradientDescentOptimizer(0.1)
    wrapper = tf.mixed_precision.MixedPrecisionLossScaleOptimizer
    enable = tf.mixed_precision.enable_mixed_precision_graph_rewrite
    return [_refusal(tf, lambda: tf.mixed_precision.FixedLossScale(0.5)),
            _refusal(tf, lambda: tf.mixed_precision.FixedLossScale("2")),
            _refusal(tf, lambda: wrapper("no optimizer", 2)),
            _refusal(tf, lambda: wrapper(good, None)),
            _refusal(tf, lambda: wrapper(good, "sometimes")),
            _refusal(tf, lambda: enable("no optimizer")),
            _refusal(tf, lambda: enable(wrapper(good, 2)))]


def _net(tf, np):
    """A convnet with batch norm; (feeds, loss)."""
    rng = np.random.RandomState(0)

    def variable(name, *dims):
        return tf.get_variable(name, initializer=(rng.randn(*dims) * 0.2).astype(np.float32), use_resource=True)

    x, y = tf.placeholder(tf.float32, [8, 8, 8, 3]), tf.placeholder(tf.int32, [8])
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, variable("w", 3, 3, 3, 8), 1, "SAME"), variable("b", 8)))
    h = tf.nn.conv2d(h, variable("w2", 3, 3, 8, 8), 1, "SAME")
    h, _, _ = tf.nn.fused_batch_norm(h, variable("scale", 8) + 1.0, variable("offset", 8))
    h = tf.reshape(tf.nn.max_pool(tf.nn.relu(h), 2, 2, "SAME"), [8, -1])
    logits = tf.matmul(h, variable("w3", 128, 10)) + variable("b3", 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return {x: rng.randn(8, 8, 8, 3).astype(np.float32), y: rng.randint(0, 10, 8)}, loss


def _losses(tf, np, option):
    config = tf.ConfigProto()
    if option:
        setattr(config.graph_options.rewrite_options, option, 1)
    feeds, loss = _net(tf, np)
    scale = tf.mixed_precision.DynamicLossScale(initial_loss_scale=1024, increment_period=3)
    optimizer = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.02), scale)
    train = optimizer.minimize(loss)
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        return [[sess.run([loss, train], feeds)[0], sess.run(scale())] for _ in range(6)]


@both(rtol=2e-3)
def test_losses_rounded_as_half(tf, np):
    return _losses(tf, np, "auto_mixed_precision_cpu")


@both(rtol=1e-2)
def test_losses_in_bfloat16(tf, np):
    return _losses(tf, np, "auto_mixed_precision_onednn_bfloat16")


def test_rounding_changes_losses():
    """The options do something."""
    import numpy as np

    import runnel
    found = []
    for option in (None, "auto_mixed_precision_cpu", "auto_mixed_precision_onednn_bfloat16"):
        with runnel.Graph().as_default():
            found.append(float(_losses(runnel, np, option)[3][0]))
    assert len(set(found)) == 3
    assert abs(found[0] - found[1]) < 2e-3 and abs(found[0] - found[2]) < 2e-2


@pytest.fixture(name="switched_on")
def _switched_on():
    import runnel
    with runnel.Graph().as_default():
        yield runnel.train.experimental.enable_mixed_precision_graph_rewrite(runnel.train.AdamOptimizer())
    runnel.train.experimental.disable_mixed_precision_graph_rewrite()


def test_enabling_changes_sessions(switched_on):
    import runnel
    def rewrites(session):
        return session._config.graph_options.rewrite_options.auto_mixed_precision

    assert isinstance(switched_on, runnel.mixed_precision.MixedPrecisionLossScaleOptimizer)
    assert runnel.config.optimizer.get_experimental_options()["auto_mixed_precision"]
    config = runnel.ConfigProto()
    with runnel.Session() as plain, runnel.Session(config=config) as given:
        assert rewrites(plain) == rewrites(given) == 1
    assert config.graph_options.rewrite_options.auto_mixed_precision == 0  # the caller's is not changed
    config.graph_options.rewrite_options.auto_mixed_precision = 2
    with runnel.Session(config=config) as off:
        assert rewrites(off) == 2


def test_disabling_changes_sessions(switched_on):
    import runnel
    runnel.mixed_precision.disable_mixed_precision_graph_rewrite()
    with runnel.Session() as session:
        assert session._config is None
    runnel.mixed_precision.enable_mixed_precision_graph_rewrite(runnel.train.AdamOptimizer(), 8)
