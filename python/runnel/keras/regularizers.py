"""tf.keras.regularizers: regularizers by name."""

from runnel import raw_ops
from runnel.ops import math_ops


class Regularizer:
    """The base of regularizers: __call__(weights) returns a loss."""

    def __call__(self, x):
        raise NotImplementedError("%s.__call__" % type(self).__name__)

    def get_config(self):
        raise NotImplementedError("%s.get_config" % type(self).__name__)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class L1L2(Regularizer):
    """Computes l1 * sum(|x|) + l2 * sum(x ** 2)."""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x):
        loss = 0.0
        if self.l1:
            loss += self.l1 * math_ops.reduce_sum(math_ops.abs(x))
        if self.l2:
            loss += self.l2 * math_ops.reduce_sum(raw_ops.Square(x=x))
        return loss

    def get_config(self):
        return {"l1": self.l1, "l2": self.l2}


def l1(l=0.01):  # noqa: E741
    """Returns an L1 regularizer."""
    return L1L2(l1=l)


def l2(l=0.01):  # noqa: E741
    """Returns an L2 regularizer."""
    return L1L2(l2=l)


def l1_l2(l1=0.01, l2=0.01):
    """Returns a regularizer with L1 and L2 terms."""
    return L1L2(l1, l2)


L1, L2 = l1, l2


def get(identifier):
    """Returns a regularizer, given its name, its config or itself."""
    if isinstance(identifier, dict):
        return deserialize(identifier) if "class_name" in identifier else L1L2(**identifier)
    return {"l1": l1, "l2": l2, "l1_l2": l1_l2}[identifier]() if isinstance(identifier, str) \
        else identifier


def serialize(regularizer):
    """Returns the config of a regularizer, or its name."""
    from runnel.keras.custom_objects import serialize_keras_object
    return serialize_keras_object(regularizer)


def deserialize(config, custom_objects=None):
    """Returns the regularizer from the result of serialize."""
    from runnel.keras.custom_objects import deserialize_keras_object
    return deserialize_keras_object(config, globals(), custom_objects, "regularizer")
