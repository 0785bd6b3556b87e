"""Functions of `tf` for structured tensors: what they do with records, they do with every field."""

from runnel import dtypes
from runnel.core import convert
from runnel.core.framework import Tensor, name_scope
from runnel.ops import array_ops, math_ops, random_ops
from runnel.ragged import ragged_functions
from runnel.ragged.dynamic_ragged_shape import DynamicRaggedShape, ones, zeros
from runnel.ragged.ragged_tensor import RaggedTensor, _axis, as_ragged_or_tensor
from runnel.ragged.structured_tensor import StructuredTensor, shape_of_value


def structured_tensor_like(value):
    """Returns records without fields, of the shape of a tensor."""
    if isinstance(value, Tensor) and value.shape.rank is None:
        raise ValueError("Can't build StructuredTensor w/ unknown rank")
    shape = shape_of_value(value)
    return StructuredTensor._of({}, shape.with_dtype(dtypes.int64) if shape.rank == 0 or shape._static_inner_shape.is_fully_defined() else shape)


def _on_fields(values, function):
    """Applies a function of a list of tensors to the tensors in each place of structured tensors that have the same fields."""
    if not isinstance(values, (list, tuple)):
        raise ValueError("Expected a list")
    if not values:
        raise ValueError("List cannot be empty")
    first = values[0]
    if not isinstance(first, StructuredTensor):
        return function(values)
    shape = shape_of_value(function([ones(value._ragged_shape, dtypes.bool) for value in values]), first._ragged_shape.dtype)
    fields = {name: _on_fields([value.field_value(name) for value in values], function) for name in first.field_names()}
    return StructuredTensor._of(fields, shape)


def shape(input, name=None, out_type=dtypes.int32):  # noqa: A002
    """Returns the shape of records."""
    if isinstance(name, dtypes.DType):  # TensorFlow 2 has the type in its place
        name, out_type = None, name
    return input._ragged_shape.with_dtype(out_type)


def expand_dims(input, axis=None, name=None, dim=None):  # noqa: A002
    """Inserts a dimension of size 1."""
    axis = _axis(dim if axis is None else axis, input.rank + 1, "axis", "rank(st)")
    with name_scope(name, "ExpandDims", [input]):
        return _on_fields([input], lambda values: ragged_functions.expand_dims(values[0], axis))


def gather(params, indices, validate_indices=None, name=None, axis=None, batch_dims=0):
    """Selects records."""
    with name_scope(name or "gather"):
        rank = params.shape.rank
        axis = _axis(batch_dims if axis is None else axis, rank, "axis", "params.shape.rank")
        batch_dims = _axis(batch_dims, rank, "batch_dims", "params.shape.rank")
        indices = as_ragged_or_tensor(indices, name="indices")

        def pick(values):
            is_ragged = isinstance(values[0], RaggedTensor) or isinstance(indices, RaggedTensor)
            return (ragged_functions if is_ragged else array_ops).gather(values[0], indices, axis=axis, batch_dims=batch_dims)
        return _on_fields([params], pick)


def concat(values, axis, name="concat"):
    """Joins records along a dimension."""
    if not isinstance(values, (list, tuple)):
        raise ValueError("values must be a list of StructuredTensors (not a list)")
    if not values:
        raise ValueError("values must not be an empty list")
    if not all(isinstance(value, StructuredTensor) for value in values):
        raise ValueError("values must be a list of StructuredTensors")
    paths = [_paths(value) for value in values]
    differing = set().union(*(set(paths[0]) ^ set(other) for other in paths[1:]))
    if differing:
        raise ValueError("Some paths are present in some, but not all, structured tensors: %r" % (differing,))
    if any(other != paths[0] for other in paths[1:]):
        raise ValueError("Ranks of sub-message do not match")
    axis = _axis(axis, values[0].rank)

    def join(parts):
        return (ragged_functions if any(isinstance(part, RaggedTensor) for part in parts) else array_ops).concat(parts, axis)
    with name_scope(name or "concat", "StructuredConcat"):
        return _on_fields(values, join)


def _paths(value, path=()):
    """Returns the paths of all fields with the rank of those that have fields themselves, None for others."""
    if not isinstance(value, StructuredTensor):
        return {path: None}
    found = {path: value.rank}
    for name in value.field_names():
        found.update(_paths(value.field_value(name), (*path, name)))
    return found


def random_shuffle(value, seed=None, name=None):
    """Puts records in a random order along the first dimension."""
    with name_scope(name, "shuffle", [seed]):
        if value.rank == 0:
            raise ValueError("Cannot shuffle a scalar StructuredTensor")
        return gather(value, random_ops.random_shuffle(math_ops.range(value.nrows()), seed=seed), axis=0)


def size(input, name=None, out_type=dtypes.int32):  # noqa: A002
    """Returns the number of records."""
    if isinstance(name, dtypes.DType):
        name, out_type = None, name
    with name_scope(name, "size"):
        return math_ops.cast(convert.constant(1) if input.rank == 0 else input._ragged_shape._num_slices_in_dimension(-1), out_type or dtypes.int32)


def rank(input, name=None):  # noqa: A002
    """Returns the number of dimensions of records."""
    with name_scope(name, "rank") as scope:
        return convert.constant(input.rank, dtypes.int32, name=scope)


def _filled(label, fill):
    def function(input, dtype=None, name=None, optimize=True, layout=None):  # noqa: A002
        if layout is not None and not layout.is_fully_replicated():
            raise ValueError("StructuredTensor only allows replicated layout. got %s" % (layout,))
        with name_scope(name, label):
            inner = input._ragged_shape if input.rank < 2 else DynamicRaggedShape.from_row_partitions(input.row_partitions)
            return fill(inner, dtype or dtypes.float32)
    return function


zeros_like, ones_like = _filled("zeros_like", zeros), _filled("ones_like", ones)


def _install():
    """Makes functions of `tf` accept structured tensors."""
    handles = {"shape": shape, "expand_dims": expand_dims, "gather": gather, "concat": concat, "random_shuffle": random_shuffle, "size": size,
               "rank": rank, "zeros_like": zeros_like, "ones_like": ones_like, "random.shuffle": random_shuffle}
    ragged_functions.teach({name: lambda _, handle=handle: handle for name, handle in handles.items()},
                           lambda value: isinstance(value, StructuredTensor))


_install()
