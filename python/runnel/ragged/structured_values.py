"""Conversion between structured tensors and Python's dicts and lists."""

from runnel.core import convert
from runnel.core.composite_specs import RaggedTensorSpec
from runnel.core.type_spec import TensorSpec


def _class():
    from runnel.ragged.structured_tensor import StructuredTensor
    return StructuredTensor


def from_pyval(value, spec, path):
    """Returns the tensor or structured tensor of a Python value; `path` is where it is in the whole."""
    if isinstance(value, dict):
        return _of_dict(value, spec, path)
    if not isinstance(value, (list, tuple)):
        if spec is not None and not (isinstance(spec, TensorSpec) and spec.shape.rank == 0):
            raise _misfit(path, value, spec)
        return _parsed(lambda: convert.constant(value, None if spec is None else spec.dtype), path)
    names = {}
    depth = _depth_of_dicts(value, names)
    return _of_list(value, spec, path) if depth is None else _of_dicts(value, list(names), depth, spec, path)


def _misfit(path, value, spec, why=""):
    return ValueError("Value at %r does not match typespec%s: %r vs %r" % (path, why, value, spec))


def _parsed(make, path):
    """Returns what a function makes; its errors name the path."""
    try:
        return make()
    except Exception as error:
        raise ValueError("Error parsing path %r" % (path,)) from error


def _of_dict(value, spec, path):
    specs = dict.fromkeys(value)
    if spec is not None:
        if not isinstance(spec, _class().Spec) or spec.rank != 0 or set(value) != set(spec._fields):
            raise _misfit(path, value, spec)
        specs = spec._fields
    return _class().from_fields({name: from_pyval(item, specs[name], (*path, name)) for name, item in value.items()})


def _depth_of_dicts(value, names):
    """Returns how deeply dicts are nested in lists, or None if there are no dicts. Adds their keys to `names`."""
    if isinstance(value, dict):
        names.update(dict.fromkeys(value))
        return 0
    if not isinstance(value, (list, tuple)):
        return None
    depths = {depth for depth in (_depth_of_dicts(item, names) for item in value) if depth is not None}
    if len(depths) > 1:
        raise ValueError("Inconsistent depth of dictionaries")
    return depths.pop() + 1 if depths else None


def _column(value, name):
    """Returns nested lists with each dict replaced by its item."""
    if isinstance(value, dict):
        return value[name]
    return [_column(item, name) for item in value]


def _check_lists(value):
    if not isinstance(value, (dict, list, tuple)):
        raise ValueError("Expected dict or nested list/tuple of dict")
    for item in [] if isinstance(value, dict) else value:
        _check_lists(item)


def _of_dicts(value, names, depth, spec, path):
    """Returns the structured tensor of nested lists of dicts."""
    _check_lists(value)
    kind = _class()
    specs, shape = dict.fromkeys(names), [None] * depth
    if spec is not None:
        if not isinstance(spec, kind.Spec) or set(names) - set(spec._fields):
            raise _misfit(path, value, spec)
        if spec.rank < depth:
            raise _misfit(path, value, spec, " (rank mismatch)")
        specs, shape = spec._fields, spec.shape
    fields = {name: from_pyval(_column(value, name) if name in names else [], one, (*path, name)) for name, one in specs.items()}
    if fields or spec is not None:
        return _parsed(lambda: kind.from_fields(fields, shape), path)
    return _parsed(lambda: _without_fields(kind, value, depth), path)


def _without_fields(kind, value, depth):
    from runnel.ragged.dynamic_ragged_shape import DynamicRaggedShape
    partitions = []
    if depth > 1:
        from runnel.ragged import ragged_ops
        partitions = ragged_ops.constant(_zeros(value))._nested_row_partitions
    if depth == 1:
        return kind.from_shape(DynamicRaggedShape([], [len(value)]))
    return kind.from_fields({}, [len(value)] + [None] * (depth - 1), len(value), partitions)


def _zeros(value):
    return 0 if isinstance(value, dict) else [_zeros(item) for item in value]


def _depth_of_empty(value):
    """Returns how deeply empty lists are nested in lists, or None if the lists contain anything else."""
    if not isinstance(value, list):
        return None
    depths = [_depth_of_empty(item) for item in value]
    return None if None in depths else max(depths, default=0) + 1


def _of_list(value, spec, path):
    """Returns the tensor of nested lists without dicts."""
    from runnel.ragged import ragged_ops
    if spec is None:
        return _parsed(lambda: ragged_ops.constant(value), path)
    if isinstance(spec, TensorSpec):
        made = _parsed(lambda: convert.constant(value, spec.dtype), path)
        if not spec.shape.is_compatible_with(made.shape):
            raise _misfit(path, spec, value)
        return made
    if isinstance(spec, RaggedTensorSpec):
        return _parsed(lambda: ragged_ops.constant(value, spec.dtype, spec.ragged_rank, spec.shape[spec.ragged_rank + 1:].as_list(),
                                                   row_splits_dtype=spec.row_splits_dtype), path)
    depth = _depth_of_empty(value) if isinstance(spec, _class().Spec) else None
    if depth is None:
        raise _misfit(path, spec, value)
    return _of_dicts(value, [], depth, spec, path)


def to_pyval(structured):
    """Returns the dicts and lists of a structured tensor."""
    if not structured._is_eager():
        raise ValueError("StructuredTensor.to_pyval() is only supported in eager mode.")
    if not structured._fields and structured.rank:
        return _rows_without_fields(structured)
    return _rows({name: _plain(value) for name, value in structured._fields.items()}, structured.rank)


def _plain(value):
    if isinstance(value, _class()):
        return to_pyval(value)
    if hasattr(value, "to_list"):
        return value.to_list()
    if not hasattr(value, "numpy"):
        return value
    value = value.numpy()
    return value.tolist() if getattr(value, "ndim", 0) else value  # scalars stay NumPy's


def _rows(columns, rank):
    """Returns nested lists of dicts, from a dict of nested lists."""
    if rank == 0:
        return columns
    count = len(next(iter(columns.values())))
    return [_rows({name: column[i] for name, column in columns.items()}, rank - 1) for i in range(count)]


def _rows_without_fields(structured):
    rows = [{} for _ in range(int(structured._ragged_shape._num_slices_in_dimension(-1)))]
    for partition in reversed(structured.row_partitions):
        splits = partition.row_splits().numpy()
        rows = [rows[start:limit] for start, limit in zip(splits, splits[1:])]
    return rows
