"""More functions of tf.keras.backend. SAME lists those that are functions of `tf` with the same arguments."""

import contextlib

import runnel as tf
from runnel import dtypes
from runnel.core.convert import convert_to_tensor
from runnel.keras import backend as K  # noqa: N812

SAME = {name: path for row in """
argmin=argmin cos=cos cumprod=cumprod cumsum=cumsum elu=nn.elu foldl=foldl foldr=foldr greater=greater greater_equal=greater_equal
l2_normalize=nn.l2_normalize less=less less_equal=less_equal map_fn=map_fn maximum=maximum minimum=minimum name_scope=name_scope
not_equal=not_equal pow=pow round=round sigmoid=sigmoid sign=sign sin=sin softplus=nn.softplus softsign=nn.softsign stop_gradient=stop_gradient
tanh=tanh tile=tile transpose=transpose in_top_k=nn.in_top_k gather=gather bias_add=nn.bias_add
""".split() for name, _, path in [row.partition("=")]}


def same(name):
    """Returns the function of `tf` for a name, or None."""
    path = SAME.get(name)
    if path is None:
        return None
    value = tf
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _floats(x):
    x = convert_to_tensor(x)
    return tf.cast(x, K.floatx()) if x.dtype == dtypes.bool else x


def _reduction(name, function):
    def reduce(x, axis=None, keepdims=False):
        return function(_floats(x) if name in ("std", "var", "prod") else tf.cast(x, tf.bool) if name in ("any", "all") else x, axis, keepdims)

    reduce.__name__, reduce.__doc__ = name, "tf.%s, with Keras's arguments." % function.__name__
    return reduce


min = _reduction("min", tf.reduce_min)  # noqa: A001
prod = _reduction("prod", tf.reduce_prod)
std = _reduction("std", tf.math.reduce_std)
var = _reduction("var", tf.math.reduce_variance)
any = _reduction("any", tf.reduce_any)  # noqa: A001
all = _reduction("all", tf.reduce_all)  # noqa: A001


def flatten(x):
    """Flattens a tensor to one dimension."""
    return tf.reshape(x, [-1])


def batch_flatten(x):
    """Flattens each example to a row."""
    return tf.reshape(x, tf.stack([-1, tf.reduce_prod(tf.shape(x)[1:])]))


def expand_dims(x, axis=-1):
    """Inserts a dimension of size 1."""
    return tf.expand_dims(x, axis)


def squeeze(x, axis):
    """Removes a dimension of size 1."""
    return tf.squeeze(x, [axis])


def stack(x, axis=0):
    """Stacks tensors along a new dimension."""
    return tf.stack(x, axis)


def permute_dimensions(x, pattern):
    """Permutes the dimensions."""
    return tf.transpose(x, pattern)


def repeat(x, n):
    """Repeats each row n times along a new second dimension."""
    return tf.tile(tf.expand_dims(x, 1), [1, n, 1])


def repeat_elements(x, rep, axis):
    """Repeats each element along an axis."""
    return tf.repeat(x, rep, axis)


def reverse(x, axes):
    """Reverses a tensor along axes."""
    return tf.reverse(x, [axes] if isinstance(axes, int) else axes)


def one_hot(indices, num_classes):
    """Returns one-hot vectors of class indices."""
    return tf.one_hot(indices, num_classes)


def arange(start, stop=None, step=1, dtype="int32"):
    """Returns a sequence of numbers."""
    numbers = tf.range(start, delta=step) if stop is None else tf.range(start, stop, step)
    return tf.cast(numbers, dtype)


def eye(size, dtype=None, name=None):
    """Creates a variable with the identity matrix."""
    return K.variable(tf.eye(size, dtype=dtypes.as_dtype(dtype or K.floatx())), name=name)


def zeros(shape, dtype=None, name=None):
    """Creates a variable of zeros."""
    return K.variable(tf.zeros(shape, dtypes.as_dtype(dtype or K.floatx())), name=name)


def ones(shape, dtype=None, name=None):
    """Creates a variable of ones."""
    return K.variable(tf.ones(shape, dtypes.as_dtype(dtype or K.floatx())), name=name)


def constant(value, dtype=None, shape=None, name=None):
    """Creates a constant."""
    return tf.constant(value, dtypes.as_dtype(dtype or K.floatx()), shape, name or "Const")


def placeholder(shape=None, ndim=None, dtype=None, sparse=False, name=None):
    """Creates a placeholder."""
    return tf.placeholder(dtypes.as_dtype(dtype or K.floatx()), (None,) * ndim if shape is None and ndim else shape, name)


def eval(x):  # noqa: A001
    """Returns the value of a tensor."""
    return K.get_value(convert_to_tensor(x))


def dtype(x):
    """Returns the name of a tensor's type."""
    return x.dtype.base_dtype.name


def cast_to_floatx(x):
    """Converts to the default floating-point type."""
    import numpy as np
    return np.asarray(x, K.floatx()) if not isinstance(x, (tf.Tensor, tf.Variable)) else tf.cast(x, K.floatx())


def count_params(x):
    """Returns the number of elements of a variable."""
    return x.shape.num_elements()


def is_keras_tensor(x):
    """Tells whether a layer made the tensor."""
    return hasattr(x, "_keras_history")


def batch_dot(x, y, axes=None):
    """Multiplies the rows of two batches along an axis of each."""
    a, b = (axes, axes) if isinstance(axes, int) else axes or (x.shape.ndims - 1, 1 if y.shape.ndims == 2 else y.shape.ndims - 2)
    if x.shape.ndims == 2 and y.shape.ndims == 2:
        return tf.reduce_sum(x * y, 1, keepdims=True)
    wide_x = tf.expand_dims(x, 1) if x.shape.ndims == 2 else x
    wide_y = tf.expand_dims(y, -1) if y.shape.ndims == 2 else y
    out = tf.matmul(wide_x, wide_y, transpose_a=x.shape.ndims > 2 and a % x.shape.ndims != x.shape.ndims - 1,
                    transpose_b=y.shape.ndims > 2 and b % y.shape.ndims == y.shape.ndims - 1)
    out = tf.squeeze(out, [1]) if x.shape.ndims == 2 else out
    return tf.squeeze(out, [-1]) if y.shape.ndims == 2 else out


def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    """Returns max(x, 0), with a slope `alpha` below the threshold and an upper limit `max_value`."""
    x = convert_to_tensor(x)
    positive = tf.nn.relu(x) if not threshold else x * tf.cast(x > threshold, x.dtype)
    if max_value is not None:
        positive = tf.minimum(positive, max_value)
    return positive - alpha * tf.nn.relu(threshold - x) if alpha else positive


def hard_sigmoid(x):
    """Returns 0.2 x + 0.5, clipped to [0, 1]."""
    return tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


def dropout(x, level, noise_shape=None, seed=None):
    """Sets a fraction `level` of the elements to 0 and scales the others."""
    return tf.nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


def binary_crossentropy(target, output, from_logits=False):
    """Returns the cross entropy of two classes, per element."""
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    output = tf.clip_by_value(output, K.epsilon(), 1.0 - K.epsilon())
    return -(target * tf.log(output + K.epsilon()) + (1.0 - target) * tf.log(1.0 - output + K.epsilon()))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Returns the cross entropy of one-hot labels, per row."""
    from runnel.keras import losses
    return losses.categorical_crossentropy(target, output, from_logits)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Returns the cross entropy of class indices, per row."""
    from runnel.keras import losses
    return losses.sparse_categorical_crossentropy(target, output, from_logits)


def gradients(loss, variables):
    """Returns the gradients of a loss with respect to variables."""
    return tf.gradients(loss, variables)


def switch(condition, then_expression, else_expression):
    """Returns one of two expressions, chosen by a condition in the step."""

    def given(value):
        return value if callable(value) else lambda: value

    if condition.shape.ndims:
        then, other = (value() if callable(value) else value for value in (then_expression, else_expression))
        return tf.where_v2(condition, then, other)
    return tf.cond(tf.cast(condition, tf.bool), given(then_expression), given(else_expression))


def in_train_phase(x, alt, training=None):
    """Returns `x` while training, else `alt`."""
    from runnel.layers import core as layers

    def given(value):
        return value if callable(value) else lambda: value

    return layers._in_training(K.learning_phase() if training is None else training, given(x), given(alt))


def in_test_phase(x, alt, training=None):
    """Returns `x` while not training, else `alt`."""
    return in_train_phase(alt, x, training)


def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Returns random values from a uniform distribution."""
    return tf.random_uniform(shape, minval, maxval, dtypes.as_dtype(dtype or K.floatx()), seed)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Returns random values from a truncated normal distribution."""
    return tf.truncated_normal(shape, mean, stddev, dtypes.as_dtype(dtype or K.floatx()), seed)


def random_bernoulli(shape, p=0.0, dtype=None, seed=None):
    """Returns random values that are 1 with probability p, else 0."""
    kind = dtypes.as_dtype(dtype or K.floatx())
    return tf.cast(tf.random_uniform(shape, seed=seed) <= p, kind)


random_binomial = random_bernoulli


def update(x, new_x):
    """Returns an operation that sets a variable."""
    return tf.assign(x, new_x)


def update_add(x, increment):
    """Returns an operation that adds to a variable."""
    return tf.assign_add(x, increment)


def update_sub(x, decrement):
    """Returns an operation that subtracts from a variable."""
    return tf.assign_sub(x, decrement)


def batch_get_value(tensors):
    """Returns the values of several variables."""
    return [K.get_value(tensor) for tensor in tensors]


def batch_set_value(tuples):
    """Sets the values of several variables."""
    for variable, value in tuples:
        K.set_value(variable, value)


def print_tensor(x, message="", summarize=3):
    """Returns the tensor, and prints it when it is computed."""
    return tf.Print(x, [x], message, summarize=summarize)


def conv2d(x, kernel, strides=(1, 1), padding="valid", data_format=None, dilation_rate=(1, 1)):
    """Convolves images."""
    return tf.nn.conv2d(x, kernel, [1, *strides, 1], padding.upper(), dilations=[1, *dilation_rate, 1])


def pool2d(x, pool_size, strides=(1, 1), padding="valid", data_format=None, pool_mode="max"):
    """Pools over images."""
    function = tf.nn.max_pool if pool_mode == "max" else tf.nn.avg_pool
    return function(x, [1, *pool_size, 1], [1, *strides, 1], padding.upper())


def image_data_format():
    """Returns "channels_last" or "channels_first"."""
    return "channels_last"


def set_image_data_format(data_format):
    """Sets the default data format of images."""
    if data_format != "channels_last":
        raise NotImplementedError("Keras layers support channels_last only")


def backend():
    """Returns "tensorflow"."""
    return "tensorflow"


def get_graph():
    """Returns the graph in which models are built."""
    return tf.get_default_graph()


def get_uid(prefix=""):
    """Returns a number for the name of a layer, counted per prefix and graph."""
    counts = K._state().counts
    counts[prefix] = counts.get(prefix, 0) + 1
    return counts[prefix]


def reset_uids():
    """Restarts the numbers of layer names."""
    K._state().counts.clear()


def manual_variable_initialization(value):
    """Sets whether the program, instead of the model, initializes variables."""
    K._manual = bool(value)


@contextlib.contextmanager
def learning_phase_scope(value):
    """A context manager that fixes whether steps train."""
    before = K._eager_phase if tf.executing_eagerly() else K._state().phase
    K.set_learning_phase(value)
    try:
        yield
    finally:
        if tf.executing_eagerly():
            K._eager_phase = before
        else:
            K._state().phase = before


def rnn(*args, **kwargs):
    """Iterates a step function over time; see backend_rnn.rnn."""
    from runnel.keras import backend_rnn
    return backend_rnn.rnn(*args, **kwargs)


def track_variable(v):
    """Does nothing: a graph knows all its variables."""
