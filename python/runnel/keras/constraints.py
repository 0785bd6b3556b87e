"""tf.keras.constraints: constraints applied to variables after a step."""

from runnel import raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.ops import math_ops


class Constraint:
    """The base of constraints: __call__(weights) returns the constrained weights."""

    def __call__(self, w):
        raise NotImplementedError("%s.__call__" % type(self).__name__)

    def get_config(self):
        return {}


class MaxNorm(Constraint):
    """Limits norms along an axis to max_value."""

    def __init__(self, max_value=2, axis=0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w):
        norms = raw_ops.Sqrt(x=math_ops.reduce_sum(raw_ops.Square(x=w), self.axis, keepdims=True))
        wanted = raw_ops.Minimum(x=norms, y=convert_to_tensor(float(self.max_value)))
        return w * (wanted / (1e-7 + norms))


class NonNeg(Constraint):
    """Sets negative numbers to 0."""

    def __call__(self, w):
        return w * math_ops.cast(w >= 0.0, w.dtype)


class UnitNorm(Constraint):
    """Scales norms along an axis to 1."""

    def __init__(self, axis=0):
        self.axis = axis

    def __call__(self, w):
        return w / (1e-7 + raw_ops.Sqrt(x=math_ops.reduce_sum(raw_ops.Square(x=w), self.axis,
                                                              keepdims=True)))


max_norm, non_neg, unit_norm = MaxNorm, NonNeg, UnitNorm


def get(identifier):
    """Returns a constraint, given its name or itself."""
    return deserialize(identifier) if isinstance(identifier, (str, dict)) else identifier


def serialize(constraint):
    """Returns the config of a constraint, or its name."""
    from runnel.keras.custom_objects import serialize_keras_object
    return serialize_keras_object(constraint)


def deserialize(config, custom_objects=None):
    """Returns the constraint from the result of serialize."""
    from runnel.keras.custom_objects import deserialize_keras_object
    return deserialize_keras_object(config, globals(), custom_objects, "constraint")
