"""tf.keras.activations: activation functions by name."""

from runnel import raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.nn import nn_ops
from runnel.ops import math_ops


def linear(x):
    """Returns x unchanged."""
    return x


def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    """Returns max(x, 0), with a slope `alpha` below the threshold and an upper limit `max_value`."""
    if alpha:
        x = nn_ops.leaky_relu(x, alpha)
    else:
        x = nn_ops.relu(x)
    return x if max_value is None else raw_ops.Minimum(x=x, y=convert_to_tensor(max_value, x.dtype))


def softmax(x, axis=-1):
    """Returns the softmax along an axis."""
    return nn_ops.softmax(x, axis)


def hard_sigmoid(x):
    """Returns 0.2 x + 0.5, clipped to [0, 1]."""
    from runnel.ops.math_ops import clip_by_value
    return clip_by_value(x * 0.2 + 0.5, 0.0, 1.0)


def exponential(x):
    """Returns exp(x)."""
    return raw_ops.Exp(x=x)


def elu(x, alpha=1.0):
    """Returns x where x > 0, and alpha * (exp(x) - 1) elsewhere."""
    return nn_ops.elu(x) if alpha == 1 else raw_ops.SelectV2(condition=x > 0, t=x,
                                                            e=alpha * nn_ops.elu(x))


selu, softplus, softsign, swish = nn_ops.selu, nn_ops.softplus, nn_ops.softsign, nn_ops.swish
sigmoid, tanh = math_ops.sigmoid, math_ops.tanh


def get(identifier):
    """Returns an activation function, given its name or itself."""
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    found = globals().get(identifier)
    if found is None:
        raise ValueError("Unknown activation function: %s" % identifier)
    return found


def serialize(activation):
    """Returns the config of an activation function, or its name."""
    from runnel.keras.custom_objects import serialize_keras_object
    return serialize_keras_object(activation)


def deserialize(name, custom_objects=None):
    """Returns the activation function from the result of serialize."""
    from runnel.keras.custom_objects import deserialize_keras_object
    return deserialize_keras_object(name, globals(), custom_objects, "activation function")
