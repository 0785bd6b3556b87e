"""What libraries hand to TensorFlow: methods with gradients of their own, their own kinds of variables, functions for rows, ranges."""

import os
import subprocess
import sys
import tempfile

import pytest
from both import both


class _Scaled:
    """Its object is no argument of the gradient."""

    def __init__(self, tf, by):
        self.by = by

        class Inner:
            @tf.custom_gradient
            def product(self, x, y):
                return x * y, lambda d: (d * by, d * 7.0)

            @staticmethod
            @tf.custom_gradient
            def double(x):
                return x * 2.0, lambda d: d * 9.0
        self.inner = Inner()


@both(v2=True)
def test_methods_with_gradients(tf, np):
    scaled = _Scaled(tf, 5.0)

    def run():
        x = tf.constant(2.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            a, b = scaled.inner.product(x, 3.0), scaled.inner.double(x)
        return a, b, tape.gradient(a, x), tape.gradient(b, x)

    return run(), tf.function(run)(), scaled.inner.product.__name__, callable(type(scaled.inner).product)


@both(v2=True)
def test_operators_of_a_kind_of_variable(tf, np):
    class Doubled(tf.Variable):
        def __init__(self, inside):
            self.inside = inside

        def value(self):
            return self.inside * 2.0

        dtype = property(lambda self: self.inside.dtype)

    Doubled._OverloadAllOperators()
    x = Doubled(tf.Variable(3.0))
    return x + 1.0, 1.0 - x, -x, x < 7.0, isinstance(x, tf.Variable)


@both(v2=True)
def test_gradients_of_a_kind_of_variable(tf, np):
    class Around:
        def __init__(self, inside):
            self.inside, self.handle, self.dtype, self.shape = inside, inside.handle, inside.dtype, inside.shape

        def _should_act_as_resource_variable(self):
            pass

        def value(self):
            return self.inside.value()

    around = Around(tf.Variable(3.0))

    @tf.function
    def run():
        with tf.GradientTape() as tape:
            y = around.value() * around.value()
        return tape.gradient(y, [around])

    return run()


def _magnitude(x):
    if x > 0:
        return x
    return -x


@both(v2=True)
def test_rows_of_functions_that_branch(tf, np):
    """tf.map_fn converts its function, also where its caller is not converted."""
    def rows(x):
        return tf.map_fn(_magnitude, x)
    rows.__module__ = "numpy.rows"  # one of the libraries whose functions run as they are

    @tf.autograph.experimental.do_not_convert
    def not_converted(x):
        try:
            return rows(x)
        except tf.errors.OperatorNotAllowedInGraphError as error:
            return tf.constant(type(error).__name__)

    x = tf.constant([1.0, -2.0, 3.0])
    return tf.function(lambda x: rows(x))(x), tf.function(not_converted)(x), rows(x)


@both(v2=True)
def test_ranges(tf, np):
    x = tf.ones([2, 3])

    def run(x):
        return [tf.reduce_sum(x, axis=range(1, 1)), tf.reduce_sum(x, axis=range(1, 2)), tf.transpose(x, range(1, -1, -1)),
                x * range(3), tf.convert_to_tensor(range(0), tf.int64), tf.convert_to_tensor(range(2**33, 2**33 + 1))]
    return run(x), tf.function(run)(x)


@both(v2=True)
def test_ranges_in_graphs(tf, np):
    with tf.Graph().as_default() as graph:
        tf.reduce_sum(tf.compat.v1.placeholder(tf.float32, [2, 3]), range(1, 2))
        tf.convert_to_tensor(range(3), tf.int64)
    return [(op.name, op.type) for op in graph.get_operations()], graph.get_tensor_by_name("Sum:0").shape.as_list()


@both(v2=True)
def test_signatures_of_functions_without_results(tf, np):
    counter = tf.Variable(0.0)

    @tf.function(input_signature=[])
    def nothing():
        counter.assign_add(1.0)
        return {}

    concrete = nothing.get_concrete_function()

    @tf.function
    def outer():
        concrete()
        return counter.read_value()

    root = tf.Module()
    root.counter, root.nothing = counter, nothing
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(root, os.path.join(folder, "m"), signatures={"nothing": nothing})
        loaded = tf.saved_model.load(os.path.join(folder, "m"))
    loaded.nothing()
    return outer(), loaded.counter, loaded.signatures["nothing"](), loaded.counter


@both(v2=True, raises=True)
def test_signatures_of_functions_that_return_none(tf, np):
    root = tf.Module()
    root.f = tf.function(lambda: None, input_signature=[])
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(root, folder, signatures={"f": root.f})


@both(v2=True)
def test_schemes_of_paths(tf, np):
    return [scheme in tf.io.gfile.get_registered_schemes() for scheme in ("", "file", "ram", "nothing")]


def test_kinds_of_distributed_variables():
    from runnel.alias import finder
    finder.install(is_v2=True)
    from tensorflow.python.distribute.ps_values import AggregatingVariable
    from tensorflow.python.distribute.values import DistributedVariable, MirroredVariable, SyncOnReadVariable
    for kind in (MirroredVariable, SyncOnReadVariable, AggregatingVariable):
        assert issubclass(kind, DistributedVariable)


def test_definitions_for_languages():
    """The figures are stock's."""
    from runnel.alias import finder
    finder.install(is_v2=True)
    from tensorflow.python.framework import c_api_util
    ops = c_api_util.ApiDefMap()
    found = ops.get_api_def("MatMul")
    assert found.graph_op_name == "MatMul" and [e.name for e in found.endpoint] == ["MatMul"] and found.visibility == 1
    assert [(x.name, x.rename_to) for x in [*found.in_arg, *found.out_arg]] == [("a", "a"), ("b", "b"), ("product", "product")]
    assert [(x.name, x.rename_to) for x in found.attr] == [(n, n) for n in ("transpose_a", "transpose_b", "T", "grad_a", "grad_b")]
    assert list(found.arg_order) == ["a", "b"] and "Add" in ops.op_names() and ops.get_api_def(b"Add").graph_op_name == "Add"
    with pytest.raises(ValueError, match="No op_def found for op name Nope"):
        ops.get_api_def("Nope")


def test_seed_of_the_context():
    import runnel.v2 as tf
    from runnel.alias import finder
    finder.install(is_v2=True)
    from tensorflow.python.eager import context
    try:
        tf.random.set_seed(3)
        assert context.global_seed() == 3
    finally:
        tf.random.set_seed(None)
    assert context.global_seed() is None


@pytest.mark.parametrize(("is_legacy", "wanted"), [("1", "tf_keras.api._v1.keras"), ("0", "runnel.keras")])
def test_keras_of_v1(is_legacy, wanted):
    """tf.compat.v1.keras is tf_keras's API of 1.x if tf.keras is tf_keras."""
    pytest.importorskip("tf_keras")
    code = "import os; os.environ['TF_USE_LEGACY_KERAS'] = %r; import runnel.v2 as tf; import runnel.keras.layers; " % is_legacy
    code += "print(tf.compat.v1.keras.__name__)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.stdout.strip() == wanted
