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
