"""What Keras 3 uses of TensorFlow 2."""

import tempfile

from both import both


@both(v2=True)
def test_branches_with_indices_of_two_types(tf, np):
    def slices(kind):
        return tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 2], kind))

    @tf.function
    def f(x):
        made = tf.cond(x > 0, lambda: slices(tf.int32), lambda: slices(tf.int64))
        return made.values, made.indices

    return f(tf.constant(1.0)), f(tf.constant(-1.0))


@both(v2=True)
def test_recomputed_gradients_with_keywords(tf, np):
    @tf.recompute_grad
    def f(x, scale=1.0):
        return x * x * scale

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(x, scale=2.0)
    return y, tape.gradient(y, x)


@both(v2=True)
def test_products_of_another_type(tf, np):
    a, b = tf.constant([[100, -3], [7, 5]], tf.int8), tf.constant([[50, 2], [-128, 9]], tf.int8)
    three = tf.stack([a, b])
    return [tf.matmul(a, b, output_type=tf.int32), tf.matmul(a, b, transpose_b=True, output_type=tf.int32), tf.matmul(three, three, output_type=tf.int32),
            tf.matmul(tf.cast(a, tf.float32), tf.cast(b, tf.float32), output_type=tf.float32)]


@both(v2=True)
def test_order_of_shuffled_elements(tf, np):
    orders = []
    for make in (lambda d: d.map(lambda x: x + 0).batch(4), lambda d: d.batch(4).repeat(2), lambda d: d.repeat(2).map(lambda x: x)):
        dataset = make(tf.data.Dataset.range(8).shuffle(8, seed=3))
        orders += [[row.tolist() for row in dataset.as_numpy_iterator()] for _ in range(3)]
        orders.append(int(dataset.cardinality()))
    return orders


@both(v2=True)
def test_names_of_nested_arguments(tf, np):
    spec = tf.TensorSpec([], tf.float32)

    def rows(function, *args, **kwargs):
        made = tf.function(function).get_concrete_function(*args, **kwargs)
        return [str(made.structured_input_signature), [x.name for x in made.inputs]]

    return [rows(lambda x, y: x, [spec, spec], spec), rows(lambda x, y: x, {"a": spec, "b": [spec, spec]}, (spec,)), rows(lambda x, *rest: x, spec, spec, spec),
            rows(lambda x, **rest: x, spec, k=[spec, spec]), rows(lambda x: x, [spec, tf.TensorSpec([], tf.float32, "mine")])]


@both(v2=True, raises=True, message=True)
def test_signature_of_too_few_arguments(tf, np):
    tf.function(lambda x, y: x, input_signature=[tf.TensorSpec([], tf.float32)])


@both(v2=True, raises=True, message=True)
def test_signature_of_too_many_arguments(tf, np):
    tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.float32)] * 2)


@both(v2=True, raises=True, message=True)
def test_signature_and_keywords(tf, np):
    tf.function(lambda x, *, k: x, input_signature=[tf.TensorSpec([], tf.float32)])


@both(v2=True, raises=True, message=True)
def test_restored_function_without_traces(tf, np):
    module, folder = tf.Module(), tempfile.mkdtemp()
    module.f = tf.function(lambda x: x + x)
    tf.saved_model.save(module, folder)
    tf.saved_model.load(folder).f(1.0)


@both(v2=True)
def test_signatures_that_are_saved_by_default(tf, np):
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(1.0)
            self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [5]), -1)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def change(self, value):
            self.v.assign(value)

    class Named(Counter):
        @property
        def _default_save_signature(self):
            return tf.function(lambda inputs: {"y": inputs[0] + inputs[1] * self.v}, input_signature=[[tf.TensorSpec([2], tf.float32)] * 2])

    results = []
    for made in (Counter(), Named()):
        folder = tempfile.mkdtemp()
        tf.saved_model.save(made, folder, options=tf.saved_model.SaveOptions(function_aliases={"other": made.change}))
        loaded = tf.saved_model.load(folder, options=tf.saved_model.LoadOptions(experimental_load_function_aliases=True))
        loaded.function_aliases["other"](tf.constant(4.0))
        results.append([sorted(loaded.signatures), loaded.v, isinstance(made.table, tf.saved_model.experimental.TrackableResource)])
        for function in loaded.signatures.values():
            results.append([sorted(function.structured_input_signature[1]), function(inputs=tf.constant([1.0, 2.0]), inputs_1=tf.constant([3.0, 4.0]))["y"],
                            [v.shape.as_list() for v in function.trainable_variables]])
    return results


@both(v2=True)
def test_objects_that_stand_for_variables(tf, np):
    class Wrapped(tf.__internal__.tracking.Trackable):
        _should_act_as_resource_variable = True

        def __init__(self, value):
            self.value = tf.Variable(value)

        handle = property(lambda self: self.value.handle)
        _shared_name = property(lambda self: self.value._shared_name)

        def _serialize_to_tensors(self):
            return self.value._serialize_to_tensors()

        def _restore_from_tensors(self, restored_tensors):
            return self.value._restore_from_tensors(restored_tensors)

        def _copy_trackable_to_cpu(self, object_map):
            self.value._copy_trackable_to_cpu(object_map)
            object_map[self] = tf.Variable(object_map[self.value])

        def _export_to_saved_model_graph(self, object_map, tensor_map, options, **kwargs):
            resources = self.value._export_to_saved_model_graph(object_map, tensor_map, options, **kwargs)
            object_map[self] = tf.Variable(object_map[self.value])
            return resources

        def _write_object_proto(self, proto, options):
            return self.value._write_object_proto(proto, options)

    module, folder = tf.Module(), tempfile.mkdtemp()
    module.w = Wrapped([1.0, 2.0])
    module.f = tf.function(lambda x: x * module.w.value, input_signature=[tf.TensorSpec([2], tf.float32)])
    tf.saved_model.save(module, folder)
    prefix = tf.train.Checkpoint(module=module).write(folder + "/checkpoint")
    other = tf.Module()
    other.w = Wrapped([0.0, 0.0])
    tf.train.Checkpoint(module=other).restore(prefix)
    loaded = tf.saved_model.load(folder)
    return [loaded.f(tf.constant([3.0, 4.0])), other.w.value, sorted(name for name, _ in tf.train.list_variables(prefix))]


@both(v2=True)
def test_loops_keep_their_structure(tf, np):
    return [tf.while_loop(lambda x: x < 5, lambda x: [x + 1], [tf.constant(0)]), tf.while_loop(lambda d: d["a"] < 5, lambda d: [{"a": d["a"] + 2}], [{"a": tf.constant(0)}]),
            tf.map_fn(lambda x: tf.cast(x * 2, tf.int64), tf.constant([1, 2]), fn_output_signature=tf.TensorSpec([], tf.int64))]


@both(v2=True)
def test_types_of_eight_bits(tf, np):
    results, x = [], tf.constant([1.0, 0.3, -500.0, 1e-3, 300.0])
    for name in ("float8_e4m3fn", "float8_e5m2"):
        kind = tf.as_dtype(name)
        y = tf.cast(x, kind)
        v = tf.Variable(y)
        v.assign(tf.cast(x * 2, kind))
        results += [str(y.dtype), kind.size, kind.is_floating, tf.cast(y, tf.float32), tf.cast(v, tf.float16), tf.cast(tf.reshape(y, [5, 1]), tf.float32), float(kind.max),
                    tf.cast(tf.convert_to_tensor(y.numpy()), tf.float32)]
    for name in ("int4", "uint4"):
        kind = tf.as_dtype(name)
        results += [int(kind.max), kind.is_integer, kind.is_unsigned, tf.cast(tf.cast(tf.constant([1, 7, 3]), kind), tf.int32)]
    return results


@both(v2=True)
def test_sparse_and_ragged(tf, np):
    sparse = tf.sparse.SparseTensor([[0, 1], [2, 0]], [4.0, 6.0], [3, 2])

    with tf.Graph().as_default() as graph:
        shapes = [tf.compat.v1.sparse_placeholder(tf.float32, shape=(None, 3), name="named").shape.as_list(), [op.name for op in graph.get_operations()]]
    ids = tf.ragged.constant([[0, 2], [], [1]])
    return [(sparse / 2).values, (sparse * tf.constant([[1.0, 3.0]])).values, shapes, tf.nn.embedding_lookup(tf.constant([[1.0], [2.0], [3.0]]), ids).to_list(),
            tf.math.bincount(tf.constant([[1.0, 0.0, 1.0], [2.0, 2.0, 0.0]]), minlength=3, axis=-1)]


@both(v2=True)
def test_checkpoints_with_a_root(tf, np):
    def made(value):
        module = tf.Module()
        module.v = tf.Variable(value)
        return module
    first, second, folder = made(1.0), made(2.0), tempfile.mkdtemp()
    path = tf.train.Checkpoint(first, other=second).save(folder + "/ckpt")
    third, fourth = made(0.0), made(0.0)
    tf.train.Checkpoint(third, other=fourth).restore(path)
    written = tf.train.Checkpoint(fourth).write(folder + "/alone")
    tf.train.Checkpoint(first).read(written)
    return [third.v, fourth.v, first.v, [name for name, _ in tf.train.list_variables(path)]]


@both(v2=True)
def test_rows_of_sparse_and_ragged_tensors(tf, np):
    ragged = tf.ragged.constant([[1, 2], [3], []])
    deep = tf.ragged.constant([[[1, 2], [3]], [[4, 5]]])
    sparse = tf.sparse.from_dense([[[1.0, 0], [2, 3]], [[0, 4], [5, 0]]])
    ints = tf.RaggedTensorSpec([None], tf.int32)

    @tf.function
    def traced(sparse, ragged):
        return tf.sparse.to_dense(tf.map_fn(lambda x: x, sparse)), tf.map_fn(lambda x: x * 2, ragged).to_tensor()

    return [tf.map_fn(tf.reduce_sum, ragged, fn_output_signature=tf.int32), tf.map_fn(lambda x: x * 2, ragged).to_list(),
            tf.map_fn(tf.range, tf.constant([1, 3, 0]), fn_output_signature=ints).to_list(), tf.map_fn(lambda x: x + 1, deep).to_list(),
            tf.map_fn(lambda x: tf.reduce_sum(x, axis=1), deep, fn_output_signature=ints).to_list(),
            tf.map_fn(lambda x: tf.sparse.sparse_dense_matmul(x[0], x[1]), (sparse, tf.ones([2, 2, 2])), fn_output_signature=tf.float32),
            tf.sparse.sparse_dense_matmul(tf.ones([3, 2]), tf.sparse.from_dense([[1.0, 0], [2, 3]])), traced(sparse, ragged)]


@both(v2=True)
def test_shapes_of_ragged_tensors(tf, np):
    ragged = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    shape = tf.shape(ragged)
    try:
        shape[1]
    except ValueError as error:
        mistake = str(error)
    return shape[0], shape[2], shape.rank, shape.is_uniform(1), mistake, tf.ones_like(ragged).to_list(), tf.zeros_like(ragged).to_list()


@both(v2=True)
def test_branches_keep_their_structure(tf, np):
    seen = []

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 3])])
    def f(x):
        one = tf.cond(tf.reduce_sum(x.values) > 0, lambda: [x.values], lambda: [x.values * 2])
        whole = tf.cond(tf.reduce_sum(x.values) > 0, lambda: x, lambda: x)
        seen.append((type(one).__name__, len(one), whole.shape.as_list()))
        return one[0]

    return f(tf.sparse.from_dense([[1.0, 0, 2]])), seen


@both(v2=True)
def test_spectra_of_known_size(tf, np):
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def f(x):
        y = tf.signal.stft(x, 16, 4, 16)
        seen.extend([y.shape.as_list(), tf.signal.inverse_stft(y, 16, 4, 16).shape.as_list()])
        return tf.abs(y)

    return tf.round(f(tf.reshape(tf.range(64.0), [2, 32])) * 100), seen


@both(v2=True)
def test_small_cases(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/words.txt"
        with open(path, "w") as file:
            file.write("a\nb\nc\n")
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, value_index_offset=2), -1)
        found = table.lookup(tf.constant(["a", "c", "x"]))
    return [found, tf.linspace(0.0, 10.0, 0), tf.linspace(0.0, 10.0, 1), tf.linspace(0.0, 10.0, tf.constant(3)),
            tf.linalg.diag(tf.constant([True, False])), tf.linalg.diag_part(tf.constant([[True, False], [False, True]]), k=1)]


@both(v2=True)
def test_volumes(tf, np):
    draw = np.random.RandomState(0)
    x, w = tf.constant(draw.rand(1, 5, 6, 5, 4), tf.float32), tf.constant(draw.rand(2, 2, 2, 4, 6), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = tf.nn.convolution(x, w, padding="SAME", dilations=[2, 1, 2])
    grouped = tf.function(lambda: tf.nn.convolution(x, w[:, :, :, :2], padding="VALID"), jit_compile=True)
    return [y, *tape.gradient(y, [x, w]), grouped()]


@both(v2=True)
def test_variables_of_functions(tf, np):
    made, calls = [], tf.Variable(0)

    @tf.function
    def f(x):
        calls.assign_add(1)
        if not made:
            made.append(tf.Variable(tf.fill([2], 3.0)))
        return made[0] * x

    table, seen = tf.Variable(tf.ones([20, 6])), []

    @tf.function
    def g(ids):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, ids) ** 2)
        slices = tape.gradient(y, table)
        seen.append(tf.convert_to_tensor(slices).shape.as_list())
        return slices.values

    return f(2.0), f(3.0), calls, g(tf.constant([1, 2, 1])), seen


@both(v2=True)
def test_how_libraries_recognize_values(tf, np):
    values = [tf.constant(1), tf.Variable(1.0), tf.sparse.from_dense([1]), tf.ragged.constant([[1]])]
    return [any(base.__name__ in ("Tensor", "SparseTensor", "RaggedTensor") and base.__module__.startswith("tensorflow.python.")
                for base in type(value).__mro__) for value in values]


def test_named_extension_types():
    import runnel.v2 as tf
    from runnel.core import type_spec

    class Masked(tf.experimental.ExtensionType):
        __name__ = "tests.Masked"
        values: tf.Tensor
        mask: tf.Tensor

    spec = tf.type_spec_from_value(Masked([1, 2], [True, False]))
    assert type_spec.get_name(type(spec)) == "tests.Masked.Spec"
    assert type_spec.lookup("tests.Masked.Spec") is type(spec)
