"""What libraries ask of TensorFlow before they use it: eager or not, versions, the configuration, names they only compare with."""

import numpy
import pytest

from both import both


@both(v2=True)
def test_eager_values_have_no_graph(tf, np):
    x, v = tf.constant(1.0), tf.Variable(2.0)
    ragged, slices = tf.ragged.constant([[1], [2, 3]]), tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    errors = []
    try:
        x.graph  # noqa: B018
    except AttributeError as error:
        errors.append(str(error))
    seen = []

    @tf.function
    def inside(y):
        seen.append((hasattr(y, "graph"), hasattr(x, "graph"), hasattr(y * x, "graph")))
        return y * v + x

    return [hasattr(value, "graph") for value in (x, v, ragged, slices)], errors, inside(x), seen


@both(v2=True)
def test_versions_and_configuration(tf, np):
    config = tf.__internal__.eager_context.get_config()
    before = config.allow_soft_placement, config.log_device_placement, config.device_count["CPU"]
    config.allow_soft_placement = False  # a copy
    tf.config.set_soft_device_placement(False)
    return (before, tf.__internal__.eager_context.get_config().allow_soft_placement, tf.config.get_soft_device_placement(),
            type(tf.__git_version__).__name__, type(tf.__compiler_version__).__name__, type(tf.compat.v1.__git_version__).__name__)


@both(v2=True)
def test_strategies_to_compare_with(tf, np):
    strategy, old = tf.distribute.OneDeviceStrategy("/cpu:0"), tf.compat.v1.distribute.experimental
    kinds = (old.CentralStorageStrategy, old.MultiWorkerMirroredStrategy, old.ParameterServerStrategy, old.TPUStrategy)
    return [isinstance(strategy, kind) for kind in kinds], old.CommunicationImplementation.RING.value


@both(v2=True)
def test_a_process_without_a_mesh(tf, np):
    d = tf.experimental.dtensor
    return (d.is_dtensor(tf.constant(1)), d.get_default_mesh(), d.num_clients(), d.client_id(), d.job_name(), d.full_job_name(), d.jobs(),
            [device.to_string() for device in d.local_devices("CPU")], d.num_global_devices("CPU"), d.preferred_device_type(), d.MATCH, d.UNSHARDED)


def test_meshes_are_refused():
    import runnel.v2 as tf
    d = tf.experimental.dtensor
    for make in (lambda: d.create_mesh([("batch", 1)]), lambda: d.Mesh(["x"], [0], [0], []), lambda: d.Layout.replicated(None, rank=1)):
        with pytest.raises(tf.errors.UnimplementedError, match="tf.experimental.dtensor"):
            make()


def _options(**fields):
    from runnel.core.protobuf import message_class
    options = message_class("CallableOptions")()
    for name, values in fields.items():
        getattr(options, name).extend(values)
    return options


def test_steps_by_callable_options():
    import runnel.v2 as tf
    tf1 = tf.compat.v1
    with tf.Graph().as_default():
        x, y = tf1.placeholder(tf.float32, [], name="x"), tf1.placeholder(tf.float32, [], name="y")
        total = tf1.get_variable("total", [], initializer=tf1.zeros_initializer())
        update, product, five, noise = total.assign_add(x), x * y, tf.constant(5.0), tf.random.uniform([])
        with tf1.Session() as sess:
            sess.run(total.initializer)
            options = _options(feed=["x:0"], fetch=[product.name], target=[update.op.name])
            options.tensor_connection.add(from_tensor=five.name, to_tensor="y:0")
            step = sess._make_callable_from_options(options)
            assert step(numpy.float32(3)) == [15.0] and step(numpy.float32(4)) == [20.0] and sess.run(total) == 7.0
            with pytest.raises(TypeError, match="Expected 1 arguments"):
                step()
            options = _options(fetch=[(noise + y).name])
            options.tensor_connection.add(from_tensor=noise.name, to_tensor="y:0")
            with pytest.raises(tf.errors.UnimplementedError, match="both through a tensor connection"):
                sess._make_callable_from_options(options)


@both(v2=True)
def test_convolutions_over_several_batch_dimensions(tf, np):
    def values(*shape):
        return tf.reshape(tf.range(float(np.prod(shape))), shape) / 10.0

    results = [tf.nn.conv1d(values(2, 3, 8, 2), values(3, 2, 4), 2, "SAME"),
               tf.nn.conv2d(values(2, 3, 5, 6, 2), values(3, 3, 2, 1), 1, "VALID"),
               tf.nn.conv3d(values(2, 1, 3, 4, 4, 1), values(2, 2, 2, 1, 2), [1, 1, 1, 1, 1], "SAME"),
               tf.nn.convolution(values(2, 3, 8, 2), values(3, 2, 4), dilations=2),
               tf.nn.convolution(values(2, 2, 7, 7, 1), values(2, 2, 1, 1), dilations=2, padding="SAME")]
    kernel = values(3, 2, 4)
    traced = tf.function(lambda x: tf.nn.convolution(x, kernel)).get_concrete_function(tf.TensorSpec([None, 3, 8, 2]))
    return results, traced.outputs[0].shape.as_list(), traced(values(2, 3, 8, 2))


@both(v2=True)
def test_shapes_of_rows_of_ragged_tensors(tf, np):
    shapes = []

    @tf.function
    def rows(x, y):
        a = tf.map_fn(lambda row: tf.reduce_mean(row, -1), x, fn_output_signature=tf.float32)
        b = tf.map_fn(lambda row: tf.reduce_mean(row, -1), y, fn_output_signature=tf.RaggedTensorSpec([None], tf.float32, 0))
        c = tf.map_fn(lambda i: tf.py_function(lambda j: tf.ones([3]) * tf.cast(j, tf.float32), [i], tf.float32), tf.range(2),
                      fn_output_signature=tf.TensorSpec([3], tf.float32))
        shapes.extend(str(value.shape) for value in (a, b, c))
        return a, b, c

    return rows(tf.ragged.constant([[1.0, 2.0, 9.0], [2.0]]), tf.ragged.constant([[[1.0, 3.0]], [[2.0, 4.0], [6.0, 8.0]]], ragged_rank=1)), shapes


@both(v2=True)
def test_static_shapes_of_sparse_tensors(tf, np):
    shapes = []

    def shape_of(x):
        for made in (tf.sparse.concat(1, [x, x]), tf.sparse.concat(-2, [x, x]), tf.sparse.reorder(x), tf.sparse.reshape(x, [3, 2])):
            shapes.append(str(made.shape))
        return tf.sparse.to_dense(tf.sparse.concat(1, [x, x]))

    function = tf.function(shape_of)
    value = function(tf.SparseTensor([[0, 1]], [1.0], [2, 3]))
    function.get_concrete_function(tf.SparseTensorSpec([None, 3], tf.float32))
    return value, shapes


@both(v2=True)
def test_creators_of_variables_in_init_scope(tf, np):
    made, kept = [], []

    def creator(following, **kwargs):
        made.append(kwargs["name"])
        return following(**kwargs)

    @tf.function
    def outer(x):
        with tf.variable_creator_scope(creator), tf.init_scope():
            if not kept:
                kept.append(tf.Variable(2.0, name="inner"))
        return x * kept[0]

    result = outer(3.0)
    tf.Variable(1.0, name="later")
    return result, made


@both(v2=True)
def test_functions_are_decorated(tf, np):
    class Layer:
        @tf.function
        def call(self, x, training=None):
            return x

    _, target = tf.__internal__.decorator.unwrap(Layer().call)
    decorators, _ = tf.__internal__.decorator.unwrap(tf.function(lambda x: x))
    return target.__name__, [decorator.decorator_name for decorator in decorators]


@both(v2=True)
def test_arrays_with_symbols(tf, np):
    class Symbol:
        dtype, shape = tf.float32, tf.TensorShape([2])

    seen = []

    class Keeper(tf.__internal__.dispatch.GlobalOpDispatcher):
        def handle(self, op, args, kwargs):
            if not any(isinstance(x, Symbol) for x in args):
                return self.NOT_SUPPORTED
            seen.append([x if isinstance(x, (int, float)) else x.dtype.name for x in args])
            return "handled"

    Keeper().register()
    for operator in tf.Tensor.OVERLOADABLE_OPERATORS:
        setattr(Symbol, operator, getattr(tf.Tensor, operator))
    Symbol.__hash__, Symbol.__array_priority__ = object.__hash__, 1000
    return np.array([3.0]) * Symbol(), 2.0 - Symbol(), Symbol() * 3, seen


@both(v2=True)
def test_a_folder_is_no_checkpoint(tf, np):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.compat.v1.train.NewCheckpointReader(folder)
        except tf.errors.DataLossError as error:
            return error.message.replace(folder, "FOLDER")


@both(v2=True)
def test_operations_of_node_defs(tf, np):
    with tf.Graph().as_default() as graph:
        x = tf.constant([1.0, 2.0])
        node = (x * 3.0).op.node_def
        node.name = graph.unique_name("again")
        op = graph._create_op_from_tf_operation(tf.__internal__.create_c_op(graph, node, [x, x], control_inputs=[]))
        op._control_flow_post_processing()
        with tf.compat.v1.Session() as sess:
            return op.name, op.type, sess.run(op.outputs[0])
