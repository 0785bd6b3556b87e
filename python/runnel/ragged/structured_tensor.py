"""tf.experimental.StructuredTensor: a tensor of records, whose named fields are tensors.

The fields are columns: each is a tensor, a ragged tensor, a structured tensor or an extension type, of at least as many dimensions as
the records. The records' shape is a DynamicRaggedShape; what one field knows of the row partitions, all share.
"""

import re
import typing

from runnel import dtypes, nest
from runnel.core import tensor_shape
from runnel.core.composite_specs import RaggedTensorSpec
from runnel.core.framework import Tensor, name_scope
from runnel.core.type_spec import TensorSpec, TypeSpec
from runnel.extension_types.extension_type import BatchableExtensionType, ExtensionType
from runnel.ops import array_ops
from runnel.ragged import ragged_tensor, structured_values
from runnel.ragged.dynamic_ragged_shape import DynamicRaggedShape, ones
from runnel.ragged.ragged_tensor import RaggedTensor, _axis
from runnel.ragged.row_partition import RowPartition

_FIELD_NAME = re.compile("^[a-zA-Z][a-zA-Z0-9_]*$")


class _Spec:
    """What StructuredTensor.Spec has besides the methods of an extension type's description."""

    def __validate__(self):
        assert self._ragged_shape is not None

    @classmethod
    def _from_fields_and_rank(cls, fields, rank):
        """Returns the description of records with `rank` dimensions."""
        shape = None
        for name, spec in fields.items():
            found = _outer_shape_spec(name, spec, rank)
            shape = found if shape is None else shape._merge_with(found)
        return cls(_ragged_shape=shape, _fields=fields)

    @classmethod
    def _from_shape(cls, shape):
        """Returns the description of records without fields."""
        return cls(_ragged_shape=shape, _fields={})

    _field_specs = property(lambda self: self._fields)
    rank = property(lambda self: self._ragged_shape.rank)
    shape = property(lambda self: self._ragged_shape._to_tensor_shape())
    _shape = shape


def _outer_shape_spec(name, spec, rank):
    """Returns the description of a field's first dimensions."""
    whole = spec._ragged_shape if isinstance(spec, StructuredTensor.Spec) else None
    if isinstance(spec, (TensorSpec, RaggedTensorSpec, DynamicRaggedShape.Spec)):
        whole = DynamicRaggedShape.Spec._from_spec(spec)
    if whole is None:
        raise ValueError("Cannot convert spec of %s." % name)
    if whole.rank is not None and whole.rank < rank:
        raise ValueError("Rank of field %s is %d, but must be at least %d." % (name, whole.rank, rank))
    return whole._truncate(rank)


class StructuredTensor(BatchableExtensionType):
    """A tensor of records with named fields.

        records = tf.experimental.StructuredTensor.from_pyval([{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}])
        records.field_value("tags")  # a ragged tensor
        records[0, "id"]             # 1
    """

    _fields: typing.Mapping[str, typing.Union[Tensor, RaggedTensor, ExtensionType]]  # noqa: UP006
    _ragged_shape: DynamicRaggedShape
    __name__ = "tf.StructuredTensor"
    Spec = _Spec

    def __init__(self, fields, ragged_shape):
        self._fields = fields
        self._ragged_shape = ragged_shape

    # Creation.

    @classmethod
    def from_shape(cls, ragged_shape):
        """Creates records without fields."""
        return cls({}, ragged_shape)

    @classmethod
    def from_fields(cls, fields, shape=(), nrows=None, row_partitions=None, validate=False):
        """Creates records of a static shape. Where that does not say all, `nrows`, `row_partitions` or the fields must."""
        shape = tensor_shape.as_shape(shape)
        if shape.rank is None:
            raise ValueError("StructuredTensor's shape must have known rank.")
        if not isinstance(fields, dict):
            raise TypeError("fields must be a dictionary, got %s" % type(fields).__name__)
        if shape.rank < 2 and row_partitions:
            raise ValueError("row_partitions must be None or [] if shape.rank<2")
        if shape.rank == 0 and nrows is not None:
            raise ValueError("nrows must be None if shape.rank==0")
        if row_partitions is not None and len(row_partitions) != max(0, shape.rank - 1):
            raise ValueError("len(row_partitions) must be shape.rank-1")
        with name_scope(None, "StructuredTensor", list(fields.values())):
            fields = _checked(fields)
            found = _shape_of(fields, shape, nrows, row_partitions)
            if found.rank > 1:
                found = found._with_num_row_partitions(found.rank - 1)
            return cls({name: _with_partitions(value, row_partitions) for name, value in fields.items()}, found)

    @classmethod
    def from_fields_and_rank(cls, fields, rank, validate=False, dtype=None):
        """Creates records with `rank` dimensions, whose shape is that of the fields."""
        if not fields:
            raise ValueError("Must provide at least one field")
        if not isinstance(rank, int):
            raise ValueError("rank must be an integer")
        if rank < 0:
            raise ValueError("rank must be nonnegative")
        fields = {name: _converted(value) for name, value in fields.items()}
        dtype = dtype or _common_dtype(fields.values())
        fields = {name: _with_dtype(value, dtype) for name, value in fields.items()}
        shape = _shape_of_fields(fields, rank, dtype)
        if rank > 1:
            shape = shape._with_num_row_partitions(rank - 1)
        return cls({name: _with_partitions(value, shape.row_partitions) for name, value in fields.items()}, shape)

    @classmethod
    def _of(cls, fields, ragged_shape):
        """Creates records of a shape, which the fields have."""
        if ragged_shape.rank < 2:
            return cls(fields, ragged_shape)
        ragged_shape = ragged_shape._with_num_row_partitions(ragged_shape.rank - 1)
        return cls({name: _with_partitions(value, ragged_shape.row_partitions) for name, value in fields.items()}, ragged_shape)

    @classmethod
    def from_pyval(cls, pyval, typespec=None):
        """Creates records of dicts and nested lists of dicts."""
        return structured_values.from_pyval(pyval, typespec, ())

    def to_pyval(self):
        """Returns dicts, or nested lists of dicts; for eager execution only."""
        return structured_values.to_pyval(self)

    # Its parts.

    rank = property(lambda self: self._ragged_shape.rank)
    shape = property(lambda self: self._ragged_shape._to_tensor_shape())
    row_partitions = property(lambda self: () if self.rank < 2 else self._ragged_shape._as_row_partitions())
    _row_partitions = row_partitions

    def nrows(self):
        """Returns the number of rows, None for a single record."""
        return None if self.rank == 0 else self._ragged_shape[0]

    def field_names(self):
        """Returns the names of the fields."""
        return tuple(self._fields)

    def field_value(self, field_name):
        """Returns a field. A list or tuple of names is the path to a field of a field."""
        if not isinstance(field_name, (list, tuple)):
            return self._fields[field_name]
        value = self
        for name in field_name:
            if not isinstance(value, StructuredTensor):
                raise KeyError("Field path %s not found in %s" % (field_name, self))
            value = value.field_value(name)
        return value

    def __getitem__(self, key):
        key = tuple(key) if isinstance(key, list) else key if isinstance(key, tuple) else (key,)
        if not key:
            return self
        if self.rank == 0 and isinstance(key[0], slice) and key[0] == slice(None):
            return StructuredTensor.from_fields({name: value[key[1:]] if key[1:] else value for name, value in self._fields.items()}, self.shape)
        if self.rank == 0 and not isinstance(key[0], (str, bytes)):
            raise ValueError("Key for indexing a StructuredTensor must be a string or a full slice (':')")
        if len(key) > self.rank:
            if not isinstance(key[self.rank], (str, bytes)):
                raise ValueError("Key for indexing a StructuredTensor must be a string")
            field, rest = self._fields[key[self.rank]], key[:self.rank] + key[self.rank + 1:]
            for one in key[self.rank + 1:]:
                _check_key(one, isinstance(field, StructuredTensor))
            return field[rest] if rest else field
        for one in key:
            _check_key(one, False)
        shape = DynamicRaggedShape.from_tensor(ones(self._ragged_shape, dtypes.bool)[key], self._ragged_shape.dtype)
        return StructuredTensor._of({name: value[key] for name, value in self._fields.items()}, shape)

    def __repr__(self):
        rows = ['"%s": %s' % (name, str(value).replace("\n", "\n            ")) for name, value in sorted(self._fields.items())]
        return "<StructuredTensor(\n    fields={\n        %s},\n    shape=%s)>" % (",\n        ".join(rows), self.shape)

    def _is_eager(self):
        return all(hasattr(part, "numpy") for part in nest.flatten(self, expand_composites=True))

    # Changes.

    def with_shape_dtype(self, dtype):
        """Returns the records with row partitions of another type."""
        if dtype == self._ragged_shape.dtype:
            return self
        return StructuredTensor({name: _with_dtype(value, dtype) for name, value in self._fields.items()}, self._ragged_shape.with_dtype(dtype))

    def with_updates(self, updates, validate=False):
        """Returns the records with fields set, changed by a function, or removed (None). A tuple of names is a path."""
        rows = sorted(((name,) if isinstance(name, str) else tuple(name), value) for name, value in updates.items())
        for (above, _), (below, _) in zip(rows, rows[1:]):
            if below[:len(above)] == above:
                raise ValueError(_UPDATES + "does not allow both parent and child nodes to be updated: parent=%s, child=%s. If needed you can "
                                 "update child nodes in the parent update value." % (above, below))
        return self._updated((), rows)

    def _updated(self, path, rows):
        fields = dict(self._fields)
        for name, value in rows:
            full = path + name[:1]
            if not name or not name[0]:
                raise ValueError(_UPDATES + "does not allow empty names %s." % (path + name,))
            if len(name) > 1:
                fields[name[0]] = _child(fields, path, name)._updated(full, [(name[1:], value)])
                continue
            if name[0] not in fields and (value is None or callable(value)):
                raise ValueError(_UPDATES + ("cannot delete field %s because it is not present." if value is None else "cannot update the field %s "
                                             "because a transforming function was given, but that field does not already exist.") % (full,))
            if value is None:
                del fields[name[0]]
            else:
                fields[name[0]] = value(fields[name[0]]) if callable(value) else value
        try:
            return StructuredTensor.from_fields(fields, self.shape, self.nrows(), self.row_partitions)
        except ValueError as error:
            raise ValueError("`StructuredTensor.with_updates` failed" + (" for field %s" % (path,) if path else "")) from error

    def promote(self, source_path, new_name):
        """Returns the records with a field of a field as a field of the record above. Its inner dimensions are merged."""
        if not isinstance(new_name, str):
            raise ValueError("new_name is not a string")
        if not isinstance(source_path, (list, tuple)):
            raise ValueError("source_path must be a list or tuple")
        if len(source_path) < 2:
            raise ValueError("source_path must have length at least two")
        value, rank = self.field_value(source_path), self.field_value(source_path[:-2]).rank
        inner = self.field_value(source_path[:-1]).rank
        if inner != rank:
            if value.shape.rank is None:
                raise ValueError("Cannot determine if dimensions should be merged.")
            last = min(inner, value.shape.rank - 1)
            value = value if last <= rank else merge_dims(value, rank, last)
        return self.with_updates({tuple(source_path[:-2]) + (new_name,): value})

    def partition_outer_dimension(self, row_partition):
        """Returns the records with the first dimension divided into rows."""
        if not isinstance(row_partition, RowPartition):
            raise TypeError("row_partition must be a RowPartition.")
        if self.rank == 0:
            raise ValueError("Shape %s must have rank at least 1" % self.shape)
        fields = {name: _partitioned(value, row_partition) for name, value in self._fields.items()}
        outer = tensor_shape.TensorShape([row_partition.static_nrows, row_partition.static_uniform_row_length])
        return StructuredTensor(fields, _shape_of(fields, outer.concatenate(self.shape[1:]), row_partition.nrows(), (row_partition, *self.row_partitions)))

    def merge_dims(self, outer_axis, inner_axis):
        """Returns the records with a range of dimensions merged into one."""
        outer = _axis(outer_axis, self.rank, "outer_axis", "rank(self)")
        inner = _axis(inner_axis, self.rank, "inner_axis", "rank(self)")
        if outer > inner:
            raise ValueError("Expected outer_axis (%d) to be less than or equal to inner_axis (%d)" % (outer, inner))
        return StructuredTensor({name: merge_dims(value, outer, inner) for name, value in self._fields.items()},
                                self._ragged_shape._merge_dims(outer, inner))


_UPDATES = "`StructuredTensor.with_updates` "


def _child(fields, path, name):
    """Returns the field that has the field to update."""
    if name[0] not in fields:
        raise ValueError(_UPDATES + "cannot create new sub-field %s if parent field %s is not set." % (path + name, path + name[:1]))
    child = fields[name[0]]
    if not isinstance(child, StructuredTensor):
        raise ValueError(_UPDATES + "cannot create new sub-field %s if parent structure %s is not a `StructuredTensor` that can contain "
                         "sub-structures -- it is a `%s`." % (path + name, path + name[:1], type(child)))
    return child


def _check_key(key, may_name):
    """Raises ValueError if records cannot be indexed with a key."""
    if key is None:
        raise ValueError("Slicing not supported for tf.newaxis")
    if not isinstance(key, (slice, int, Tensor)) and not (may_name and isinstance(key, str)):
        raise ValueError("Slicing not supported for %r" % (key,))


def _checked(fields):
    """Returns fields as tensors and composite values. Raises TypeError or ValueError if one cannot be a field."""
    made = {}
    for name, value in fields.items():
        if not isinstance(name, str):
            raise TypeError("Unexpected type for key in `fields`: %s" % (name,))
        if not _FIELD_NAME.match(name):
            raise ValueError("Field name %r is not currently allowed." % name)
        made[name] = _converted(value)
    return made


def _converted(value):
    if isinstance(value, (Tensor, RaggedTensor, ExtensionType)):
        return value
    try:
        return ragged_tensor.as_ragged_or_tensor(value)
    except (ValueError, TypeError) as error:
        raise TypeError("Unexpected type for value in `fields`: %r" % (value,)) from error


def _common_dtype(fields, *others):
    """Returns the type of numbers of row partitions: int32 only if some have it and none has int64."""
    found = [value._row_partition.dtype for value in fields if isinstance(value, RaggedTensor)]
    found += [value._ragged_shape.dtype for value in fields if isinstance(value, StructuredTensor)]
    found += [value.dtype for value in others if hasattr(value, "dtype")]
    return dtypes.int32 if dtypes.int32 in found and dtypes.int64 not in found else dtypes.int64


def _with_dtype(value, dtype):
    if isinstance(value, RaggedTensor):
        return value.with_row_splits_dtype(dtype)
    return value.with_shape_dtype(dtype) if isinstance(value, StructuredTensor) else value


def shape_of_value(value, dtype=None):
    """Returns the shape of a field."""
    if isinstance(value, StructuredTensor):
        return value._ragged_shape
    if isinstance(value, (Tensor, RaggedTensor)):
        return DynamicRaggedShape.from_tensor(value, dtype)
    from runnel.compat import v2
    found = v2.shape(value, out_type=dtype)
    if isinstance(found, DynamicRaggedShape):
        return found
    if isinstance(found, Tensor):
        return DynamicRaggedShape([], found)
    raise TypeError("Expected shape tf.shape(%s) to return a Tensor or a DynamicRaggedShape. Instead, got: %s." % (value, found))


def _shape_of_fields(fields, rank, dtype):
    """Returns the shape of the first dimensions, which all fields share; None without fields."""
    shape = None
    for name, value in fields.items():
        try:
            found = shape_of_value(value, dtype)[:rank]
            shape = found if shape is None else shape._merge_with(found)
        except Exception as error:
            raise ValueError("Error in shape of %s" % name) from error
    return shape


def _shape_of(fields, shape, nrows, row_partitions):
    """Returns the shape of records, of all that is known of it."""
    dtype = _common_dtype(fields.values(), nrows, *(row_partitions or ()))
    if shape.rank == 0:
        return DynamicRaggedShape([], array_ops.zeros([0], dtype))
    known = []
    if shape.is_fully_defined():
        known.append(DynamicRaggedShape([], shape.as_list(), dtype))
    of_fields = _shape_of_fields({name: _with_dtype(value, dtype) for name, value in fields.items()}, shape.rank, dtype)
    if of_fields is not None:
        known.append(of_fields)
    if shape.rank == 1:
        nrows = nrows if shape.as_list()[0] is None else shape.as_list()[0]
        if nrows is not None:
            known.append(DynamicRaggedShape([], [nrows], dtype))
        if not known:
            raise ValueError("Must specify `nrows`, a fully specified `shape`, or have `fields` if `rank=1`")
    elif row_partitions:
        known.append(DynamicRaggedShape.from_row_partitions(row_partitions, dtype))
    if not known:
        raise ValueError("Must specify row_partitions, a fully specified shape, or have fields if rank > 1")
    merged = known[0]
    for other in known[1:]:
        merged = merged._merge_with(other)
    return merged


def _with_partitions(value, partitions):
    """Returns a field with its first row partitions replaced by equal ones, which know more."""
    if not partitions or isinstance(value, Tensor):
        return value
    if isinstance(value, RaggedTensor):
        return RaggedTensor._from_row_partition(_with_partitions(value.values, partitions[1:]), partitions[0])
    if not isinstance(value, StructuredTensor):
        return value
    fields = {name: _with_partitions(inner, partitions) for name, inner in value._fields.items()}
    return StructuredTensor(fields, _shape_of(fields, value.shape, value.nrows(), (*partitions, *value.row_partitions[len(partitions):])))


def _partitioned(value, partition):
    if isinstance(value, StructuredTensor):
        return value.partition_outer_dimension(partition)
    if isinstance(value, Tensor) and partition.uniform_row_length() is not None:
        sizes = array_ops.stack([partition.nrows(), partition.uniform_row_length()])
        return array_ops.reshape(value, array_ops.concat([sizes, array_ops.shape(value, out_type=partition.dtype)[1:]], 0))
    return RaggedTensor._from_row_partition(value, partition)


def merge_dims(value, outer, inner):
    """Returns a field with a range of dimensions merged into one."""
    if isinstance(value, StructuredTensor):
        return value.merge_dims(outer, inner)
    return ragged_tensor.merge_dims(value, outer, inner) if outer < inner else value


def StructuredTensorSpec(shape, field_specs):  # noqa: N802
    """Returns the description of records of a static shape."""
    if not isinstance(field_specs, dict):
        raise TypeError("field_specs must be a dictionary.")
    if not all(isinstance(name, str) for name in field_specs):
        raise TypeError("field_specs must be a dictionary with string keys.")
    if not all(isinstance(spec, TypeSpec) for spec in field_specs.values()):
        raise TypeError("field_specs must be a dictionary with TypeSpec values.")
    found = DynamicRaggedShape.Spec._from_tensor_shape(shape, 0, dtypes.int32)
    if found.rank is None:
        raise TypeError("StructuredTensor's shape must have known rank.")
    for name, spec in field_specs.items():
        found = found._merge_with(_outer_shape_spec(name, spec, found.rank))
    return StructuredTensor.Spec(_ragged_shape=found, _fields=field_specs)


from runnel.ragged import structured_arrays  # noqa: E402, F401  makes functions of tf take them; needs the class
