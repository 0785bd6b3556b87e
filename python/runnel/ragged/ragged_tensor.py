"""RaggedTensor: a tensor whose rows have different lengths.

All rows are in one tensor, `values`; row i goes from row_splits[i] to row_splits[i + 1]. `values` may be ragged itself;
the innermost is a tensor, `flat_values`. Importing this module makes functions of `tf` accept ragged tensors
(`ragged_functions`), so programs without them pay nothing.
"""

import collections

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert, framework, tensor_shape
from runnel.core.composite import SparseTensor
from runnel.core.framework import name_scope
from runnel.core.type_spec import CompositeTensor
from runnel.ops import array_ops, math_ops
from runnel.ragged.ragged_creation import RaggedCreation, _rows, flat_shape  # noqa: F401
from runnel.ragged.row_partition import RowPartition


class RaggedTensorValue(collections.namedtuple("RaggedTensorValue", "values row_splits")):
    """The value of a RaggedTensor in a step: arrays."""

    __slots__ = ()
    dtype = property(lambda self: self.values.dtype)
    flat_values = property(lambda self: getattr(self.values, "flat_values", self.values))
    ragged_rank = property(lambda self: getattr(self.values, "ragged_rank", 0) + 1)
    nested_row_splits = property(lambda self: (self.row_splits,) + getattr(self.values, "nested_row_splits", ()))
    shape = property(lambda self: (len(self.row_splits) - 1, None) + tuple(self.values.shape[1:]))

    def to_list(self):
        """Returns nested lists."""
        rows = self.values.to_list() if isinstance(self.values, RaggedTensorValue) else self.values.tolist()
        return [rows[a:b] for a, b in zip(self.row_splits, self.row_splits[1:])]

    def __str__(self):
        return "<tf.RaggedTensorValue %s>" % self.to_list()

    def __repr__(self):
        return "tf.RaggedTensorValue(values=%r, row_splits=%r)" % (self.values, self.row_splits)


def _long(value, name=None):
    """Converts a vector of row numbers: int32 stays, all else becomes int64."""
    tensor = convert.convert_to_tensor(value, dtype_hint=dtypes.int64, name=name)
    return tensor if tensor.dtype in (dtypes.int32, dtypes.int64) else math_ops.cast(tensor, dtypes.int64)


def _splits_of(lengths):
    """Returns the row splits of row lengths."""
    return array_ops.concat([array_ops.zeros([1], lengths.dtype), math_ops.cumsum(lengths)], 0)


def _rowids(splits):
    """Returns the row of each value."""
    count = math_ops.range(splits[-1])
    return _ops.UpperBound(array_ops.expand_dims(splits, 0), array_ops.expand_dims(count, 0), out_type=splits.dtype)[0] - 1


def _spans(starts, lengths):
    """Returns the numbers starts[i] ... starts[i] + lengths[i] - 1 of all i in one vector, and the splits between them."""
    splits = _splits_of(lengths)
    rows = _rowids(splits)
    return math_ops.range(splits[-1]) - array_ops.gather(splits, rows) + array_ops.gather(starts, rows), splits


_flat_types: list = []  # classes of composite tensors that can be flat values


def _add_supported_value_type(cls):
    """Lets objects of a class be the flat values of ragged tensors. They have a shape, a dtype, indices, and `set_shape`."""
    _flat_types.append(cls)


def as_ragged_or_tensor(value, dtype=None, name=None):
    """Returns ragged tensors and other flat values unchanged, RaggedTensorValues as constants, and all else as tensors."""
    if isinstance(value, RaggedTensor) or _flat_types and isinstance(value, tuple(_flat_types)):
        return value
    if isinstance(value, RaggedTensorValue):
        return RaggedTensor.from_row_splits(as_ragged_or_tensor(value.values, dtype), value.row_splits, validate=False)
    return convert.convert_to_tensor(value, dtype=dtype, name=name)


class RaggedTensor(RaggedCreation, CompositeTensor):
    """A tensor whose rows have different lengths. tf.ragged.constant and the from_... methods create it."""

    __module__ = "tensorflow.python.ops.ragged.ragged_tensor"  # by which libraries recognize it

    def __init__(self, values, row_partition, internal=False):
        if not internal:
            raise ValueError("RaggedTensor constructor is private; please use one of the factory methods instead "
                             "(e.g., RaggedTensor.from_row_lengths())")
        if not isinstance(row_partition, RowPartition):
            raise TypeError("Argument `row_partition` must be a RowPartition. Received %r." % (row_partition,))
        self._values, self._row_partition = values, row_partition

    @classmethod
    def _of(cls, values, row_splits):
        """Returns the ragged tensor of row splits that are known to be right."""
        return cls(values, RowPartition._of(row_splits=row_splits), internal=True)

    # Properties.

    dtype = property(lambda self: self._values.dtype)
    values = property(lambda self: self._values)
    row_splits = property(lambda self: self._row_splits)
    _row_splits = property(lambda self: self._row_partition.row_splits())
    _uniform_row_length = property(lambda self: self._row_partition.uniform_row_length())
    _nested_row_partitions = property(lambda self: (self._row_partition, *getattr(self._values, "_nested_row_partitions", ())))
    ragged_rank = property(lambda self: 1 + getattr(self._values, "ragged_rank", 0))
    nested_row_splits = property(lambda self: (self._row_splits,) + getattr(self._values, "nested_row_splits", ()))
    uniform_row_length = property(lambda self: self._uniform_row_length)
    op = property(lambda self: self.flat_values.op)
    graph = property(lambda self: self.flat_values.graph)
    name = property(lambda self: self.flat_values.name)

    @property
    def flat_values(self):
        """The innermost values, a tensor."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def shape(self):
        """The static shape, with None for rows of different lengths."""
        partition, inner = self._row_partition, self._values.shape
        if inner.ndims is None:
            return tensor_shape.unknown_shape()
        return tensor_shape.TensorShape([partition.static_nrows, partition.static_uniform_row_length] + inner.as_list()[1:])

    def get_shape(self):
        return self.shape

    def _set_shape(self, shape):
        """Refines the static shape: that of the row splits and of the values."""
        shape = tensor_shape.as_shape(shape)
        if shape.rank is None:
            return
        dims = shape.as_list()
        if dims[0] is not None:
            self._row_splits.set_shape([dims[0] + 1])
        for axis, partition in enumerate(self._nested_row_partitions, 1):
            known = partition.static_uniform_row_length
            if None not in (dims[axis], known) and dims[axis] != known:
                raise ValueError("Inconsistent size for axis %d: %s vs. %s." % (axis, known, dims[axis]))
            if dims[axis] is not None and known is None:
                partition._set_uniform(dims[axis])
        if hasattr(self.flat_values, "set_shape"):
            self.flat_values.set_shape([None] + dims[self.ragged_rank + 1:])

    @property
    def _type_spec(self):
        from runnel.core.composite_specs import RaggedTensorSpec
        return RaggedTensorSpec.from_value(self)

    def nrows(self, out_type=None, name=None):
        """Returns the number of rows."""
        with name_scope(name, "RaggedNRows"):
            rows = self._row_partition.nrows()
            return rows if out_type is None or rows.dtype == out_type else math_ops.cast(rows, out_type)

    def row_starts(self, name=None):
        """Returns where each row begins."""
        return self._row_splits[:-1]

    def row_limits(self, name=None):
        """Returns where each row ends."""
        return self._row_splits[1:]

    def row_lengths(self, axis=1, name=None):
        """Returns the lengths of the rows of a dimension."""
        with name_scope(name, "RaggedRowLengths"):
            axis = _axis(axis, self.shape.ndims)
            if axis == 0:
                return self.nrows()
            if axis == 1:
                return self._row_partition.row_lengths()
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            size = array_ops.shape(self._values, out_type=self._row_splits.dtype)[axis - 1]
            return self.with_values(array_ops.ones(array_ops.shape(self._values)[:axis - 1], self._row_splits.dtype) * size)

    def nested_row_lengths(self, name=None):
        """Returns the row lengths of all levels."""
        with name_scope(name, "RaggedNestedRowLengths"):
            return tuple(partition.row_lengths() for partition in self._nested_row_partitions)

    def value_rowids(self, name=None):
        """Returns the row of each value."""
        with name_scope(name, "RaggedValueRowIds"):
            return self._row_partition.value_rowids()

    def nested_value_rowids(self, name=None):
        """Returns the row of each value for all levels."""
        with name_scope(name, "RaggedNestedValueRowIds"):
            return tuple(partition.value_rowids() for partition in self._nested_row_partitions)

    def bounding_shape(self, axis=None, name=None, out_type=None):
        """Returns the shape of the smallest tensor that holds it."""
        with name_scope(name, "RaggedBoundingBox"):
            kind = out_type or self._row_splits.dtype
            sizes = [math_ops.cast(self.nrows(), kind)]
            for splits in self.nested_row_splits:
                lengths = array_ops.concat([array_ops.zeros([1], splits.dtype), splits[1:] - splits[:-1]], 0)
                sizes.append(math_ops.cast(math_ops.reduce_max(lengths), kind))
            whole = array_ops.concat([array_ops.stack(sizes), flat_shape(self.flat_values, kind)[1:]], 0)
            return whole if axis is None else array_ops.gather(whole, axis)

    def with_values(self, new_values):
        """Returns the same rows with other values."""
        new_values = as_ragged_or_tensor(new_values)
        new_values.shape.with_rank_at_least(1)
        self._values.shape[:1].assert_is_compatible_with(new_values.shape[:1])
        if isinstance(new_values, RaggedTensor) and new_values._row_partition.dtype != self._row_partition.dtype:
            raise ValueError("self and new_values have mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to convert them to "
                             "compatible dtypes.")
        return RaggedTensor(new_values, self._row_partition, internal=True)

    def _gradient_parts(self):
        return [self._values]

    def _with_gradients(self, gradients):
        return self.with_values(gradients[0])

    def with_flat_values(self, new_values):
        """Returns the same rows with other innermost values."""
        inner = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        return self.with_values(inner)

    def with_row_splits_dtype(self, dtype):
        """Returns the same with row splits of another type."""
        dtype = dtypes.as_dtype(dtype)
        if dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("Argument `row_splits` dtype must be int32 or int64. Received %s." % (dtype,))
        if dtype == self._row_partition.dtype:
            return self
        inner = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor(inner, self._row_partition.with_dtype(dtype), internal=True)

    def merge_dims(self, outer_axis, inner_axis):
        """Merges a range of dimensions into one."""
        rank = self.shape.ndims
        outer, inner = _axis(outer_axis, rank, "outer_axis", "rank(self)"), _axis(inner_axis, rank, "inner_axis", "rank(self)")
        if outer > inner:
            raise ValueError("Expected outer_axis (%d) to be less than or equal to inner_axis (%d)" % (outer_axis, inner_axis))
        if outer == inner:
            return self
        if outer > 1:
            return self.with_values(merge_dims(self._values, outer - 1, inner - 1))
        if outer == 0:
            return merge_dims(self._values, 0, inner - 1) if inner > 1 else self._values
        values, splits = self._values, self._row_splits
        for _ in range(inner - outer):
            if isinstance(values, RaggedTensor):
                values, splits = values._values, array_ops.gather(values._row_splits, splits)
            else:
                splits *= array_ops.shape(values, out_type=splits.dtype)[1]
                values = merge_dims(values, 0, 1)
        return RaggedTensor._of(values, splits)

    # Conversion.

    def to_tensor(self, default_value=None, name=None, shape=None):
        """Converts to a tensor, padded with `default_value` (0 or ""), and cropped or padded to `shape` if it is given."""
        with name_scope(name, "RaggedToTensor", [self.flat_values]) as scope:
            if default_value is None:
                default_value = "" if self.dtype == dtypes.string else False if self.dtype == dtypes.bool else 0
            default = convert.convert_to_tensor(default_value, dtype=self.dtype)
            dims, is_known = [-1] * self.shape.ndims if self.shape.ndims else -1, shape is None
            if shape is not None:
                try:
                    shape = tensor_shape.TensorShape(shape)
                    is_known = shape.ndims is not None
                    dims = [-1 if d is None else d for d in shape.as_list()] if is_known else -1
                except TypeError:  # it has tensors
                    dims = math_ops.cast(convert.convert_to_tensor(shape), dtypes.int64)
            kinds = ["ROW_SPLITS"] * self.ragged_rank
            filled = _ops.RaggedTensorToTensor(convert.convert_to_tensor(dims, dtypes.int64), self.flat_values, default,
                                               list(self.nested_row_splits), row_partition_types=kinds, name=scope)
            if filled.op is not None:  # in a graph, refine the static shape
                known = self.shape.as_list() if self.shape.ndims else None
                if not is_known:
                    known = None if known is None else [None] * len(known)
                elif shape is not None and known is not None:
                    known = [own if wanted is None else wanted for own, wanted in zip(known, shape.as_list())]
                filled.set_shape(tensor_shape.TensorShape(known))
            return filled

    def to_sparse(self, name=None):
        """Converts to a sparse tensor."""
        with name_scope(name, "RaggedToSparse", [self.flat_values]):
            flat, columns = self.flat_values, None
            for splits in self.nested_row_splits:
                rows = _rowids(splits)
                above = array_ops.expand_dims(math_ops.range(array_ops.shape(splits, out_type=splits.dtype)[0] - 1), 1) if columns is None else columns
                within = math_ops.range(splits[-1]) - array_ops.gather(splits, rows)
                columns = array_ops.concat([array_ops.gather(above, rows), array_ops.expand_dims(within, 1)], 1)
            if flat._rank() != 1:
                places = array_ops.where(array_ops.ones_like(flat, dtypes.bool))
                columns = array_ops.concat([math_ops.cast(array_ops.gather(columns, places[:, 0]), dtypes.int64), places[:, 1:]], 1)
                flat = array_ops.reshape(flat, [-1])
            return SparseTensor(math_ops.cast(columns, dtypes.int64), flat, self.bounding_shape(out_type=dtypes.int64))

    def _to_variant(self, batched_input=False, name=None):
        """Converts to a variant, or to a vector of one variant per row."""
        with name_scope(name, "RaggedToVariant", [self.flat_values]):
            return _ops.RaggedTensorToVariant(rt_nested_splits=list(self.nested_row_splits), rt_dense_values=self.flat_values,
                                              batched_input=batched_input)

    @classmethod
    def _from_variant(cls, variant, dtype, output_ragged_rank, input_ragged_rank=None, row_splits_dtype=dtypes.int64, name=None):
        """Converts what _to_variant made back, to a ragged tensor or, of rank 0, to a tensor."""
        variant = convert.convert_to_tensor(variant, name="variant", dtype=dtypes.variant)
        if variant.shape.ndims is not None and input_ragged_rank is not None and output_ragged_rank != input_ragged_rank + variant.shape.ndims:
            raise ValueError("Argument `output_ragged_rank` (%d) must be equal to `input_ragged_rank` + `variant.shape.ndims` (%d)." % (
                output_ragged_rank, input_ragged_rank + variant.shape.ndims))
        with name_scope(name, "RaggedFromVariant", [variant]):
            splits, values = _ops.RaggedTensorFromVariant(
                encoded_ragged=variant, input_ragged_rank=-1 if input_ragged_rank is None else input_ragged_rank,
                output_ragged_rank=max(output_ragged_rank, 0), Tvalues=dtype, Tsplits=row_splits_dtype)
            return cls.from_nested_row_splits(values, splits, validate=False)

    def to_list(self):
        """Returns nested lists; for eager execution only."""
        return self._eager_value().to_list()

    def numpy(self):
        """Returns an array of arrays, or one array if all rows have one length; for eager execution only."""
        import numpy as np
        rows = [self._values[a:b].numpy() for a, b in zip(self._row_splits.numpy(), self._row_splits.numpy()[1:])]
        if len({row.shape for row in rows}) <= 1:
            return np.array(rows)
        result = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            result[i] = row
        return result

    def _eager_value(self):
        if getattr(self.flat_values, "op", None) is not None:
            raise ValueError("RaggedTensor.to_list() is only supported in eager mode; in graph mode, evaluate the RaggedTensor "
                             "first and then use RaggedTensorValue.to_list().")
        if isinstance(self._values, RaggedTensor):
            inner = self._values._eager_value()
        elif hasattr(self._values, "to_list"):
            import numpy as np
            inner = np.array(self._values.to_list())
        elif hasattr(self._values, "numpy"):
            inner = self._values.numpy()
        else:
            raise ValueError("values must be convertible to a list")
        return RaggedTensorValue(inner, self._row_splits.numpy())

    def eval(self, feed_dict=None, session=None):
        """Returns its RaggedTensorValue in a session."""
        return framework._session_for(self.graph, session).run(self, feed_dict)

    def consumers(self):
        return [op for tensor in (self.flat_values,) + self.nested_row_splits for op in tensor.consumers()]

    def __repr__(self):
        if self.flat_values.op is None:
            return "<tf.RaggedTensor %s>" % self.to_list()
        return "tf.RaggedTensor(values=%s, row_splits=%s)" % (self._values, self._row_splits)

    def __eq__(self, other):
        if other is None or not _compares_elements():
            return self is other
        import runnel
        return runnel.equal(self, other)

    def __ne__(self, other):
        if other is None or not _compares_elements():
            return self is not other
        import runnel
        return runnel.not_equal(self, other)

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __len__(self):
        if self._row_splits.op is not None:
            raise TypeError("len is not well defined for a symbolic RaggedTensor: use nrows()")
        return len(self._row_splits.numpy()) - 1

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        from runnel.ragged import ragged_functions
        with name_scope(None, "RaggedGetItem", [self.flat_values]):
            return ragged_functions.get_item(self, tuple(key) if isinstance(key, (list, tuple)) else (key,))


def _compares_elements():
    from runnel.eager import context
    return framework.Tensor._USE_EQUALITY and context.executing_eagerly_outside_functions()


def match_row_splits_dtypes(*tensors, **kwargs):
    """Returns tensors, of which the ragged ones must have row splits of one type; with return_dtype=True, that type before them."""
    kinds = {tensor.row_splits.dtype for tensor in tensors if isinstance(tensor, RaggedTensor)}
    if len(kinds) > 1:
        raise ValueError("Input RaggedTensors have mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to convert them to "
                         "compatible dtypes.")
    return (kinds.pop() if kinds else None, tensors) if kwargs.get("return_dtype") else tensors


def merge_dims(value, outer, inner):
    """Merges a range of dimensions of a tensor or a ragged tensor into one."""
    if isinstance(value, RaggedTensor):
        return value.merge_dims(outer, inner)
    shape = array_ops.shape(value)
    return array_ops.reshape(value, array_ops.concat([shape[:outer], [-1], shape[inner + 1:]], 0))


def _axis(axis, rank, axis_name="axis", ndims_name="ndims"):
    """Returns a non-negative axis. The names are those of the arguments in messages."""
    if not isinstance(axis, int):
        raise TypeError("%s must be an int; got %s" % (axis_name, type(axis).__name__))
    if rank is not None:
        if not -rank <= axis < rank:
            raise ValueError("%s=%s out of bounds: expected %s<=%s<%s" % (axis_name, axis, -rank, axis_name, rank))
        return axis + rank if axis < 0 else axis
    if axis < 0:
        raise ValueError("%s=%s may only be negative if %s is statically known." % (axis_name, axis, ndims_name))
    return axis


def _fetch(value):
    def contract(parts):
        result = parts[0]
        for splits in reversed(parts[1:]):
            result = RaggedTensorValue(result, splits)
        return result

    return [value.flat_values, *value.nested_row_splits], contract


def _feed(value, fed):
    return list(zip((value.flat_values,) + value.nested_row_splits, (fed.flat_values,) + fed.nested_row_splits))


def _no_tensor(value, dtype=None, name=None, as_ref=False):
    raise TypeError("This function does not support ragged tensors: %r. (If it does, it was looked up before ragged tensors were "
                    "first used: run `import runnel.ragged` at the start of the program.)" % (value,))


def _register():
    from runnel.core import session
    from runnel.ragged import ragged_functions
    for kind in RaggedTensor, RaggedTensorValue:
        convert.register_tensor_conversion_function(kind, _no_tensor, 0)
    session.register_session_run_conversion_functions(RaggedTensor, _fetch, _feed, lambda value: [value.flat_values, *value.nested_row_splits])
    ragged_functions.install()


_register()
