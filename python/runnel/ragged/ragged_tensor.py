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


def as_ragged_or_tensor(value, dtype=None, name=None):
    """Returns ragged tensors unchanged, RaggedTensorValues as constants, and all else as tensors."""
    if isinstance(value, RaggedTensor):
        return value
    if isinstance(value, RaggedTensorValue):
        return RaggedTensor.from_row_splits(as_ragged_or_tensor(value.values), value.row_splits, validate=False)
    return convert.convert_to_tensor(value, dtype=dtype, name=name)


class RaggedTensor(CompositeTensor):
    """A tensor whose rows have different lengths. tf.ragged.constant and the from_... methods create it."""

    __module__ = "tensorflow.python.ops.ragged.ragged_tensor"  # by which libraries recognize it

    def __init__(self, values, row_splits, internal=False, uniform_row_length=None):
        if not internal:
            raise ValueError("RaggedTensor constructor is private; please use one of the factory methods instead "
                             "(e.g., RaggedTensor.from_row_lengths())")
        self._values, self._row_splits, self._uniform_row_length = values, row_splits, uniform_row_length
        row_splits.shape.assert_has_rank(1)

    # Creation.

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Creates a ragged tensor whose row i is values[row_splits[i]:row_splits[i + 1]]."""
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with name_scope(name, "RaggedFromRowSplits", [row_splits]):
            values, splits = as_ragged_or_tensor(values, name="values"), _long(row_splits, "row_splits")
            splits.shape.assert_has_rank(1)
            if validate:
                splits = _checked(splits, values)
            return cls(values, splits, internal=True)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Creates a ragged tensor whose row i has row_lengths[i] values."""
        with name_scope(name, "RaggedFromRowLengths", [row_lengths]):
            return cls.from_row_splits(values, _splits_of(_long(row_lengths, "row_lengths")), validate=validate)

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        """Creates a ragged tensor whose row i begins at row_starts[i]."""
        with name_scope(name, "RaggedFromRowStarts", [row_starts]):
            values, starts = as_ragged_or_tensor(values), _long(row_starts, "row_starts")
            return cls.from_row_splits(values, array_ops.concat([starts, [_rows(values, starts.dtype)]], 0), validate=validate)

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        """Creates a ragged tensor whose row i ends before row_limits[i]."""
        with name_scope(name, "RaggedFromRowLimits", [row_limits]):
            limits = _long(row_limits, "row_limits")
            return cls.from_row_splits(values, array_ops.concat([array_ops.zeros([1], limits.dtype), limits], 0), validate=validate)

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        """Creates a ragged tensor in which value i belongs to row value_rowids[i]."""
        with name_scope(name, "RaggedFromValueRowIds", [value_rowids]):
            ids = _long(value_rowids, "value_rowids")
            if nrows is None:
                nrows = math_ops.reduce_max(array_ops.concat([ids, array_ops.fill([1], math_ops.cast(-1, ids.dtype))], 0)) + 1
            nrows = math_ops.cast(nrows, ids.dtype)
            lengths = _ops.UnsortedSegmentSum(array_ops.ones_like(ids), ids, nrows)
            made = cls.from_row_splits(values, _splits_of(lengths), validate=validate)
            known = convert.constant_value(nrows)
            if known is not None:
                made._row_splits.set_shape([int(known) + 1])
            return made

    @classmethod
    def from_uniform_row_length(cls, values, uniform_row_length, nrows=None, validate=True, name=None):
        """Creates a ragged tensor whose rows all have one length. `nrows` is needed only if that is 0."""
        with name_scope(name, "RaggedFromUniformRowLength", [uniform_row_length]):
            values = as_ragged_or_tensor(values, name="values")
            length = convert.convert_to_tensor(uniform_row_length, dtype_hint=dtypes.int64)
            if isinstance(values, RaggedTensor) and length.dtype != values._row_splits.dtype:
                length = math_ops.cast(length, values._row_splits.dtype)
            if length.dtype not in (dtypes.int32, dtypes.int64):
                length = math_ops.cast(length, dtypes.int64)
            size, known = _rows(values, length.dtype), convert.constant_value(length)
            static = values.shape.as_list()[0] if values.shape.rank else None
            rows = None if nrows is None else convert.constant_value(convert.convert_to_tensor(nrows))
            if known is not None and static is not None and rows is None and int(known) > 0:
                rows = static // int(known)
            if validate:
                _check_uniform(known, static, rows)
            count = math_ops.cast(nrows, length.dtype) if nrows is not None else convert.convert_to_tensor(
                rows, length.dtype) if rows is not None else _ops.FloorDiv(size, _ops.Maximum(length, 1))
            splits = math_ops.range(count + 1) * length
            if rows is not None:
                splits.set_shape([int(rows) + 1])
            return cls(values, splits, internal=True, uniform_row_length=length)

    @classmethod
    def from_nested_value_rowids(cls, flat_values, nested_value_rowids, nested_nrows=None, name=None, validate=True):
        """Creates a ragged tensor from the rows of the values of all levels, the outermost first."""
        nested = list(nested_value_rowids)
        counts = [None] * len(nested) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested):
            raise ValueError("Argument `nested_nrows` must have the same length as argument `nested_value_rowids`. len(nested_nrows) = %d vs. "
                             "len(nested_values_rowids) = %d." % (len(counts), len(nested)))
        with name_scope(name, "RaggedFromNestedValueRowIds", [flat_values]):
            result = flat_values
            for rowids, nrows in zip(reversed(nested), reversed(counts)):
                result = cls.from_value_rowids(result, rowids, nrows, validate=validate)
            return result

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        """Creates a ragged tensor from the row splits of all levels, the outermost first."""
        with name_scope(name, "RaggedFromNestedRowSplits", [flat_values]):
            result = flat_values
            for splits in reversed(list(nested_row_splits)):
                result = cls.from_row_splits(result, splits, validate=validate)
            return result

    @classmethod
    def from_nested_row_lengths(cls, flat_values, nested_row_lengths, name=None, validate=True):
        """Creates a ragged tensor from the row lengths of all levels, the outermost first."""
        with name_scope(name, "RaggedFromNestedRowlengths", [flat_values]):
            result = flat_values
            for lengths in reversed(list(nested_row_lengths)):
                result = cls.from_row_lengths(result, lengths, validate=validate)
            return result

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype=dtypes.int64):
        """Converts a tensor; its rows have the given lengths, or lose the `padding` at their ends."""
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
            tensor = convert.convert_to_tensor(tensor, name="tensor")
            if tensor.shape.rank is not None and tensor.shape.rank < 2:
                raise ValueError("Argument `tensor` must have rank greater than 1; its shape is %s" % tensor.shape)
            if isinstance(lengths, (list, tuple)) and len(lengths) and all(getattr(x, "shape", ()) or isinstance(x, (list, tuple)) for x in lengths):
                outer = cls.from_tensor(tensor, lengths[0], row_splits_dtype=row_splits_dtype)
                inner = list(lengths[1:])
                return outer.with_values(cls.from_tensor(outer.values, inner, row_splits_dtype=row_splits_dtype)) if inner else outer
            shape = array_ops.shape(tensor, out_type=row_splits_dtype)
            if ragged_rank > 1:
                if lengths is not None or padding is not None:
                    raise NotImplementedError("from_tensor does not support lengths or padding with ragged_rank > 1")
                inner = cls.from_tensor(array_ops.reshape(tensor, array_ops.concat([[shape[0] * shape[1]], shape[2:]], 0)),
                                        ragged_rank=ragged_rank - 1, row_splits_dtype=row_splits_dtype)
                return cls.from_row_splits(inner, math_ops.range(shape[0] + 1) * shape[1], validate=False)
            if padding is not None:
                padding = convert.convert_to_tensor(padding, dtype=tensor.dtype, name="padding")
                there = math_ops.not_equal(tensor, padding)
                if tensor._rank() > 2:
                    there = math_ops.reduce_any(there, axis=list(range(2, tensor._rank())))
                places = math_ops.range(1, shape[1] + 1) * math_ops.cast(there, row_splits_dtype)
                lengths = math_ops.reduce_max(places, 1)
            if lengths is None:
                lengths = array_ops.fill([shape[0]], shape[1])
                values = array_ops.reshape(tensor, array_ops.concat([[-1], shape[2:]], 0))
            else:
                lengths = _ops.Minimum(_ops.Maximum(math_ops.cast(lengths, row_splits_dtype), 0), shape[1])
                values = _ops.GatherNd(tensor, array_ops.where(array_ops.sequence_mask(lengths, shape[1])))
            return cls.from_row_lengths(values, lengths, validate=False)

    @classmethod
    def from_sparse(cls, st_input, name=None, row_splits_dtype=dtypes.int64):
        """Converts a 2-D sparse tensor whose entries are at the start of each row."""
        if not isinstance(st_input, SparseTensor):
            raise TypeError("Argument `st_input` must be of type SparseTensor, but is of type %s." % type(st_input).__name__)
        with name_scope(name, "RaggedFromSparse", [st_input.values]):
            ids = math_ops.cast(st_input.indices[:, 0], row_splits_dtype)
            return cls.from_value_rowids(st_input.values, ids, nrows=st_input.dense_shape[0], validate=False)

    # Properties.

    dtype = property(lambda self: self._values.dtype)
    values = property(lambda self: self._values)
    row_splits = property(lambda self: self._row_splits)
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
        rows = self._row_splits.shape.as_list()[0] if self._row_splits.shape.rank else None
        inner = self._values.shape
        length = None if self._uniform_row_length is None else convert.constant_value(self._uniform_row_length)
        outer = [None if rows is None else rows - 1, None if length is None else int(length)]
        if inner.ndims is None:
            return tensor_shape.unknown_shape()
        return tensor_shape.TensorShape(outer + inner.as_list()[1:])

    def get_shape(self):
        return self.shape

    def _set_shape(self, shape):
        """Refines the static shape: that of the row splits and of the values."""
        dims = tensor_shape.as_shape(shape).as_list()
        if dims[0] is not None:
            self._row_splits.set_shape([dims[0] + 1])
        if isinstance(self._values, RaggedTensor):
            self._values._set_shape([None] + dims[2:])
        else:
            self._values.set_shape([None] + dims[2:])

    @property
    def _type_spec(self):
        from runnel.core.composite_specs import RaggedTensorSpec
        return RaggedTensorSpec.from_value(self)

    def nrows(self, out_type=None, name=None):
        """Returns the number of rows."""
        with name_scope(name, "RaggedNRows"):
            return array_ops.shape(self._row_splits, out_type=out_type or self._row_splits.dtype)[0] - 1

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
                return self._row_splits[1:] - self._row_splits[:-1]
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            size = array_ops.shape(self._values, out_type=self._row_splits.dtype)[axis - 1]
            return self.with_values(array_ops.ones(array_ops.shape(self._values)[:axis - 1], self._row_splits.dtype) * size)

    def nested_row_lengths(self, name=None):
        """Returns the row lengths of all levels."""
        return tuple(splits[1:] - splits[:-1] for splits in self.nested_row_splits)

    def value_rowids(self, name=None):
        """Returns the row of each value."""
        with name_scope(name, "RaggedValueRowIds"):
            return _rowids(self._row_splits)

    def nested_value_rowids(self, name=None):
        """Returns the row of each value for all levels."""
        return tuple(_rowids(splits) for splits in self.nested_row_splits)

    def bounding_shape(self, axis=None, name=None, out_type=None):
        """Returns the shape of the smallest tensor that holds it."""
        with name_scope(name, "RaggedBoundingBox"):
            kind = out_type or self._row_splits.dtype
            sizes = [math_ops.cast(self.nrows(), kind)]
            for splits in self.nested_row_splits:
                lengths = array_ops.concat([array_ops.zeros([1], splits.dtype), splits[1:] - splits[:-1]], 0)
                sizes.append(math_ops.cast(math_ops.reduce_max(lengths), kind))
            whole = array_ops.concat([array_ops.stack(sizes), array_ops.shape(self.flat_values, out_type=kind)[1:]], 0)
            return whole if axis is None else array_ops.gather(whole, axis)

    def with_values(self, new_values):
        """Returns the same rows with other values."""
        return RaggedTensor(as_ragged_or_tensor(new_values), self._row_splits, internal=True, uniform_row_length=self._uniform_row_length)

    def with_flat_values(self, new_values):
        """Returns the same rows with other innermost values."""
        inner = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        return self.with_values(inner)

    def with_row_splits_dtype(self, dtype):
        """Returns the same with row splits of another type."""
        inner = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor(inner, math_ops.cast(self._row_splits, dtype), internal=True)

    def merge_dims(self, outer_axis, inner_axis):
        """Merges a range of dimensions into one."""
        rank = self.shape.ndims
        outer, inner = _axis(outer_axis, rank), _axis(inner_axis, rank)
        if outer >= inner:
            raise ValueError("Expected outer_axis (%d) to be less than inner_axis (%d)" % (outer_axis, inner_axis))
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
        return RaggedTensor(values, splits, internal=True)

    # Conversion.

    def to_tensor(self, default_value=None, name=None, shape=None):
        """Converts to a tensor, padded with `default_value` (0 or ""), and cropped or padded to `shape` if it is given."""
        with name_scope(name, "RaggedToTensor", [self.flat_values]) as scope:
            if default_value is None:
                default_value = "" if self.dtype == dtypes.string else False if self.dtype == dtypes.bool else 0
            default = convert.convert_to_tensor(default_value, dtype=self.dtype)
            dims = [-1] * self.shape.ndims if self.shape.ndims else -1
            if shape is not None:
                dims = [-1 if d is None else d for d in tensor_shape.TensorShape(shape).as_list()]
            kinds = ["ROW_SPLITS"] * self.ragged_rank
            filled = _ops.RaggedTensorToTensor(convert.convert_to_tensor(dims, dtypes.int64), self.flat_values, default,
                                               list(self.nested_row_splits), row_partition_types=kinds, name=scope)
            if filled.op is not None:  # in a graph, refine the static shape
                known = self.shape.as_list() if self.shape.ndims else None
                if shape is not None and known is not None:
                    known = [own if wanted is None else wanted for own, wanted in zip(known, tensor_shape.TensorShape(shape).as_list())]
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
        if self.flat_values.op is not None:
            raise ValueError("RaggedTensor.to_list() is only supported in eager mode; in graph mode, evaluate the RaggedTensor "
                             "first and then use RaggedTensorValue.to_list().")
        inner = self._values._eager_value() if isinstance(self._values, RaggedTensor) else self._values.numpy()
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

    def __bool__(self):
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __len__(self):
        if self._row_splits.op is not None:
            raise TypeError("len is not well defined for a symbolic RaggedTensor: use nrows()")
        return len(self._row_splits.numpy()) - 1

    def __getitem__(self, key):
        from runnel.ragged import ragged_functions
        with name_scope(None, "RaggedGetItem", [self.flat_values]):
            return ragged_functions.get_item(self, key if isinstance(key, tuple) else (key,))


def merge_dims(value, outer, inner):
    """Merges a range of dimensions of a tensor or a ragged tensor into one."""
    if isinstance(value, RaggedTensor):
        return value.merge_dims(outer, inner)
    shape = array_ops.shape(value)
    return array_ops.reshape(value, array_ops.concat([shape[:outer], [-1], shape[inner + 1:]], 0))


def _axis(axis, rank):
    """Returns a non-negative axis."""
    if axis >= 0:
        return axis
    if rank is None:
        raise ValueError("axis=%s may only be negative if ndims is statically known." % axis)
    return axis + rank


def _rows(values, dtype):
    """Returns the size of the first dimension."""
    return values.nrows(dtype) if isinstance(values, RaggedTensor) else array_ops.shape(values, out_type=dtype)[0]


def _check_uniform(length, size, rows):
    """Raises ValueError if the numbers that are known do not agree."""
    if length is not None and int(length) < 0:
        raise ValueError("uniform_row_length must be greater than or equal to zero")
    if length is None or size is None:
        return
    if int(length) == 0 and size or int(length) and size % int(length):
        raise ValueError("uniform_row_length must divide evenly: %d values, rows of %d" % (size, int(length)))
    if rows is not None and int(rows) * int(length) != size:
        raise ValueError("The number of values %d does not match %d rows of %d" % (size, int(rows), int(length)))


def _checked(splits, values):
    """Returns row splits that fit: checked at once if they are known, otherwise in the step."""
    import numpy as np

    from runnel.ops import check_ops
    known = convert.constant_value(splits)
    if known is not None:
        size = values.shape.dims[0].value if values.shape.ndims else None
        wrong = len(known) == 0 or known[0] != 0 or np.any(np.diff(known) < 0) or (size is not None and known[-1] != size)
        if wrong:
            from runnel import errors
            raise errors.InvalidArgumentError(None, None, "Arguments to from_row_splits do not form a valid RaggedTensor: %s for %s values" % (
                known.tolist(), size))
        if size is not None:
            return splits
    message = "Arguments to from_row_splits do not form a valid RaggedTensor:"
    checks = [check_ops.assert_equal(splits[0], math_ops.cast(0, splits.dtype), message=message + "zero"),
              check_ops.assert_non_negative(splits[1:] - splits[:-1], message=message + "monotonic"),
              check_ops.assert_equal(splits[-1], _rows(values, splits.dtype), message=message + "nvals")]
    with framework.control_dependencies([check for check in checks if check is not None]):
        return array_ops.identity(splits)


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
