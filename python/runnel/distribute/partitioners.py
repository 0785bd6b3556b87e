"""tf.distribute.experimental.partitioners: into how many parts the variables of a ParameterServerStrategy are split."""

from runnel.core import tensor_shape
from runnel.ops import partitioned_variables


class Partitioner:
    """A function from the shape and the type of a variable to its number of parts along each axis, of which one may exceed 1."""

    def __call__(self, shape, dtype, axis=0):
        raise NotImplementedError


class FixedShardsPartitioner(Partitioner):
    """Makes a number of parts, or as many as there are rows."""

    def __init__(self, num_shards):
        self._num_shards = num_shards

    def __call__(self, shape, dtype, axis=0):
        return partitioned_variables.fixed_size_partitioner(self._num_shards, axis)(tensor_shape.as_shape(shape), dtype=dtype)


class MinSizePartitioner(Partitioner):
    """Makes up to `max_shards` parts of at least `min_shard_bytes` bytes."""

    def __init__(self, min_shard_bytes=256 << 10, max_shards=1, bytes_per_string=16):
        for name, value in (("min_shard_bytes", min_shard_bytes), ("max_shards", max_shards), ("bytes_per_string", bytes_per_string)):
            if value < 1:
                raise ValueError("Argument `%s` must be positive. Received: %s" % (name, value))
        self._settings = {"max_partitions": max_shards, "min_slice_size": min_shard_bytes, "bytes_per_string_element": bytes_per_string}

    def __call__(self, shape, dtype, axis=0):
        return partitioned_variables.min_max_variable_partitioner(axis=axis, **self._settings)(tensor_shape.as_shape(shape), dtype)


class MaxSizePartitioner(Partitioner):
    """Makes parts of at most `max_shard_bytes` bytes, but no more than `max_shards`."""

    def __init__(self, max_shard_bytes, max_shards=None, bytes_per_string=16):
        for name, value in (("max_shard_bytes", max_shard_bytes), ("max_shards", max_shards), ("bytes_per_string", bytes_per_string)):
            if value is not None and value < 1:
                raise ValueError("Argument `%s` must be positive. Received %s" % (name, value))
        self._settings = {"max_shard_bytes": max_shard_bytes, "max_shards": max_shards, "bytes_per_string_element": bytes_per_string}

    def __call__(self, shape, dtype, axis=0):
        return partitioned_variables.variable_axis_size_partitioner(axis=axis, **self._settings)(tensor_shape.as_shape(shape), dtype)
