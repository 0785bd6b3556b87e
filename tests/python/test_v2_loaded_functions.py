"""Functions of loaded models and results of traced functions, as libraries on top of TensorFlow 2 use them."""

import functools
import tempfile

from both import both

both = functools.partial(both, v2=True)


def _loaded(tf):
    v = tf.Variable(2.0)
    root = tf.train.Checkpoint(v=v)
    root.call = tf.function(lambda x: tf.tanh(x * v), input_signature=[tf.TensorSpec([None])])
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(root, folder)
        return tf.saved_model.load(folder)


@both()
def test_gradient_of_a_loaded_function_in_a_function(tf, np):
    loaded = _loaded(tf)

    def gradient():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded.call(tf.ones([3])))
        return tape.gradient(y, loaded.v)

    def in_a_branch():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.cond(tf.constant(True), lambda: loaded.call(tf.ones([2])), lambda: tf.zeros([2])))
        return tape.gradient(y, loaded.v)
    return [gradient(), tf.function(gradient)(), tf.function(in_a_branch)()]


@both()
def test_structured_outputs(tf, np):
    @tf.function
    def f(x):
        return x, [tf.RaggedTensor.from_row_splits([1.0, 2.0], [0, 1, 2])], {"a": tf.sparse.from_dense([[1, 0]]), "b": None}
    made = f.get_concrete_function(tf.TensorSpec([None]))
    first, (ragged,), rest = made.structured_outputs
    return [str(first.shape), type(ragged).__name__, str(ragged.shape), type(rest["a"]).__name__, str(rest["a"].shape), rest["b"] is None,
            str(made.output_shapes), str(made.output_dtypes)]


@both()
def test_constants_in_loops(tf, np):
    found = []

    def body(i):
        c = tf.constant(3)
        q = tf.zeros([2, i])
        rows = (c, tf.stack([c, c]), tf.range(c), tf.fill([2], c), tf.shape(tf.zeros([2, 3])), tf.rank(q), tf.size(tf.zeros([2])),
                tf.cast(c, tf.float32), tf.concat([[c], [c]], 0), c + 1, tf.split([c, 4], 2)[1], tf.constant("ab"))
        found.append([str(tf.get_static_value(x)) for x in rows] + [str(tf.zeros(tf.stack([c, 4])).shape)])
        return i + 1
    with tf.Graph().as_default():
        tf.while_loop(lambda i: i < 3, body, [0])
    tf.function(lambda: tf.while_loop(lambda i: i < 3, body, [0]))()
    return found


@both()
def test_methods_of_arrays_by_their_class(tf, np):
    """Libraries map tf.TensorArray.stack over arrays of every kind."""
    def stacked():
        array = tf.TensorArray.unstack(tf.TensorArray(tf.float32, 3), tf.constant([1.0, 2.0, 3.0]))
        return tf.TensorArray.stack(array), tf.TensorArray.read(array, 1), tf.TensorArray.size(array)
    return [stacked(), tf.function(stacked)()]


@both()
def test_variables_of_modules_are_variables(tf, np):
    """An object that only looks like a variable is not among the variables of a module."""
    class Pretender:
        initializer, trainable = None, True

    class Kind(tf.Module):
        def __init__(self):
            super().__init__()
            self.v, self.other = tf.Variable(1.0), Pretender()
    made = Kind()
    return [len(made.variables), len(made.trainable_variables), len(made.non_trainable_variables)]


def decorated(function):
    """A wrapper that has the name of what it wraps, and control flow of its own."""
    @functools.wraps(function)
    def run(x):
        if x > 0:
            return function(x)
        return -function(x)
    return run


@decorated
def doubled(x):
    if x > 10:
        x = x * 0
    return x * 2


def counted(x):
    """Reads an attribute of itself."""
    if x > 0:
        x = x + counted.step
    return x


counted.step = 5


@both()
def test_conversion_of_wrappers_and_of_functions_that_read_themselves(tf, np):
    f, g = tf.function(doubled), tf.function(counted)
    return [[f(tf.constant(x)), g(tf.constant(x))] for x in (-3, 4, 20)]


@both()
def test_identity_of_composites(tf, np):
    class Pair(tf.experimental.ExtensionType):
        a: tf.Tensor
        b: tf.Tensor
    made = tf.identity(Pair(tf.constant([1.0]), tf.constant(2)))
    ragged = tf.identity(tf.ragged.constant([[1], [2, 3]]))
    inside = tf.function(lambda pair: tf.identity(pair).b)(made)
    return [type(made).__name__, made.a, made.b, ragged.to_list(), inside]
