"""Programs in the style of TensorFlow 2's guides: the same results in stock."""

import functools
import os
import tempfile

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_basics(tf, np):
    x = tf.constant([[1., 2., 3.], [4., 5., 6.]])
    return (x, x.shape, x.dtype.name, x + x, 5 * x, x @ tf.transpose(x), tf.concat([x, x, x], axis=0), tf.nn.softmax(x, axis=-1), tf.reduce_sum(x),
            tf.convert_to_tensor([1, 2, 3]), tf.reduce_sum([1, 2, 3]), str(x), repr(x), x.ndim, int(tf.size(x)), len(x), bool(tf.constant(True)))


@both
def test_tensors(tf, np):
    rank_4 = tf.zeros([3, 2, 4, 5])
    t = tf.constant([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
    m = tf.constant([[1, 2], [3, 4], [5, 6]], dtype=tf.float16)
    r3 = tf.reshape(tf.range(30), [3, 2, 5])
    return (str(rank_4.dtype), rank_4.ndim, str(rank_4.shape), rank_4.shape[0], rank_4.shape[-1], tf.size(rank_4).numpy(), tf.rank(rank_4), tf.shape(rank_4),
            t[0].numpy(), t[-1], t[:4], t[4:], t[2:7], t[::2], t[::-1], m[1, :].numpy(), m[:, 1].numpy(), m[1:, :], r3[:, :, 4], r3[..., tf.newaxis, 0],
            tf.reshape(r3, [-1]), tf.cast(tf.constant([2.2, 3.3], tf.float64), tf.uint8), tf.broadcast_to([1, 2, 3], [3, 3]), np.array(m), m.numpy().tolist())


@both
def test_operators_and_promotion(tf, np):
    a, b = tf.constant([[1, 2], [3, 4]]), tf.ones([2, 2], tf.int32)
    x = tf.constant([1.0, 2.0, 3.0])
    return (a + b, a * b, a @ b, a - 1, 1 - a, a // 2, a % 2, a / 2, a ** 2, -a, abs(-a), a == b, a != b, a > b, x * np.float32(2), np.ones(3, np.float32) + x,
            tf.multiply(x, 2), ~(a > b), (a > b) & (a < 4), (a > b) | (a < 4), divmod(7, 2), x / 2, 2 / x, x // 2, tf.math.add(x, 1),
            isinstance(np.ones(3, np.float32) * x, tf.Tensor))


@both
def test_strings(tf, np):
    s = tf.constant("Gray wolf")
    strings = tf.constant(["Gray wolf", "Quick brown fox", "Lazy dog"])
    return (s, strings, tf.strings.split(s, sep=" "), tf.strings.split(strings).to_list(), tf.strings.to_number(tf.strings.split(tf.constant("1 10 100"), " ")),
            tf.strings.bytes_split(tf.constant("Duck")), tf.io.decode_raw(tf.constant("Duck"), tf.uint8), tf.strings.unicode_decode(tf.constant("aé🦢"), "UTF-8"),
            tf.strings.join(["a", "b"], separator="-"), tf.strings.length(strings), tf.strings.upper(strings), tf.strings.substr(s, 2, 3),
            tf.strings.regex_replace(strings, "o", "0"), tf.strings.as_string([1.5, 2.0]), tf.strings.reduce_join(strings, separator=","),
            tf.strings.format("{} is {}", (s, tf.constant([1, 2]))), strings[0].numpy().decode())


@both
def test_ragged(tf, np):
    digits = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])
    words = tf.ragged.constant([["So", "long"], ["thanks", "for", "all", "the", "fish"]])
    lengths = tf.RaggedTensor.from_row_lengths([3, 1, 4, 1, 5, 9], [4, 0, 2])
    splits = tf.RaggedTensor.from_row_splits([3, 1, 4, 1, 5, 9], [0, 2, 2, 6])
    return (digits.to_list(), tf.add(digits, 3).to_list(), tf.reduce_mean(tf.cast(digits, tf.float32), axis=1)[0], tf.concat([digits, [[5, 3]] * 5], axis=1).to_list(),
            tf.tile(digits, [1, 2]).to_list(), tf.strings.substr(words, 0, 2).to_list(), tf.map_fn(tf.math.square, digits).to_list(), digits[0], digits[:, :2].to_list(),
            digits[:, -2:].to_list(), (digits + 3).to_list(), lengths.to_list(), splits.to_list(), digits.to_tensor(), digits.to_tensor(default_value=-1, shape=[None, 3]),
            str(digits.shape), digits.bounding_shape(), digits.row_lengths(), digits.values, digits.row_splits, digits.ragged_rank, digits.to_sparse().values,
            tf.RaggedTensor.from_tensor([[1, 0], [2, 3]], padding=0).to_list(), digits.nrows(), tf.ragged.stack([digits, digits]).shape[0])


@both
def test_sparse(tf, np):
    st = tf.sparse.SparseTensor(indices=[[0, 3], [2, 4]], values=[10, 20], dense_shape=[3, 10])
    other = tf.sparse.from_dense([[1, 0, 0, 8], [0, 0, 0, 0], [0, 0, 3, 0]])
    a = tf.sparse.SparseTensor([[0, 2], [3, 4]], [31, 2], [4, 10])
    b = tf.sparse.SparseTensor([[0, 2], [3, 0]], [56, 38], [4, 10])
    c = tf.sparse.SparseTensor([[0, 1], [1, 0], [1, 1]], [13, 15, 17], [2, 2])
    return (tf.sparse.to_dense(st), other.indices, other.values, tf.sparse.to_dense(tf.sparse.add(a, b)), tf.sparse.sparse_dense_matmul(c, tf.constant([[4], [6]])),
            tf.sparse.to_dense(tf.sparse.concat(axis=1, sp_inputs=[c, c])), tf.sparse.to_dense(tf.sparse.slice(a, [1, 0], [3, 6])),
            tf.sparse.to_dense(tf.sparse.reorder(st)), tf.sparse.reduce_sum(st), tf.sparse.reduce_sum(st, axis=1), str(st.shape), st.dtype.name,
            tf.sparse.to_dense(tf.sparse.map_values(tf.add, st, 5)), tf.sparse.to_dense(tf.sparse.transpose(st))[3])


@both
def test_variables(tf, np):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="mine")
    b = tf.Variable([False, True])
    a = tf.Variable([2.0, 3.0])
    a.assign([1, 2])
    c = tf.Variable(a)
    c.assign([5, 6])
    message = None
    try:
        a.assign([1.0, 2.0, 3.0])
    except Exception as error:
        message = type(error).__name__
    step = tf.Variable(1, trainable=False)
    return (v.shape, v.dtype.name, v.numpy(), v, b, a, c, message, c.assign_add([2, 3]).numpy(), c.assign_sub([7, 9]).numpy(), step.trainable, v.name, repr(a),
            tf.reshape(v, [1, 4]), tf.argmax(v, 1), v[0], v + 1, v @ v, [x.numpy() for x in v], step.assign_add(1), float(step), v.read_value(),
            tf.convert_to_tensor(v), np.array(v), isinstance(v, tf.Variable), v.assign(v * 2), v.sparse_read([0]), v.scatter_nd_add([[0, 1]], [10.0]))


@both
def test_assigning_slices(tf, np):
    v = tf.Variable(tf.zeros([3, 4]))
    v[1].assign(tf.ones([4]))
    v[:, 2].assign([7.0, 8.0, 9.0])
    v[0, 0].assign(5.0)
    v[2, 1:3].assign([1.0, 2.0])
    u = tf.Variable([1, 2, 3], shape=tf.TensorShape([None]))
    u.assign([4, 5])
    return v, u, str(u.shape)


@both
def test_autodiff(tf, np):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x ** 2
    w, b = tf.Variable([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], name="w"), tf.Variable(tf.zeros(2), name="b")
    z = tf.constant([[1., 2., 3.]])
    with tf.GradientTape(persistent=True) as tape2:
        out = z @ w + b
        loss = tf.reduce_mean(out ** 2)
    grads = tape2.gradient(loss, {"w": w, "b": b})
    x0, x1, x2 = tf.Variable(3.0), tf.Variable(3.0, trainable=False), tf.Variable(2.0) + 1.0
    x3 = tf.constant(3.0)
    with tf.GradientTape() as tape3:
        total = (x0 ** 2) + (x1 ** 2) + (x2 ** 2) + tf.square(x3)
    found = tape3.gradient(total, [x0, x1, x2, x3])
    x4 = tf.constant([1.0, 3.0])
    with tf.GradientTape(persistent=True) as tape4:
        tape4.watch(x4)
        p = x4 * x4
        q = p * p
    with tf.GradientTape(watch_accessed_variables=False) as tape5:
        tape5.watch(x1)
        s = tf.reduce_sum(tf.nn.softplus(x0 + x1))
    return (tape.gradient(y, x), grads, [v.name for v in tape2.watched_variables()], found, tape4.gradient(q, x4), tape4.gradient(p, x4),
            tape5.gradient(s, {"a": x0, "b": x1}), tape2.gradient(loss, [w, b], unconnected_gradients="zero"))


@both
def test_autodiff_more(tf, np):
    x = tf.Variable(2.0)
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            y = x * x * x
        dy = t1.gradient(y, x)
    d2 = t2.gradient(dy, x)
    v = tf.linspace(-1.0, 1.0, 5)
    with tf.GradientTape() as tape:
        tape.watch(v)
        s = tf.nn.sigmoid(v)
    jac = tape.jacobian(s, v)
    a = tf.reshape(tf.range(6, dtype=tf.float32), [3, 2])
    with tf.GradientTape() as tape6:
        tape6.watch(a)
        b = a ** 2 @ tf.constant([[1.0, 2.0], [3.0, 4.0]])
    bj = tape6.batch_jacobian(b, a)

    @tf.custom_gradient
    def clip(y):
        def backward(dy):
            return tf.clip_by_norm(dy, 0.5)
        return y, backward
    w = tf.Variable(2.0)
    with tf.GradientTape() as t:
        out = clip(w * w)
    u = tf.Variable(2.)
    with tf.GradientTape() as t3:
        if u > 1.0:
            r = u ** 2
        else:
            r = 2 * u
        with t3.stop_recording():
            r2 = r * 2
    i = tf.constant(10)
    with tf.GradientTape() as g:
        g.watch(x)
        f = tf.reduce_sum(tf.cast(i, tf.float32) * x)
    return d2, jac, bj, t.gradient(out, w), t3.gradient(r, u), r2, g.gradient(f, [x, i])


@both
def test_functions(tf, np):
    traces = []

    @tf.function
    def add(a, b):
        return a + b

    @tf.function
    def double(a):
        traces.append(str(a.dtype.name) + str(a.shape))
        return a + a
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        result = add(v, 1.0)
    outs = [double(tf.constant(1)), double(tf.constant(1.1)), double(tf.constant("a")), double(tf.constant([1, 2])), double(tf.constant(7))]
    concrete = double.get_concrete_function(tf.constant("a"))

    @tf.function
    def square(x):
        return tf.square(x)

    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def collatz(x):
        traces.append("collatz")
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)
    failure = None
    try:
        collatz(tf.constant([[1, 2], [3, 4]]))
    except Exception as error:
        failure = type(error).__name__
    return (add(tf.ones([2, 2]), tf.ones([2, 2])), tape.gradient(result, v), outs, traces, concrete(tf.constant("b")), square(3.0), collatz(tf.constant([1, 2])),
            collatz([3, 4, 5]), failure, concrete.structured_outputs.dtype.name, [str(x.shape) for x in concrete.inputs], double.experimental_get_tracing_count())


@both
def test_retracing(tf, np):
    traces = []

    @tf.function
    def f(x, flag=True, table=None):
        traces.append(1)
        return x if flag else -x
    for value in (1, 1, 2, 3.5, "a"):
        f(value)
    n = [len(traces)]
    f(tf.constant(1), False)
    f(tf.constant(2), False)
    f(tf.constant([1, 2]), flag=False)
    f(x=tf.constant([3, 4]), flag=False)
    n.append(len(traces))
    f(tf.constant(1), table={"a": tf.constant(1), "b": [1, 2]})
    f(tf.constant(5), table={"a": tf.constant(7), "b": [1, 2]})
    f(tf.constant(5), table={"a": tf.constant(7), "b": [1, 3]})
    n.append(len(traces))

    @tf.function(reduce_retracing=True)
    def g(x):
        traces.append(str(x.shape))
        return tf.reduce_sum(x)
    for size in (1, 2, 3, 4):
        g(tf.ones([size]))
    h = tf.function(lambda x: x * 2)
    h.get_concrete_function(tf.TensorSpec([None], tf.float32))
    h(tf.ones([3]))
    h(tf.ones([4]))
    return n, traces[n[-1]:], h.experimental_get_tracing_count(), np.asarray(f(np.ones(2)))


@both
def test_variables_in_functions(tf, np):
    class Count(tf.Module):
        def __init__(self):
            self.count = None

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)
    c = Count()
    first = [c(), c()]

    class Linear(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([x.shape[-1], 2]) * 3.0, name="w")
                self.b = tf.Variable(lambda: tf.zeros([2]))
            return x @ self.w + self.b
    layer = Linear()
    out = layer(tf.ones([1, 3]))
    external = tf.Variable(0)

    @tf.function
    def buggy(x):
        external.assign_add(x)
        tf.print("x is", x, output_stream="file:///dev/null")
    buggy(tf.constant(5))
    buggy(tf.constant(6))
    failure = None
    try:
        @tf.function
        def bad(x):
            return tf.Variable(1.0) + x
        bad(tf.constant(1.0))
    except ValueError as error:
        failure = str(error).splitlines()[-1][:90] if "in user code" in str(error) else str(error)[:90]
    return first, out, [v.shape for v in layer.trainable_variables], external, failure is not None


@both
def test_modules(tf, np):
    class Dense(tf.Module):
        def __init__(self, in_features, out_features, name=None):
            super().__init__(name=name)
            self.w = tf.Variable(tf.ones([in_features, out_features]), name="w")
            self.b = tf.Variable(tf.zeros([out_features]), name="b")

        def __call__(self, x):
            return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    class Sequential(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.layers = [Dense(3, 3), Dense(3, 2)]
            self.scale = tf.Variable(2.0, trainable=False)
            self.table = {"x": Dense(1, 1, name="inner")}

        @tf.Module.with_name_scope
        def __call__(self, x):
            self.made = tf.Variable(1.0, name="made")
            for layer in self.layers:
                x = layer(x)
            return x * self.scale
    m = Sequential(name="the_model")
    return (m(tf.constant([[2.0, 2.0, 2.0]])), m.name, len(m.trainable_variables), len(m.variables), [s.name for s in m.submodules], [v.name for v in m.trainable_variables],
            m.non_trainable_variables, m.name_scope.name)


@both
def test_training_loop(tf, np):
    rng = np.random.RandomState(0)
    x = tf.constant(rng.randn(100).astype("float32"))
    y = 3.0 * x + 2.0 + tf.constant(0.1 * rng.randn(100).astype("float32"))

    class Model(tf.Module):
        def __init__(self):
            self.w, self.b = tf.Variable(5.0), tf.Variable(0.0)

        def __call__(self, x):
            return self.w * x + self.b
    model, losses = Model(), []

    @tf.function
    def train(x, y, rate):
        with tf.GradientTape() as t:
            loss = tf.reduce_mean(tf.square(y - model(x)))
        dw, db = t.gradient(loss, [model.w, model.b])
        model.w.assign_sub(rate * dw)
        model.b.assign_sub(rate * db)
        return loss
    for _ in range(10):
        losses.append(train(x, y, 0.1))
    return losses, model.w, model.b


@both
def test_batched_training(tf, np):
    rng = np.random.RandomState(1)
    features, labels = rng.randn(64, 4).astype("float32"), rng.randint(0, 3, 64)
    ds = tf.data.Dataset.from_tensor_slices((features, labels)).batch(16).repeat(2)
    w = tf.Variable(tf.zeros([4, 3]))
    m = tf.Variable(tf.zeros([4, 3]))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            logits = x @ w
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        g = tape.gradient(loss, w)
        m.assign(0.9 * m + g)
        w.assign_sub(0.5 * m)
        return loss, tf.reduce_mean(tf.cast(tf.argmax(logits, 1) == tf.cast(y, tf.int64), tf.float32))
    return [step(x, y) for x, y in ds], w


@both
def test_data(tf, np):
    ds = tf.data.Dataset.from_tensor_slices([8, 3, 0, 8, 2, 1])
    it = iter(ds)
    pair = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]), tf.data.Dataset.range(2)))
    table = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [[1.0], [2.0]]})

    def count(stop):
        i = 0
        while i < stop:
            yield i
            i += 1
    counted = tf.data.Dataset.from_generator(count, args=[25], output_types=tf.int32, output_shapes=())
    signed = tf.data.Dataset.from_generator(lambda: iter([([1, 2], "x")]), output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.string)))
    return ([e.numpy() for e in ds], next(it), next(it), ds.reduce(0, lambda state, value: state + value), [tuple(e) for e in pair], list(table.as_numpy_iterator()),
            str(ds.element_spec), str(table.element_spec["b"]), list(counted.repeat().batch(10).take(3)), list(signed), len(ds), ds.cardinality(),
            list(ds.batch(4).as_numpy_iterator()), list(ds.batch(4, drop_remainder=True).as_numpy_iterator()), list(ds.window(3, drop_remainder=True).flat_map(
                lambda w: w.batch(3)).as_numpy_iterator()), list(ds.enumerate().as_numpy_iterator()), list(tf.data.Dataset.range(5).map(lambda x: x ** 2).prefetch(
                    tf.data.AUTOTUNE).cache().as_numpy_iterator()), list(tf.data.Dataset.range(3).concatenate(tf.data.Dataset.range(2)).as_numpy_iterator()))


@both
def test_data_padded_and_interleaved(tf, np):
    tf.random.set_seed(2)
    ds = tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    return (list(ds.padded_batch(2, padded_shapes=(None,)).as_numpy_iterator()), list(ds.padded_batch(4).as_numpy_iterator()),
            list(tf.data.Dataset.range(1, 4).interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2).as_numpy_iterator()),
            list(tf.data.Dataset.range(10).shard(3, 1).as_numpy_iterator()), list(tf.data.Dataset.range(10).filter(lambda x: x % 3 == 0).as_numpy_iterator()),
            list(tf.data.Dataset.range(6).batch(2).unbatch().as_numpy_iterator()), list(tf.data.Dataset.range(7).skip(2).take(3).as_numpy_iterator()),
            sorted(tf.data.Dataset.range(20).shuffle(5, seed=1).as_numpy_iterator()), list(tf.data.Dataset.range(7).batch(2).rebatch(3).as_numpy_iterator()),
            list(tf.data.Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x)).as_numpy_iterator()),
            list(tf.data.Dataset.range(9).take_while(lambda x: x < 4).as_numpy_iterator()), tf.data.Dataset.range(42).batch(42).get_single_element().shape[0],
            list(tf.data.Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique().as_numpy_iterator()), list(tf.data.Dataset.random(seed=4).take(2).as_numpy_iterator()))


@both
def test_records(tf, np):
    def feature(value):
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        if isinstance(value, float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(3):
                writer.write(tf.train.Example(features=tf.train.Features(feature={"n": feature(i), "x": feature(i / 2), "s": feature(b"row%d" % i)})).SerializeToString())
        description = {"n": tf.io.FixedLenFeature([], tf.int64, default_value=0), "x": tf.io.FixedLenFeature([], tf.float32), "s": tf.io.FixedLenFeature([], tf.string)}
        ds = tf.data.TFRecordDataset([path]).map(lambda record: tf.io.parse_single_example(record, description))
        text = os.path.join(folder, "a.txt")
        tf.io.write_file(text, "one\ntwo\n")
        return (list(ds.as_numpy_iterator()), list(tf.data.TextLineDataset(text).as_numpy_iterator()), tf.io.read_file(text), tf.io.gfile.exists(text),
                tf.io.gfile.listdir(folder), tf.io.serialize_tensor([1, 2]), tf.io.parse_tensor(tf.io.serialize_tensor([1, 2]), tf.int32))


@both
def test_checkpoints(tf, np):
    class Net(tf.Module):
        def __init__(self):
            self.w = tf.Variable([[1.0], [2.0]])
            self.layers = [tf.Variable(3.0), {"k": tf.Variable(4)}]
    with tempfile.TemporaryDirectory() as folder:
        net, step = Net(), tf.Variable(1)
        checkpoint = tf.train.Checkpoint(step=step, net=net)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        for _ in range(3):
            step.assign_add(1)
            net.w.assign_add([[1.0], [1.0]])
            saved = manager.save()
        other, other_step = Net(), tf.Variable(0)
        status = tf.train.Checkpoint(step=other_step, net=other).restore(manager.latest_checkpoint)
        status.assert_consumed()
        late = tf.train.Checkpoint(step=tf.Variable(0))
        late.restore(saved).expect_partial()
        late.net = Net()
        reader = tf.train.load_checkpoint(folder)
        return (other.w, other_step, other.layers[0], late.net.w, sorted(reader.get_variable_to_shape_map()), [os.path.basename(p) for p in manager.checkpoints],
                os.path.basename(tf.train.latest_checkpoint(folder)), sorted(name for name, _ in tf.train.list_variables(folder)),
                tf.train.load_variable(folder, "step/.ATTRIBUTES/VARIABLE_VALUE"))


@both
def test_saved_model(tf, np):
    class Adder(tf.Module):
        def __init__(self):
            self.v = tf.Variable(10.0)

        @tf.function(input_signature=[tf.TensorSpec(shape=[None], dtype=tf.float32)])
        def add(self, x):
            return {"sum": x + self.v, "twice": x * 2}

        @tf.function
        def any(self, x):
            self.v.assign_add(1.0)
            return x * self.v
    with tempfile.TemporaryDirectory() as folder:
        module = Adder()
        module.any(tf.constant(2.0))
        tf.saved_model.save(module, folder, signatures=module.add)
        loaded = tf.saved_model.load(folder)
        served = loaded.signatures["serving_default"]
        return (sorted(loaded.add([1.0, 2.0]).items()), loaded.any(tf.constant(3.0)), loaded.v, sorted(served(x=tf.constant([5.0])).items()), list(loaded.signatures), str(served.structured_outputs["sum"].shape),
                tf.saved_model.contains_saved_model(folder))


@both
def test_random(tf, np):
    tf.random.set_seed(5)
    a = [tf.random.uniform([3]), tf.random.normal([2, 2], seed=1), tf.random.uniform([4], maxval=10, dtype=tf.int32), tf.random.shuffle(tf.range(6), seed=3),
         tf.random.truncated_normal([3]), tf.random.categorical([[0.1, 0.6, 0.3]], 4), tf.random.gamma([2], 1.5), tf.random.poisson([2], 3.0)]
    tf.random.set_seed(5)
    b = tf.random.uniform([3])

    @tf.function
    def f():
        return tf.random.uniform([2]), tf.random.normal([2], seed=7)
    tf.random.set_seed(1)
    c = [f(), f()]
    g1 = tf.random.Generator.from_seed(1)
    g2 = tf.random.Generator.from_seed(3, alg="philox")
    g3 = g1.split(2)
    stateless = [tf.random.stateless_uniform([2], seed=[1, 2]), tf.random.stateless_normal([2], seed=(3, 4)), tf.random.stateless_uniform([2], [5, 6], 0, 9, tf.int32),
                 tf.random.stateless_truncated_normal([2], [7, 8]), tf.random.stateless_categorical([[0.5, 0.5]], 3, seed=[1, 1])]
    return (a, b, c, [g1.normal([2, 3]), g1.uniform([2]), g1.uniform([3], 0, 10, tf.int32), g2.normal([2]), g2.truncated_normal([2]), g3[0].normal([2]), g1.state, g2.key,
                      g1.make_seeds(2), g1.binomial([2], 5.0, 0.5), g1.uniform_full_int([2])], stateless)


@both
def test_control_flow_functions(tf, np):
    i, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t + i), (tf.constant(0), tf.constant(0)))
    return (i, total, tf.cond(tf.constant(1) > 0, lambda: tf.constant("yes"), lambda: tf.constant("no")), tf.case([(tf.constant(False), lambda: 1), (tf.constant(True), lambda: 2)], default=lambda: 3),
            tf.switch_case(tf.constant(1), [lambda: tf.constant(5), lambda: tf.constant(6)]), tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])),
            tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3, 4])), tf.foldl(lambda a, x: a * x, tf.constant([1, 2, 3, 4])), tf.vectorized_map(lambda x: x * 2, tf.constant([1, 2])),
            tf.where([True, False], [1, 2], [3, 4]), tf.where(tf.constant([True, False, True])), tf.gather([[1, 2], [3, 4]], [1], axis=1),
            tf.boolean_mask([1, 2, 3], [True, False, True]), tf.one_hot([0, 2], 3), tf.unique([1, 1, 2]).y, tf.sort([3, 1, 2], direction="DESCENDING"),
            tf.math.top_k([1, 5, 3], k=2).indices, tf.clip_by_value([1, 5, 9], 2, 6), tf.linalg.norm([3.0, 4.0]), tf.einsum("ij,jk->ik", tf.ones([2, 3]), tf.ones([3, 2])))


@both
def test_scatter_and_gather(tf, np):
    t = tf.constant([[1, 2], [3, 4], [5, 6]])
    return (tf.gather_nd(t, [[0, 1], [2, 0]]), tf.tensor_scatter_nd_update(t, [[0, 0]], [9]), tf.tensor_scatter_nd_add(t, [[1]], [[10, 10]]), tf.scatter_nd([[1], [3]], [9, 8], [5]),
            tf.slice(t, [1, 0], [2, 1]), tf.strided_slice(t, [0], [3], [2]), tf.stack([t, t], axis=1), tf.unstack(t, axis=1), tf.split(t, 3), tf.pad(t, [[1, 0], [0, 1]]), tf.tile(t, [1, 2]),
            tf.reverse(t, [0]), tf.roll(t, 1, 0), tf.expand_dims(t, 0), tf.squeeze(tf.expand_dims(t, 0)), tf.repeat(t, 2, axis=0), tf.meshgrid([1, 2], [3, 4]), tf.range(3.0, 9.0, 2.0),
            tf.linspace(0.0, 1.0, 3), tf.eye(2), tf.fill([2], 7), tf.zeros_like(t), tf.ones_like(t, dtype=tf.float32), tf.argsort([3, 1, 2]), tf.searchsorted([1, 3, 5], [2, 5]),
            tf.sequence_mask([1, 3]), tf.math.segment_sum([1, 2, 3], [0, 0, 1]), tf.math.cumsum([1, 2, 3]), tf.math.bincount([1, 1, 3]), tf.transpose(t, perm=[1, 0]))


@both
def test_nest_and_specs(tf, np):
    structure = {"b": [1, (2, 3)], "a": np.zeros(2)}
    ragged = tf.RaggedTensorSpec([None, None], tf.int32)
    spec = tf.TensorSpec([None, 3], tf.float32, name="x")
    return (tf.nest.flatten(structure), tf.nest.map_structure(lambda x: x * 2, [1, (2, 3)]), tf.nest.is_nested([1]), tf.nest.pack_sequence_as([0, (0, 0)], [1, 2, 3]), repr(spec), str(spec.shape),
            spec.is_compatible_with(tf.ones([2, 3])), tf.TensorSpec.from_tensor(tf.ones([2])) == tf.TensorSpec([2], tf.float32), repr(ragged), tf.type_spec_from_value(tf.constant(1)).dtype.name,
            tf.SparseTensorSpec([None, 2], tf.int32).dtype.name, tf.TensorShape([1, None]).as_list(), tf.TensorShape([1, 2]) + [3], list(tf.TensorShape([4, 5])), tf.TensorShape(None).rank,
            tf.TensorShape([2, 3])[1:], tf.TensorShape([2, None]).is_fully_defined(), repr(tf.TensorShape([None, 2])), tf.TensorShape([2, 3]) == (2, 3))


@both
def test_image_and_signal(tf, np):
    image = tf.reshape(tf.range(48, dtype=tf.float32), [4, 4, 3]) / 48
    return (tf.image.resize(image, [2, 2]), tf.image.flip_left_right(image)[0, 0], tf.image.rgb_to_grayscale(image)[..., 0], tf.image.adjust_brightness(image, 0.1)[0, 0],
            tf.image.central_crop(image, 0.5), tf.image.convert_image_dtype(image, tf.uint8)[0], tf.image.per_image_standardization(image)[0, 0], tf.image.resize_with_pad(image, 6, 3).shape,
            tf.image.random_crop(image, [4, 4, 3]).shape,
            tf.signal.stft(tf.sin(tf.range(64, dtype=tf.float32)), 16, 8).shape, tf.abs(tf.signal.rfft(tf.ones([4]))), tf.image.ssim(image, image, 1.0, filter_size=3))


@both
def test_layers_of_nn(tf, np):
    x = tf.reshape(tf.range(32, dtype=tf.float32), [1, 4, 4, 2])
    k = tf.ones([2, 2, 2, 3])
    return (tf.nn.conv2d(x, k, strides=1, padding="SAME"), tf.nn.max_pool2d(x, 2, 2, "VALID"), tf.nn.avg_pool(x, 2, 2, "SAME"), tf.nn.depthwise_conv2d(x, tf.ones([2, 2, 2, 1]), [1, 1, 1, 1], "VALID"),
            tf.nn.gelu([1.0, -1.0]), tf.nn.gelu([1.0], approximate=True), tf.nn.leaky_relu([-1.0]), tf.nn.swish([1.0]), tf.nn.batch_normalization(tf.constant([1.0, 2.0]), 1.0, 2.0, 0.5, 2.0, 1e-3),
            tf.nn.moments(x, [0, 1, 2]), tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[0.3]), tf.nn.softmax_cross_entropy_with_logits(labels=[[0.0, 1.0]], logits=[[1.0, 2.0]]),
            tf.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), [1, 0]), tf.nn.l2_normalize([3.0, 4.0]), tf.nn.conv2d_transpose(x, tf.ones([2, 2, 1, 2]), [1, 8, 8, 1], 2)[0, 0, :, 0],
            tf.nn.conv1d(tf.ones([1, 5, 2]), tf.ones([3, 2, 1]), 1, "VALID"), tf.nn.pool(x, [2, 2], "MAX"), tf.nn.silu([2.0]), 1)


@both
def test_lookup(tf, np):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1)
    vocabulary = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["x", "y"], tf.constant([0, 1], tf.int64)), 3)
    mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    mutable.insert(["k"], [5])

    @tf.function
    def f(keys):
        return table.lookup(keys) * 2
    return table.lookup(tf.constant(["b", "z"])), f(tf.constant(["a"])), vocabulary.lookup(tf.constant(["y", "q"])), mutable.lookup(tf.constant(["k", "n"])), mutable.size(), table.size()


@both
def test_debugging_and_errors(tf, np):
    def kind(call):
        try:
            call()
        except Exception as error:
            return type(error).__name__
    x = tf.constant([1.0, 2.0])
    return (kind(lambda: tf.debugging.assert_equal(x, [1.0, 3.0])), kind(lambda: tf.matmul(x, x)), kind(lambda: tf.constant([1, 2]) + tf.constant([1, 2, 3])),
            kind(lambda: tf.constant(1) + tf.constant(1.0)), kind(lambda: tf.debugging.check_numerics(x / 0.0, "bad")), kind(lambda: tf.ensure_shape(x, [3])), kind(lambda: tf.reshape(x, [3])),
            kind(lambda: tf.constant([[1, 2], [3]])), kind(lambda: tf.zeros([2])[5]), kind(lambda: tf.gather([1, 2], 5)), tf.debugging.assert_positive(x) is None,
            kind(lambda: bool(x)), kind(lambda: {tf.Variable(1).ref(): 1}), kind(lambda: tf.Variable(1).assign(1.5)))


@both
def test_config_and_devices(tf, np):
    with tf.device("CPU:0"):
        a = tf.constant([1.0])
    return (a.device.endswith("CPU:0"), len(tf.config.list_physical_devices("CPU")), tf.config.list_logical_devices("CPU")[0].name, tf.executing_eagerly(), tf.test.is_built_with_cuda() in (True, False),
            tf.config.functions_run_eagerly(), tf.dtypes.as_dtype("float32").size, tf.float16.max, tf.is_tensor(a), tf.is_tensor(np.ones(1)), tf.get_static_value(tf.constant(3)), tf.constant(2).dtype is tf.int32)


@both
def test_forward_mode(tf, np):
    x = tf.constant([[2.0, 3.0], [1.0, 4.0]])
    with tf.autodiff.ForwardAccumulator(primals=x, tangents=tf.ones([2, 2])) as acc:
        y = tf.reduce_sum(tf.tanh(x) ** 2)
    return acc.jvp(y)


@both
def test_numpy_iteration_and_protocols(tf, np):
    x = tf.constant([[1, 2], [3, 4]])
    return ([row.numpy() for row in x], np.sum(x), np.add(x, 1), x.numpy().T, float(tf.constant(1.5)), int(tf.constant(3)), tf.constant(3) + 4, 4 + tf.constant(3), list(range(tf.constant(3))),
            [10, 20, 30][tf.constant(1)], "%d" % tf.constant(5), f"{tf.constant(2.5)}", hash(x.ref()) == hash(x.ref()), x.ref().deref() is x, x.ref() in {x.ref(): 1},
            np.asarray(x).dtype.name, x.__array__().shape, tf.Variable(3) + 1, memoryview(x.numpy()).shape)
