"""Variables, scopes and initializers: values and graphs."""

from both import both


@both(graph=True)
def test_reference(tf, np):
    w = tf.Variable(tf.zeros([2, 3]), name="w")
    b = tf.Variable([1.0, 2.0, 3.0])
    n = tf.Variable(3, trainable=False, dtype=tf.int64)
    rows = [w.assign_add(tf.ones([2, 3])), tf.assign(b, [4.0, 5.0, 6.0]), b.assign_sub([1.0, 1.0, 1.0], use_locking=True),
            tf.assign_add(n, 2), tf.scatter_add(w, [0, 0], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]),
            w.scatter_sub(tf.IndexedSlices(tf.ones([1, 3]), [1])), tf.scatter_update(b, [0], [9.0])]
    reads = [w + 1, 2 * b, b / 2, -b, w[0], b > 2, w.read_value(), tf.matmul(w, w, transpose_b=True), w.value()]
    init = tf.global_variables_initializer()
    with tf.Session() as sess:
        sess.run(init)
        out = [sess.run(row) for row in rows] + sess.run(reads)
        w.load(np.ones((2, 3), np.float32), sess)
        out += [w.eval(sess), sess.run([w, b, n]), w.name, w.op.name, str(w.dtype), w.get_shape().as_list(), repr(w)]
        return out, [v.name for v in tf.global_variables()], [v.name for v in tf.trainable_variables()]


@both(graph=True)
def test_resource(tf, np):
    r = tf.Variable([1.0, 2.0], use_resource=True, name="r")
    s = tf.get_variable("s", [3, 2], use_resource=True, initializer=tf.ones_initializer())
    a = r.assign_add([1.0, 1.0])
    after = a + 1
    changed = s.scatter_add(tf.IndexedSlices(tf.ones([2, 2]), [0, 0]))
    rows = tf.gather(s, [0, 2])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        out = [sess.run(after), sess.run(r), sess.run(changed), sess.run(rows), sess.run(r.read_value()),
               sess.run(r.is_initialized()), sess.run(r.assign([5.0, 6.0])), r.eval(sess)]
        return out, r.name, str(r.dtype), repr(r), s.shape.as_list()


@both
def test_parts(tf, np):
    """Slices that are assigned to, and elements by their places."""
    out = []
    for use_resource in (False, True):
        v = tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4), use_resource=use_resource)
        ops = [v[0].assign([9.0, 9.0, 9.0, 9.0]), v[1:, 2].assign([7.0, 7.0]), v.scatter_nd_add([[2, 3], [0, 0]], [100.0, 200.0]),
               tf.scatter_nd_update(v, [[1, 1]], [-1.0]), v.scatter_update(tf.IndexedSlices(tf.zeros([1, 4]), [2])),
               v.scatter_mul(tf.IndexedSlices(tf.fill([1, 4], 2.0), [0])), v.scatter_max(tf.IndexedSlices(tf.fill([1, 4], 5.0), [1]))]
        n = tf.Variable(0, use_resource=use_resource)
        count = n.count_up_to(2)
        with tf.Session() as sess:
            sess.run([v.initializer, n.initializer])
            for op in ops:
                sess.run(op)
                out.append(sess.run(v))
            out += [sess.run(count), sess.run(count)]
            try:
                sess.run(count)
            except tf.errors.OutOfRangeError:
                out.append("at the limit")
    return out


@both
def test_control_and_fetch(tf, np):
    v = tf.Variable(1.0)
    r = tf.Variable(1.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0), r.assign_add(2.0)]):
        after = [v.read_value(), r.read_value(), tf.identity(r)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(after), sess.run({"v": v, "r": [r]}), sess.run("Variable:0"), sess.run(v + r, {v.value(): 10.0})


@both(raises=True)
def test_assert_initialized(tf, np):
    tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(tf.assert_variables_initialized())


@both
def test_creator_scope(tf, np):
    made = []

    def creator(next_creator, **kwargs):
        made.append(kwargs["name"])
        kwargs["use_resource"] = True
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        v = tf.get_variable("v", [2])
        w = tf.Variable(1.0, name="w")
    return made, v.op.type, w.op.type


@both
def test_initialized_value(tf, np):
    w = tf.Variable(tf.constant([1.0, 2.0]), name="w")
    twice = tf.Variable(w.initialized_value() * 2, name="twice")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([w, twice])


@both(graph=True)
def test_get_variable(tf, np):
    tf.set_random_seed(3)
    v = tf.get_variable("v", [3, 2])
    with tf.variable_scope("s", initializer=tf.constant_initializer(2.0)) as scope:
        u = tf.get_variable("u", [3])
        with tf.variable_scope("t", reuse=tf.AUTO_REUSE):
            t = tf.get_variable("t", [2], initializer=tf.random_normal_initializer(stddev=0.1))
            again = tf.get_variable("t", [2])
        k = tf.get_variable("k", shape=[], dtype=tf.int32, initializer=tf.ones_initializer())
    with tf.variable_scope(scope, reuse=True):
        shared = tf.get_variable("u")
        op = tf.identity(u, name="op")
    with tf.variable_scope(None, "layer"):
        one = tf.get_variable("w", [1])
    with tf.variable_scope(None, "layer"):
        two = tf.get_variable("w", [1])
    value = tf.get_variable("value", initializer=[1.0, 2.0])
    local = tf.get_local_variable("local", [2], initializer=tf.zeros_initializer())
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        out = sess.run([v, u, t, k, one, two, value, local])
    return out, again is t, shared is u, op.name, one.name, two.name, [x.name for x in tf.local_variables()], scope.name


@both
def test_scope_names(tf, np):
    out = []
    with tf.variable_scope("a") as a:
        out.append(tf.get_variable("x", [1]).name)
        out.append(tf.constant(1.0, name="c").name)
        with tf.variable_scope("b", auxiliary_name_scope=False):
            out.append(tf.get_variable("x", [1]).name)
            out.append(tf.constant(1.0, name="c").name)
    with tf.variable_scope("a", reuse=True):
        out.append(tf.constant(1.0, name="c").name)
    with tf.variable_scope("z"), tf.variable_scope(a):
        out += [tf.get_variable_scope().name, tf.constant(1.0, name="c").name, tf.get_variable("y", [1]).name]
    with tf.variable_scope(a.original_name_scope.rstrip("/") + "x"):
        out.append(tf.get_variable_scope().name)
    with tf.name_scope("n"), tf.variable_scope("v"):
        out += [tf.get_variable("q", [1]).name, tf.constant(1.0, name="c").name, tf.Variable(1.0, name="plain").name]
    return out, [v.name for v in a.trainable_variables()], [v.name for v in tf.get_collection("variables", scope="a/")]


@both
def test_custom_getter(tf, np):
    seen = []

    def outer(getter, name, *args, **kwargs):
        seen.append(("outer", name))
        return getter(name, *args, **kwargs)

    def inner(getter, name, *args, **kwargs):
        seen.append(("inner", name))
        return getter(name + "_more", *args, **kwargs)

    with tf.variable_scope("o", custom_getter=outer), tf.variable_scope("i", custom_getter=inner):
        v = tf.get_variable("v", [2])
    return seen, v.name


@both(graph=True)
def test_partitions(tf, np):
    tf.set_random_seed(4)
    p = tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    q = tf.get_variable("q", [4, 3], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3, axis=1))
    y = tf.matmul(p, tf.ones([2, 1]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([y, tf.convert_to_tensor(q)]), [v.name for v in p], [v.shape.as_list() for v in q], len(p), [
            v._get_save_slice_info().spec for v in p]


@both
def test_partitioners(tf, np):
    shape = tf.TensorShape([1000, 40])
    return [tf.variable_axis_size_partitioner(4000)(shape=shape, dtype=tf.float32),
            tf.variable_axis_size_partitioner(4000, max_shards=5)(shape=shape, dtype=tf.float32),
            tf.min_max_variable_partitioner(8, min_slice_size=16 << 10)(shape=shape, dtype=tf.float32),
            tf.fixed_size_partitioner(3, axis=1)(shape=shape, dtype=tf.float32)]


@both(graph=True)
def test_initializers(tf, np):
    tf.set_random_seed(11)
    made = [tf.glorot_uniform_initializer(), tf.glorot_normal_initializer(seed=2), tf.random_uniform_initializer(-1, 1),
            tf.truncated_normal_initializer(stddev=0.3), tf.variance_scaling_initializer(scale=2.0, mode="fan_out"),
            tf.variance_scaling_initializer(distribution="uniform"), tf.uniform_unit_scaling_initializer(),
            tf.initializers.he_normal(seed=1), tf.initializers.lecun_uniform(), tf.zeros_initializer,
            tf.constant_initializer([[1.0, 2.0, 3.0, 4.0]] * 3), tf.random_normal_initializer(1.0, 0.5, seed=9)]
    rows = [tf.get_variable("v%d" % i, [3, 4], initializer=init) for i, init in enumerate(made)]
    rows.append(tf.get_variable("conv", [2, 2, 3, 4], initializer=tf.initializers.he_uniform(5)))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(rows), made[4].get_config(), made[1].get_config()


@both(rtol=1e-4, atol=1e-5)
def test_orthogonal(tf, np):
    v = tf.get_variable("v", [4, 3], initializer=tf.orthogonal_initializer(seed=3))
    w = tf.get_variable("w", [2, 2, 7], initializer=tf.orthogonal_initializer(gain=2.0, seed=4))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([v, w])


@both(graph=True)
def test_report(tf, np):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b", use_resource=True)
    report = tf.report_uninitialized_variables()
    ready = tf.is_variable_initialized(a)
    with tf.Session() as sess:
        out = [sess.run(report), sess.run(ready)]
        sess.run(a.initializer)
        out += [sess.run(report), sess.run(ready)]
        sess.run(tf.variables_initializer([b], name="start"))
        return out + [sess.run(report)]


@both(graph=True)
def test_regularizer(tf, np):
    with tf.variable_scope("r", regularizer=lambda v: tf.reduce_sum(tf.abs(v))):
        tf.get_variable("w", [2], initializer=tf.constant_initializer(-2.0))
        tf.get_variable("free", [2], regularizer=tf.no_regularizer)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(losses)


@both(raises=True, message=True)
def test_no_reuse(tf, np):
    with tf.variable_scope("a", reuse=True):
        tf.get_variable("v", [1])


@both(raises=True)
def test_twice(tf, np):
    tf.get_variable("v", [1])
    tf.get_variable("v", [1])


@both(raises=True, message=True)
def test_other_shape(tf, np):
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [1])
        tf.get_variable("v", [2])


@both(raises=True, message=True)
def test_no_shape(tf, np):
    tf.get_variable("v")


@both(raises=True)
def test_uninitialized(tf, np):
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(v)


def test_old_names_warn_once():
    import runnel as tf
    import warnings
    with tf.Graph().as_default(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tf.Variable(1.0)
        tf.initialize_all_variables()
        tf.initialize_all_variables()
    assert len([w for w in caught if "initialize_all_variables" in str(w.message)]) <= 1


def test_variable_proto_round_trip():
    import runnel as tf
    with tf.Graph().as_default():
        for use_resource in (False, True):
            v = tf.get_variable("v%d" % use_resource, [2], use_resource=use_resource)
            again = tf.Variable.from_proto(v.to_proto())
            assert again.name == v.name and again.initializer is v.initializer and again.value().shape == v.shape
