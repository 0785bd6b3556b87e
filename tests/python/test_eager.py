"""Eager execution: values, operators, errors, variables, control flow: the same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


def texts(values):
    return [str(v) for v in values] + [repr(v) for v in values]


@both
def test_texts(tf, np):
    values = [tf.constant(x) for x in (3.0, 7, True, [1, 2], [[1.0, 2.0], [3.0, 4.0]], "ab", ["a", "b"], 1 + 2j)]
    values += [tf.constant(2.5, tf.float64), tf.constant(1.5, tf.float16), tf.constant([], tf.int64), tf.zeros([0, 2])]
    return texts(values) + [v.device for v in values]


@both
def test_python_protocols(tf, np):
    a, b = tf.constant(3), tf.constant([1.5, 2.5])
    return [int(a), float(a), bool(a), len(b), [float(x) for x in b], [10, 20, 30, 40][a], list(range(a)),
            np.sin(b), np.asarray(b), "%.2f" % tf.constant(1.25), format(tf.constant(2.0), ".3f"), b.ndim,
            b.shape.as_list(), b.dtype.name, b.get_shape().as_list(), a.numpy(), tf.constant("x").numpy(), complex(a), a == a]


@both
def test_operators(tf, np):
    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0])
    i = tf.constant([5, 7])
    results = [x + y, x - 1, 2 - x, x * y, x / y, 1 / x, x // 2, x % 2, x ** 2, 2.0 ** x, -x, abs(-x), x < y, x >= 2, i / 2, i // 2,
               x[0], x[1:], x[::-1], x[..., tf.newaxis], tf.constant([[1, 2], [3, 4]])[:, 1], tf.constant([True]) & False,
               tf.constant([[1.0, 2.0]]) @ tf.constant([[3.0], [4.0]])]
    return [r.numpy() for r in results]


@both
def test_functions(tf, np):
    x = tf.reshape(tf.range(12, dtype=tf.float32), [3, 4])
    parts = tf.split(x, 2, axis=1)
    values, indices = tf.nn.top_k(x, 2)
    unique = tf.unique([1, 1, 2])
    mean, variance = tf.nn.moments(x, [0])
    return [r.numpy() for r in [
        tf.matmul(x, x, transpose_b=True), tf.reduce_sum(x, 1), tf.reduce_mean(x), tf.concat(parts, 0), tf.stack([x, x]),
        tf.transpose(x), values, indices, unique.y, unique.idx, mean, variance, tf.where(x > 5), tf.where(x > 5, x, -x),
        tf.one_hot([0, 2], 3), tf.cast(x, tf.int32), tf.nn.softmax(x), tf.nn.relu(x - 5), tf.argmax(x, 1), tf.gather(x, [2, 0]),
        tf.tile([[1, 2]], [2, 2]), tf.zeros_like(x), tf.fill([2], 7), tf.expand_dims(x, 0), tf.squeeze([[1]]), tf.shape(x),
        tf.size(x), tf.pad(x, [[1, 1], [0, 0]]), tf.linspace(0.0, 1.0, 5), tf.clip_by_value(x, 2, 4), tf.norm(x),
        tf.tensordot(x, x, [[1], [1]]), tf.string_join(["a", "b"]), tf.eye(2), tf.reverse(x, [0]), tf.cumsum(x)]]


@both
def test_constants_of_tensors(tf, np):
    a = tf.constant(2.0)
    return [tf.convert_to_tensor([a, 3.0]).numpy(), tf.stack([a, 1.0]).numpy(), tf.constant(a).numpy(),
            tf.convert_to_tensor(np.arange(3)).numpy(), tf.convert_to_tensor([[a, a], [1.0, a]]).numpy()]


def failing(program):
    return both(program, raises=True)


@functools.partial(both, raises=True, message=True)
def test_type_mismatch(tf, np):
    return tf.constant(1.0) + tf.constant(1)


@failing
def test_shape_mismatch(tf, np):
    return tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])


@failing
def test_matmul_mismatch(tf, np):
    return tf.matmul([[1.0]], [[1.0, 2.0], [3.0, 4.0]])


@functools.partial(both, raises=True, message=True)
def test_no_placeholder(tf, np):
    return tf.placeholder(tf.float32)


@functools.partial(both, raises=True, message=True)
def test_no_gradients(tf, np):
    return tf.gradients(tf.constant(1.0), tf.constant(1.0))


@functools.partial(both, raises=True, message=True)
def test_scalar_len(tf, np):
    return len(tf.constant(1))


@functools.partial(both, raises=True, message=True)
def test_truth_of_many(tf, np):
    return bool(tf.constant([1, 2]))


@functools.partial(both, raises=True, message=True)
def test_no_name(tf, np):
    return tf.constant(1).name


@failing
def test_float_for_int(tf, np):
    return tf.constant(1.5, tf.int32)


@failing
def test_bad_index(tf, np):
    return tf.gather([1, 2], [5])


@failing
def test_assertion(tf, np):
    tf.assert_equal(tf.constant(1), tf.constant(2))


@both
def test_variables(tf, np):
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
    out = [repr(v), v.name, w.name, v.numpy(), (v + 1).numpy(), (2 * v).numpy(), v[0].numpy(), v.read_value().numpy()]
    v.assign([3.0, 4.0])
    out.append(v.numpy())
    v.assign_add([1.0, 1.0])
    v.assign_sub([0.5, 0.5])
    out += [v.numpy(), tf.reduce_sum(v).numpy(), tf.matmul(w, w).numpy(), v.shape.as_list(), v.dtype.name, v.trainable]
    tf.assign(v, [0.0, 1.0])
    out.append(v.numpy())
    v.scatter_update(tf.IndexedSlices(tf.constant([9.0]), tf.constant([1])))
    out += [v.numpy(), len(tf.global_variables()), np.asarray(v), tf.nn.embedding_lookup(w, [1]).numpy()]
    return out


@both
def test_random(tf, np):
    tf.set_random_seed(42)
    a = [tf.random_uniform([2]).numpy(), tf.random_uniform([2]).numpy(), tf.random_normal([2], seed=1).numpy()]
    tf.set_random_seed(42)
    b = [tf.random_uniform([2]).numpy(), tf.truncated_normal([3]).numpy(), tf.random_shuffle([1, 2, 3, 4]).numpy()]
    return a + b + [tf.get_variable("g", [2, 2], initializer=tf.glorot_uniform_initializer(seed=3)).numpy()]


@both
def test_control_flow(tf, np):
    x = tf.constant(5)
    a = tf.cond(x > 3, lambda: x * 2, lambda: x)
    i, s = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [tf.constant(0), tf.constant(0)])
    b = tf.case([(x < 3, lambda: tf.constant(1)), (x > 4, lambda: tf.constant(2))], default=lambda: tf.constant(3))
    with tf.control_dependencies([x]), tf.name_scope("n"), tf.device("/cpu:0"):
        c = tf.identity(x)
    total = 0
    while x > 0:
        total += x
        x -= 1
    return [a.numpy(), i.numpy(), s.numpy(), b.numpy(), c.numpy(), total.numpy(), tf.group(a, b), tf.no_op(),
            tf.map_fn(lambda v: v * v, tf.constant([1, 2, 3])).numpy(),
            tf.scan(lambda p, v: p + v, tf.constant([1, 2, 3])).numpy(), tf.foldl(lambda p, v: p * v, tf.constant([1, 2, 3])).numpy()]


@both
def test_datasets(tf, np):
    d = tf.data.Dataset.from_tensor_slices((np.arange(6), np.arange(6) * 10.0)).map(lambda a, b: (a + 1, b)).batch(4)
    out = [(a.numpy(), b.numpy()) for a, b in d]
    scale = tf.constant(3)
    out.append([int(x) for x in tf.data.Dataset.range(5).map(lambda x: x * tf.cast(scale, tf.int64)).filter(lambda x: x > 3)])
    out.append([x["k"].numpy() for x in tf.data.Dataset.from_tensor_slices({"k": [1, 2]}).repeat(2)])
    out.append([x.numpy() for x in tf.data.Dataset.from_generator(lambda: iter([1, 2, 3]), tf.int32)])
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(2))
    out.append([int(iterator.get_next()), int(iterator.get_next())])
    out.append([x.numpy() for x in tf.data.Dataset.range(10).shuffle(10, seed=1).take(3)])
    return out


@both
def test_tables_queues_averages(tf, np):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    v = tf.Variable(1.0)
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([v])
    v.assign(2.0)
    average.apply([v])
    array = tf.TensorArray(tf.float32, 3)
    for i in range(3):
        array = array.write(i, float(i))
    rate = tf.train.exponential_decay(0.1, tf.Variable(10), 10, 0.5)
    return [table.lookup(tf.constant(["b", "z"])).numpy(), average.average(v).numpy(), array.stack().numpy(), rate().numpy()]


@both
def test_threads(tf, np):
    import threading
    found = [None] * 8

    def work(number):
        x = tf.constant(float(number))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        found[number] = tape.gradient(y, x).numpy()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
