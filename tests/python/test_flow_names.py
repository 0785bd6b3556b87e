"""Node names of control flow and of functions that take lists: checkpoints and tools depend on them."""

from both import both


def _preds(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    return x, [(x > 10.0, lambda: x * 2.0), (x > 5.0, lambda: x + 1.0)]


@both(graph=True)
def test_case_names(tf, np):
    x, pairs = _preds(tf)
    y = tf.case(pairs, default=lambda: -x, exclusive=True)
    with tf.Session() as sess:
        return sess.run(y, {x: 7.0}), sess.run(y, {x: 1.0})


@both(graph=True)
def test_case_without_default(tf, np):
    x, pairs = _preds(tf)
    y = tf.case(pairs, name="choose")
    with tf.Session() as sess:
        return sess.run(y, {x: 7.0})


@both(graph=True)
def test_case_single_and_strict(tf, np):
    x, pairs = _preds(tf)
    y = tf.case(pairs[:1], default=lambda: x - 1.0)
    z = tf.case([(x > 1.0, lambda: [x * 2.0])], default=lambda: [x], strict=True)
    with tf.Session() as sess:
        return sess.run([y, z], {x: 7.0})


@both(graph=True)
def test_case_of_dict(tf, np):
    x, pairs = _preds(tf)
    y = tf.case(dict(pairs), default=lambda: x, exclusive=False)
    with tf.Session() as sess:
        return sess.run(y, {x: 7.0})


@both(raises=True)
def test_case_that_none_takes(tf, np):
    x, pairs = _preds(tf)
    y = tf.case(pairs)
    with tf.Session() as sess:
        sess.run(y, {x: 1.0})


@both(raises=True)
def test_case_that_two_take(tf, np):
    x, pairs = _preds(tf)
    y = tf.case(pairs, default=lambda: x, exclusive=True)
    with tf.Session() as sess:
        sess.run(y, {x: 100.0})


@both
def test_switch_case(tf, np):
    i = tf.placeholder(tf.int32, [], name="i")
    y = tf.switch_case(i, [lambda: tf.constant(1.0), lambda: tf.constant(2.0)], default=lambda: tf.constant(3.0))
    with tf.Session() as sess:
        return [sess.run(y, {i: v}) for v in (0, 1, 2, -1)]


@both(graph=True)
def test_lists_of_constants(tf, np):
    a = tf.constant([1.0, 2.0])
    rows = [tf.concat([a, [3.0, 4.0], [5.0]], 0), tf.concat([[1.0], [2.0]], axis=0), tf.stack([a, [3.0, 4.0]]),
            tf.stack([1, tf.constant(2), 3]), tf.add_n([a, [3.0, 4.0], [1.0, 1.0]]), tf.stack([[1, 2], [3, 4]]),
            tf.tuple([a, a])[1], tf.meshgrid([1, 2], [3, 4, 5])[0], tf.accumulate_n([a, a]),
            tf.dynamic_stitch([[0, 1], [2]], [[1.0, 2.0], [3.0]]), tf.string_join(["a", tf.constant("b"), "c"], "-"),
            tf.strings.join(["x", "y"]), tf.parallel_stack([a, a]), tf.einsum("i,i->", a, a),
            tf.identity_n([a, [1.0]])[1], tf.shape_n([a, [[1.0]]])[1], tf.case([(a[0] > 0, lambda: a)], default=lambda: -a)]
    with tf.Session() as sess:
        return sess.run(rows)


@both(graph=True)
def test_print_and_assert_names(tf, np):
    x = tf.constant([1.0, 2.0])
    y = tf.Print(x, [x, tf.shape(x), "text", 3], message="m", first_n=2, summarize=5)
    z = tf.Print(tf.constant(1), [1.0, [2]], name="other")
    with tf.control_dependencies([tf.Assert(x[0] > 0, [x, "wrong", 1.5]), tf.Assert(True, ["never"], name="second"),
                                  tf.assert_equal(x, [1.0, 2.0]), tf.assert_greater(x, 0.0, message="small")]):
        w = tf.identity(y)
    n = tf.verify_tensor_all_finite(w, "finite")
    with tf.Session() as sess:
        return sess.run([z, w, n])


@both(graph=True)
def test_loop_names(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    m = tf.map_fn(lambda r: (r * 2.0, tf.reduce_sum(r)), x, dtype=(tf.float32, tf.float32), name="rows")
    s = tf.scan(lambda a, r: a + r, x, reverse=True)
    f = tf.foldr(lambda a, r: a * r, x, initializer=tf.ones([2]))
    g = tf.foldl(lambda a, r: a * r, x, parallel_iterations=3)
    w = tf.while_loop(lambda i, a: i < 4, lambda i, a: [i + 1, tf.cond(a[0, 0] > 3.0, lambda: a - 1.0, lambda: a * 2.0)], [0, x],
                      maximum_iterations=10, parallel_iterations=1, name="turns")
    one = tf.while_loop(lambda i: i < 4, lambda i: i + 1, [0], maximum_iterations=tf.constant(2))
    with tf.Session() as sess:
        return sess.run([m, s, f, g, w, one])


@both(graph=True)
def test_arrays_names(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    a = tf.TensorArray(tf.float32, 2, name="mine").unstack(x)
    b = tf.TensorArray(tf.float32, size=0, dynamic_size=True, infer_shape=False, tensor_array_name="old").write(0, [1.0]).write(1, [2.0, 3.0])
    _, c = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t.write(i, a.read(i) * 2.0)), [0, tf.TensorArray(tf.float32, 2, element_shape=[2])])
    with tf.Session() as sess:
        return sess.run([c.stack(), b.concat(), c.size()])


@both(graph=True)
def test_cond_names(tf, np):
    p = tf.placeholder(tf.bool, [], name="p")
    v = tf.get_variable("v", initializer=1.0)
    w = tf.get_variable("w", initializer=1.0, use_resource=True)
    up = tf.cond(p, lambda: tf.assign_add(v, 1.0), lambda: tf.assign_sub(v, 1.0))
    upw = tf.cond(p, lambda: tf.group(w.assign_add(1.0)), tf.no_op, name="maybe")
    with tf.control_dependencies([up, upw]):
        r = tf.add(v, w)
    lists = tf.cond(p, lambda: [v, tf.constant(1)], lambda: [tf.constant(3.0), tf.constant(4)])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([r, lists], {p: x}) for x in (True, False)]


@both(graph=True)
def test_waiting_for_what_is_outside(tf, np):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    a = tf.add(tf.convert_to_tensor(v.assign_add(10.0)), 0.0, name="a")
    with tf.control_dependencies([a]):
        y = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + v), [tf.constant(0), 0.0])[1]
        c = tf.cond(y > 0.0, lambda: v * 2.0, lambda: tf.constant(1.0))

    def body(i, x):
        with tf.control_dependencies([a]):
            return i + 1, x + v * 2.0
    z = tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), 0.0], name="inner")[1]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([y, c]), sess.run(z), sess.run(v)
