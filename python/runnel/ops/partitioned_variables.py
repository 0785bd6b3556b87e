"""Variables in parts, and partitioners, which choose the parts."""

from runnel import dtypes
from runnel.core import convert, framework, tensor_shape


class _PartitionInfo:
    """Which part of a variable an initializer fills."""

    def __init__(self, full_shape, var_offset):
        for what, value in (("full_shape", full_shape), ("var_offset", var_offset)):
            if not isinstance(value, (list, tuple)):
                raise TypeError("`%s` must be a sequence (like tuple or list) instead of %s" % (
                    what, type(value).__name__))
        if len(var_offset) != len(full_shape):
            raise ValueError("Expected equal length, but `var_offset` is of length %d while full_shape "
                             "is of length %d." % (len(var_offset), len(full_shape)))
        if any(not 0 <= offset < size for offset, size in zip(var_offset, full_shape)):
            raise ValueError("Expected 0 <= offset < shape but found var_offset=%s, full_shape=%s" % (
                var_offset, full_shape))
        self.full_shape = full_shape
        self.var_offset = var_offset

    def single_slice_dim(self, shape):
        """Returns the one axis that is partitioned, or None."""
        if len(shape) != len(self.full_shape):
            raise ValueError("Expected equal length, but received shape=%s while full_shape=%s" % (
                shape, self.full_shape))
        divided = [i for i, size in enumerate(shape) if size != self.full_shape[i]]
        if len(divided) > 1:
            raise ValueError("Cannot use single_slice_dim() with shape=%s and full_shape=%s: more "
                             "than one dimension is divided" % (shape, self.full_shape))
        return divided[0] if divided else None

    def single_offset(self, shape):
        """Returns where the part begins on that axis."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]


def _partitions(partitioner, shape, dtype):
    if not shape.is_fully_defined():
        raise ValueError("Shape of a new partitioned variable must be fully defined, but instead was "
                         "%s." % (shape,))
    if shape.ndims < 1:
        raise ValueError("A partitioned Variable must have rank at least 1, shape: %s" % shape)
    parts = partitioner(shape=shape, dtype=dtype)
    if not isinstance(parts, (list, tuple)):
        raise ValueError("Partitioner must return a sequence, but saw: %s" % (parts,))
    if len(parts) != shape.ndims:
        raise ValueError("Partitioner returned a partition list that does not match the Variable's "
                         "rank: %s vs. %s" % (parts, shape))
    if any(p < 1 for p in parts):
        raise ValueError("Partitioner returned zero partitions for some axes: %s" % (parts,))
    if sum(p > 1 for p in parts) > 1:
        raise ValueError("Can only slice a variable along one dimension: shape: %s, partitioning: %s" % (
            shape, parts))
    return parts


def _slices(shape, parts):
    """Returns [(offset, shape)] of the parts; the first parts are larger if the sizes differ."""
    axis = next((i for i, p in enumerate(parts) if p > 1), 0)
    each, more = divmod(shape[axis], parts[axis])
    out, at = [], 0
    for i in range(parts[axis]):
        offset, size = [0] * len(shape), list(shape)
        offset[axis], size[axis] = at, each + (i < more)
        at += size[axis]
        out.append((offset, size))
    return out


class PartitionedVariable:
    """A variable in parts along one axis. It converts to one tensor."""

    __array_priority__ = 100

    def __init__(self, name, shape, dtype, variable_list, partitions):
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError("variable_list is not a list or tuple: %s" % (variable_list,))
        if not isinstance(partitions, (list, tuple)):
            raise TypeError("partitions is not a list or tuple: %s" % (partitions,))
        if any(p < 1 for p in partitions):
            raise ValueError("partition values must be positive: %s" % (partitions,))
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        self._name = name
        self._shape = tensor_shape.as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._variable_list = sorted(
            variable_list, key=lambda v: tuple(v._get_save_slice_info().var_offset))
        self._partitions = list(partitions)
        self._as_tensor = None

    def __iter__(self):
        return iter(self._variable_list)

    def __len__(self):
        axes = self._partition_axes()
        if len(axes) > 1:
            raise ValueError("Cannot get a length for %d > 1 partition axes" % len(axes))
        return len(self._variable_list)

    def _partition_axes(self):
        if all(p == 1 for p in self._partitions):
            return [0]
        return [i for i, p in enumerate(self._partitions) if p > 1]

    def _concat(self):
        from runnel import raw_ops
        from runnel.ops import array_ops
        if len(self._variable_list) == 1:
            with framework.name_scope(None):
                return raw_ops.Identity(input=self._variable_list[0], name=self._name)
        with framework.name_scope(self._name + "/ConcatPartitions/"):
            whole = array_ops.concat(self._variable_list, self._partition_axes()[0])
        with framework.name_scope(None):
            return raw_ops.Identity(input=whole, name=self._name)

    def as_tensor(self):
        """Returns the concatenation of the parts."""
        with framework.control_dependencies(None):
            return self._concat()

    @property
    def name(self):
        """The variable's name."""
        return self._name

    @property
    def dtype(self):
        """The type of the value."""
        return self._dtype

    @property
    def shape(self):
        """The static shape of the whole."""
        return self._shape

    def get_shape(self):
        """Returns the static shape of the whole."""
        return self._shape

    def _get_variable_list(self):
        return self._variable_list

    def _get_partitions(self):
        return self._partitions

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Splits `value` and assigns each piece to its part."""
        return self._each("assign", value, use_locking, name, read_value)

    def assign_add(self, value, use_locking=False, name=None, read_value=True):
        """Splits `value` and adds each piece to its part."""
        return self._each("assign_add", value, use_locking, name, read_value)

    def assign_sub(self, value, use_locking=False, name=None, read_value=True):
        """Splits `value` and subtracts each piece from its part."""
        return self._each("assign_sub", value, use_locking, name, read_value)

    def _each(self, method, value, use_locking, name, read_value):
        from runnel.ops import array_ops
        if isinstance(value, (list, PartitionedVariable)):
            parts = list(value)
        else:
            axis = self._partition_axes()[0]
            sizes = [v.shape.as_list()[axis] for v in self._variable_list]
            parts = array_ops.split(convert.convert_to_tensor(value, self._dtype), sizes, axis=axis)
        ops = [getattr(v, method)(part, use_locking, name, read_value)
               for v, part in zip(self._variable_list, parts)]
        return ops if read_value else [getattr(op, "op", op) for op in ops]

    def __getitem__(self, item):
        return self.as_tensor()[item]


for _name in ("abs neg add radd sub rsub mul rmul div truediv rtruediv floordiv mod pow rpow matmul "
              "rmatmul lt le gt ge").split():
    setattr(PartitionedVariable, "__%s__" % _name, (lambda name: lambda self, *args: getattr(
        self.as_tensor(), name)(*args))("__%s__" % _name))


def _whole(value, dtype=None, name=None, as_ref=False):
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError("Incompatible type conversion requested to type '%s' for variable of type "
                         "'%s'" % (dtype.name, value.dtype.name))
    return value.as_tensor()


convert.register_tensor_conversion_function(PartitionedVariable, _whole)


# --- Partitioners

def fixed_size_partitioner(num_shards, axis=0):
    """Returns a partitioner that makes `num_shards` parts along an axis, or fewer if the axis is shorter."""
    def partitioner(shape, **kwargs):
        parts = [1] * len(shape)
        parts[axis] = min(num_shards, tensor_shape.dimension_value(shape.dims[axis]))
        return parts
    return partitioner


def variable_axis_size_partitioner(max_shard_bytes, axis=0, bytes_per_string_element=16,
                                   max_shards=None):
    """Returns a partitioner that makes parts of at most `max_shard_bytes` bytes."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("Both max_shard_bytes and bytes_per_string_element must be positive. "
                         "Currently: max_shard_bytes=%d, bytes_per_string_element=%d" % (
                             max_shard_bytes, bytes_per_string_element))
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape, dtype):
        shape = tensor_shape.as_shape(shape)
        if not shape.is_fully_defined():
            raise ValueError("shape is not fully defined: %s" % shape)
        dtype = dtypes.as_dtype(dtype)
        size = bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size
        parts = [1] * shape.ndims
        if shape.ndims == 0 or shape.num_elements() == 0:
            return parts
        length = tensor_shape.dimension_value(shape.dims[axis])
        slice_bytes = shape.num_elements() // length * size
        slices = max(1, max_shard_bytes // slice_bytes)
        wanted = -(-length // slices)
        if max_shards:
            wanted = min(max_shards, wanted)
        parts[axis] = wanted
        return parts
    return partitioner


def min_max_variable_partitioner(max_partitions=1, axis=0, min_slice_size=256 << 10,
                                 bytes_per_string_element=16):
    """Returns a partitioner that makes up to `max_partitions` parts of at least `min_slice_size` bytes."""
    def partitioner(shape, dtype):
        shape = tensor_shape.as_shape(shape)
        if axis >= shape.ndims:
            raise ValueError("Cannot partition variable along axis %d when shape is only %s" % (
                axis, shape))
        dtype = dtypes.as_dtype(dtype)
        size = bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size
        total = shape.num_elements() * size
        parts = [1] * shape.ndims
        wanted = max(1, min(max_partitions, -(-total // min_slice_size)))
        parts[axis] = max(1, min(wanted, tensor_shape.dimension_value(shape.dims[axis])))
        return parts
    return partitioner
