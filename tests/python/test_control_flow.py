"""Conditionals, loops, and functions built on them."""

from both import both


def _inputs(tf):
    return tf.placeholder(tf.float32, [None, 3], name="x"), tf.placeholder(tf.bool, [], name="s")


def _run(tf, fetches, x, s):
    with tf.Session() as sess:
        return [sess.run(fetches, {x: [[1, 2, 3], [0.4, 0.5, 0.6]], s: value}) for value in (True, False)]


@both(graph=True)
def test_cond(tf, np):
    x, s = _inputs(tf)
    one = tf.cond(s, lambda: tf.reduce_sum(x) * 2.0, lambda: tf.reduce_max(x))
    many = tf.cond(s, lambda: {"a": x, "b": tf.constant(1.0)}, lambda: {"a": x + 1, "b": tf.constant(2.0)})
    nested = tf.cond(s, lambda: tf.cond(x[0, 0] > 0, lambda: x * 2, lambda: x), lambda: -x)
    return _run(tf, [one, many, nested], x, s)


@both
def test_cond_gradients(tf, np):
    x, s = _inputs(tf)
    y = tf.cond(s, lambda: tf.reduce_sum(x * x), lambda: tf.reduce_sum(tf.tanh(x)))
    return _run(tf, [y] + tf.gradients(y, x), x, s)


@both(graph=True)
def test_while(tf, np):
    x, s = _inputs(tf)
    i, product = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * x), [0, tf.ones_like(x)])
    inner = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * tf.tanh(x)), [tf.constant(0), a])[1]), [0, x])[1]
    return _run(tf, [i, product, inner], x, s)


@both(graph=True)
def test_a_loop_that_starts_with_an_invariant_of_the_loop_around(tf, np):
    v, x = tf.get_variable("v", initializer=0.0, use_resource=True), tf.placeholder(tf.float32, [])

    def go_on(i, a):
        with tf.control_dependencies([v.assign_add(a)]):
            return tf.identity(i) < 2
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.while_loop(go_on, lambda j, b: (j + 1, b + 1), [tf.constant(0), x])[1]), [0, x])[1]
    with tf.Session() as sess:
        sess.run(v.initializer)
        return [sess.run(y, {x: 1.0}), sess.run(v)]


@both
def test_while_gradients(tf, np):
    x, s = _inputs(tf)
    y = tf.while_loop(lambda i, a: i < 4, lambda i, a: [i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a + x, lambda: a * x)], [0, x],
                      maximum_iterations=3)[1]
    z = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * x), [0, tf.ones_like(x)])[1]
    return _run(tf, [y, z] + tf.gradients([tf.reduce_sum(y), tf.reduce_sum(z)], x), x, s)


@both
def test_shape_invariants(tf, np):
    i0, m0 = tf.constant(0), tf.ones([2, 2])
    _, grown = tf.while_loop(lambda i, m: i < 3, lambda i, m: [i + 1, tf.concat([m, m], axis=0)], [i0, m0],
                             shape_invariants=[i0.get_shape(), tf.TensorShape([None, 2])])
    with tf.Session() as sess:
        return [str(grown.shape), sess.run(grown)]


@both(raises=True)
def test_shape_that_varies(tf, np):
    tf.while_loop(lambda i, m: i < 3, lambda i, m: [i + 1, tf.concat([m, m], axis=0)], [tf.constant(0), tf.ones([2, 2])])


@both
def test_rows(tf, np):
    x, s = _inputs(tf)
    results = [tf.map_fn(lambda r: tf.reduce_sum(r * r), x), tf.scan(lambda a, r: a + r, x), tf.foldl(lambda a, r: a + r, x, initializer=tf.zeros([3])),
               tf.foldr(lambda a, r: a * 0.5 + r, x), tf.map_fn(lambda p: p[0] * p[1], (x, x + 1), dtype=tf.float32),
               tf.scan(lambda a, r: (a[0] + r, a[1] * r), x, initializer=(tf.zeros([3]), tf.ones([3])))[1], tf.scan(lambda a, r: a + r, x, reverse=True)]
    return _run(tf, results + tf.gradients([tf.reduce_sum(r) for r in results], x), x, s)


@both
def test_case(tf, np):
    x, s = _inputs(tf)
    y = tf.case([(tf.reduce_sum(x) > 100, lambda: tf.constant(1)), (tf.reduce_sum(x) > 5, lambda: tf.constant(2))], default=lambda: tf.constant(3))
    z = tf.switch_case(tf.constant(1), [lambda: tf.constant(10), lambda: tf.constant(20)])
    return _run(tf, [y, z], x, s)


@both
def test_tensor_array(tf, np):
    a = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    b = tf.TensorArray(tf.float32, size=0, dynamic_size=True).write(0, [1.0]).write(2, [2.0]).write(1, [3.0])
    c = tf.TensorArray(tf.float32, size=2, clear_after_read=False, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
    with tf.Session() as sess:
        return sess.run([a.read(1), a.stack(), a.gather([2, 0]), a.concat(), a.size(), b.stack(), c.read(1), c.concat()])


@both
def test_gradients_of_arrays_that_grow_later(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    y = tf.TensorArray(tf.float32, size=3, dynamic_size=True).split(x, [1, 1, 1]).write(3, [4.0]).concat()
    z = tf.TensorArray(tf.float32, size=0, dynamic_size=True, infer_shape=False).split(x, [2, 1]).write(4, [4.0, 5.0]).write(2, [6.0]).write(3, [7.0]).concat()
    u = tf.TensorArray(tf.float32, size=3, dynamic_size=True).unstack(x).write(3, 4.0).stack()
    with tf.Session() as sess:
        return sess.run([y, z, u, tf.gradients(y * y, x)[0], tf.gradients(z * z, x)[0], tf.gradients(u * u, x)[0]])


@both(graph=True)
def test_groups(tf, np):
    a, b = tf.constant(1), tf.constant(2.0)
    with tf.device("/cpu:0"):
        c = tf.constant(3)
    done = tf.group(a, b, c)
    both_ = tf.tuple([a, b])
    with tf.control_dependencies([done]):
        d = tf.identity(b)
    with tf.Session() as sess:
        return sess.run([d] + both_)


@both
def test_assertions(tf, np):
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.control_dependencies([tf.assert_positive(x), tf.assert_less(x, 10.0, message="too big"), tf.assert_rank(x, 1)]):
        y = tf.identity(x)
    messages = []
    with tf.Session() as sess:
        for value in ([1, -2], [1, 20]):
            try:
                sess.run(y, {x: value})
            except tf.errors.InvalidArgumentError as error:
                messages.append([line for line in error.message.split("\n") if "assertion failed" in line][0])
        return [sess.run(y, {x: [1, 2]}), messages]


@both(graph=True)
def test_case_lists_of_one(tf, np):
    p = tf.placeholder(tf.bool, [])
    q = tf.placeholder(tf.bool, [])
    x = tf.constant([1.0, 2.0])
    y = tf.case([(p, lambda: [x * 2.0]), (q, lambda: [x * 3.0])], default=lambda: [x])
    with tf.Session() as sess:
        return [sess.run(y, {p: a, q: b}) for a in (True, False) for b in (True, False)]


@both
def test_what_is_inside_is_neither_fetched_nor_fed(tf, np):
    x = tf.placeholder(tf.float32, [])
    inside = []

    def body(i, v):
        inside.append(v * 2.0)
        return i + 1, inside[-1]
    i, v = tf.while_loop(lambda i, v: i < 3, body, [tf.constant(0), x])
    chosen = tf.cond(x > 0.0, lambda: inside.append(x + 2.0) or inside[-1], lambda: x)
    answers = []
    with tf.Session() as sess:
        answers.append(sess.run([i, v, chosen, x * 1.0], {x: 1.0}))
        for t in inside + [t for op in tf.get_default_graph().get_operations() for t in op.outputs]:
            try:
                sess.run(t, {x: 1.0})
                answers.append((t.op.name, "fetched"))
            except ValueError as e:
                answers.append((t.op.name, str(e)))
        try:
            sess.run(v, {x: 1.0, inside[0]: 3.0})
        except ValueError as e:
            answers.append(str(e))
    return answers


@both
def test_lists_of_another_type_come_out_of_conditionals(tf, np):
    ops = tf.raw_ops

    def empty(dtype, shape):
        return ops.EmptyTensorList(element_shape=tf.constant(shape, tf.int32), max_num_elements=-1, element_dtype=dtype)

    def push(rows, row):
        length = ops.TensorListLength(input_handle=rows)
        rows = tf.cond(tf.equal(length, 0), lambda: empty(tf.float32, [3]), lambda: rows)
        return ops.TensorListPushBack(input_handle=rows, tensor=row)

    row = tf.constant([1.0, 2.0, 3.0])
    twice = push(push(empty(tf.int32, []), row), row)
    _, looped = tf.while_loop(lambda i, rows: i < 4, lambda i, rows: [i + 1, push(rows, row * i)], [tf.constant(0.0), empty(tf.int32, [])])
    stack = lambda rows: ops.TensorListStack(input_handle=rows, element_shape=tf.constant(-1, tf.int32), element_dtype=tf.float32)
    with tf.Session() as sess:
        return sess.run([stack(twice), stack(looped)])


@both
def test_stacks_of_one_name_are_different(tf, np):
    a, b = [tf.raw_ops.Stack(elem_type=tf.float32, stack_name="foo") for _ in range(2)]
    with tf.Session() as sess:
        names = [sess.run(x).ravel()[1] for x in (a, b, a)]
    return [len(set(names)), [x.split(b"_")[0] for x in names]]
