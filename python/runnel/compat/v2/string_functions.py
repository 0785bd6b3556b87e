"""Functions of tf.strings with the results of 2.x."""

import runnel as _v1


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """Joins strings along axes."""
    return _v1.strings.reduce_join(inputs, axis, keep_dims=keepdims, separator=separator, name=name)
