"""tf.keras.initializers: initializers by name."""

from runnel.ops.init_ops import (  # noqa: F401
    Initializer, constant_initializer, glorot_normal_initializer, glorot_uniform_initializer, ones_initializer,
    orthogonal_initializer, random_normal_initializer, random_uniform_initializer, truncated_normal_initializer,
    variance_scaling_initializer, zeros_initializer)

Zeros = zeros = zeros_initializer
Ones = ones = ones_initializer
Constant = constant = constant_initializer
Orthogonal = orthogonal = orthogonal_initializer
VarianceScaling = variance_scaling_initializer
GlorotUniform = glorot_uniform = glorot_uniform_initializer
GlorotNormal = glorot_normal = glorot_normal_initializer


def RandomNormal(mean=0.0, stddev=0.05, seed=None):
    """Returns an initializer with a normal distribution."""
    return random_normal_initializer(mean, stddev, seed)


def RandomUniform(minval=-0.05, maxval=0.05, seed=None):
    """Returns an initializer with a uniform distribution."""
    return random_uniform_initializer(minval, maxval, seed)


def TruncatedNormal(mean=0.0, stddev=0.05, seed=None):
    """Returns an initializer with a truncated normal distribution."""
    return truncated_normal_initializer(mean, stddev, seed)


random_normal, random_uniform = normal, uniform = RandomNormal, RandomUniform
truncated_normal = TruncatedNormal


def he_normal(seed=None):
    """Returns He's normal initializer."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed=None):
    """Returns He's uniform initializer."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed=None):
    """Returns LeCun's normal initializer."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed=None):
    """Returns LeCun's uniform initializer."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


HeNormal, HeUniform, LecunNormal, LecunUniform = he_normal, he_uniform, lecun_normal, lecun_uniform


def get(identifier):
    """Returns an initializer, given its name or itself."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        found = globals().get(identifier)
        if found is None:
            raise ValueError("Unknown initializer: %s" % identifier)
        return found()
    return identifier() if isinstance(identifier, type) else identifier


def serialize(initializer):
    """Returns the config of an initializer, or its name."""
    from runnel.keras.custom_objects import serialize_keras_object
    return serialize_keras_object(initializer)


def deserialize(config, custom_objects=None):
    """Returns the initializer from the result of serialize."""
    from runnel.keras.custom_objects import deserialize_keras_object
    return deserialize_keras_object(config, globals(), custom_objects, "initializer")
