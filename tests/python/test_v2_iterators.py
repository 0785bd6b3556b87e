"""tf.experimental.Optional, iterators as arguments of functions, and options of datasets, as in stock's TensorFlow 2."""

from both import both


@both(v2=True)
def test_optionals(tf, np):
    full = tf.experimental.Optional.from_value({"a": tf.constant([1, 2]), "b": (tf.constant("x"), tf.ragged.constant([[1.0], []]))})
    empty = tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32))
    value = full.get_value()
    return [bool(full.has_value()), bool(empty.has_value()), value["a"], value["b"][0], value["b"][1].to_list(), repr(full.element_spec), repr(empty.element_spec),
            isinstance(full, tf.experimental.Optional), isinstance(full, tf.__internal__.CompositeTensor), tf.is_tensor(full)]


@both(v2=True, raises=True)
def test_value_of_an_empty_optional(tf, np):
    tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32)).get_value()


@both(v2=True)
def test_iterators_in_functions(tf, np):
    traces = []

    @tf.function
    def following(iterator):
        traces.append(1)
        return tf.experimental.Optional.from_value(iterator.get_next() * 2)

    @tf.function
    def maybe(iterator):
        return iterator.get_next_as_optional()

    dataset = tf.data.Dataset.range(3)
    found = []
    for _ in range(2):
        iterator = iter(dataset)
        found += [int(following(iterator).get_value()) for _ in range(3)] + [bool(maybe(iterator).has_value())]
    return found, len(traces), isinstance(iterator, tf.data.Iterator), repr(iterator.element_spec)


@both(v2=True, raises=True)
def test_after_the_end(tf, np):
    iterator = iter(tf.data.Dataset.range(1))
    next(iterator)
    tf.function(lambda it: it.get_next())(iterator)


@both(v2=True)
def test_composites_through_functions(tf, np):
    @tf.function
    def swap(ragged, sparse):
        return {"s": sparse, "r": ragged.with_values(ragged.values + 1)}

    ragged, sparse = tf.ragged.constant([[1], [2, 3]]), tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    answer = swap(ragged, sparse)
    signed = tf.function(lambda r: r.values, input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    return answer["r"].to_list(), answer["s"].values, answer["s"].dense_shape, signed(ragged)


@both(v2=True)
def test_options(tf, np):
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 3
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    more = tf.data.Options()
    more.deterministic = True
    dataset = tf.data.Dataset.range(3).with_options(options).batch(2).with_options(more)
    found = dataset.options()
    return [found.deterministic, found.threading.private_threadpool_size, found.experimental_distribute.auto_shard_policy.name,
            found.experimental_optimization.apply_default_optimizations, options == options.merge(tf.data.Options()), options == more]


@both(v2=True, raises=True)
def test_no_such_option(tf, np):
    tf.data.Options().no_such_option = 1


@both(v2=True)
def test_sizes(tf, np):
    dataset = tf.data.Dataset.range(10)
    generated = tf.data.Dataset.from_generator(lambda: iter([(1, [2.0]), (3, [4.0, 5.0])]), output_signature=(
        tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)))
    return [len(dataset.batch(3)), int(dataset.repeat().cardinality()), int(dataset.filter(lambda x: x > 3).cardinality()), bool(dataset),
            [x.tolist() for x in dataset.batch(4).rebatch(3).as_numpy_iterator()], [x.tolist() for x in dataset.batch(4).rebatch([3, 1]).as_numpy_iterator()],
            list(generated.as_numpy_iterator()), repr(generated.element_spec)]


@both(v2=True, raises=True)
def test_unknown_size(tf, np):
    len(tf.data.Dataset.range(10).filter(lambda x: x > 3))


@both(v2=True, raises=True)
def test_infinite_size(tf, np):
    len(tf.data.Dataset.range(10).repeat())


@both(v2=True)
def test_slice_updates(tf, np):
    from importlib import import_module
    name = "tensorflow.compiler.tf2xla.python.xla"
    update = (import_module(name) if tf.__name__ == "tensorflow" else import_module("runnel.ops.xla_ops")).dynamic_update_slice
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    return [update(x, [[-1.0, -2.0]], [1, 1]), tf.function(lambda s: update(tf.constant(x), tf.ones([2, 2]), s))(tf.constant([0, 2]))]


@both(v2=True)
def test_protocol(tf, np):
    class Mine:
        def __tf_tensor__(self, dtype=None, name=None):
            return tf.constant([1, 2], dtype or tf.int32)

    return tf.add(Mine(), 1), tf.convert_to_tensor(Mine(), tf.float32), tf.stack([Mine(), Mine()])


@both(v2=True)
def test_random_numbers_of_iterators(tf, np):
    tf.random.set_seed(1)
    inner = tf.function(lambda x: x + tf.random.uniform([], maxval=100, dtype=tf.int64))
    dataset = tf.data.Dataset.range(2).map(lambda _: tf.random.shuffle(tf.range(6)))
    called = tf.data.Dataset.range(2).flat_map(lambda i: tf.data.Dataset.range(2).map(lambda j: inner(i + j)))
    first, second = iter(dataset), iter(dataset)
    both_at_once = [next(first), next(second), next(first), next(second)]
    return [[list(source.repeat(2)) for source in (dataset, called, dataset)], both_at_once, [int(x) for _ in range(2) for x in dataset.map(lambda x: x[0]).prefetch(1)],
            [int(x) for _ in range(2) for x in tf.data.Dataset.range(4).shuffle(4, seed=3)]]


@both(v2=True)
def test_arrays_written_again(tf, np):
    @tf.function
    def last(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows, results = tf.TensorArray(tf.float32, 3).unstack(x), tf.TensorArray(tf.float32, 1, element_shape=[2])

            def body(i, results, state):
                state = tf.tanh(rows.read(i) + state * x[0])
                return i + 1, results.write(0, state), state
            _, results, _ = tf.while_loop(lambda i, *_: i < 3, body, (0, results, tf.zeros([2])))
            y = tf.reduce_sum(results.stack() ** 2)
        return y, tape.gradient(y, x), results.size(), rows.gather([2, 0])

    @tf.function
    def grown(n):
        array = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, [i, i * i])
        return array.stack(), array.concat(), array.scatter([1], [[9, 9]]).read(1), tf.TensorArray(tf.int32, 2).split(tf.range(5), [2, 3]).concat()

    return last(tf.constant([[1.0, 2.0], [0.3, 0.4], [-0.5, 0.6]])), grown(tf.constant(3))
