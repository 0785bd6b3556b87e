"""Sums and copies of tensors and IndexedSlices, as reductions over replicas need them."""

from runnel.core import framework
from runnel.core.composite import IndexedSlices


def is_indexed_slices(value):
    """Tells whether a value, or each value of a distributed one, is an IndexedSlices."""
    from runnel.distribute.values import DistributedValues
    if isinstance(value, DistributedValues):
        return all(isinstance(x, IndexedSlices) for x in value.values)
    return isinstance(value, IndexedSlices)


def aggregate_tensors_or_indexed_slices(values, accumulation_fn=None):
    """Returns the sum of tensors, by `accumulation_fn` if given, or the rows of all IndexedSlices together."""
    from runnel.ops import array_ops, math_ops
    if any(isinstance(value, IndexedSlices) for value in values):
        together = [array_ops.concat([getattr(value, part) for value in values], 0) for part in ("values", "indices")]
        return IndexedSlices(*together, dense_shape=values[0].dense_shape)
    return accumulation_fn(values) if accumulation_fn else math_ops.add_n(values)


def divide_by_n_tensors_or_indexed_slices(value, n):
    """Returns a tensor or an IndexedSlices divided by a number."""
    if isinstance(value, IndexedSlices):
        return IndexedSlices(value.values / n, value.indices, value.dense_shape)
    return value / n


def copy_tensor_or_indexed_slices_to_device(value, device):
    """Returns a tensor or an IndexedSlices on a device."""
    from runnel.ops import array_ops
    with framework.device(device):
        if isinstance(value, IndexedSlices):
            shape = None if value.dense_shape is None else array_ops.identity(value.dense_shape)
            return IndexedSlices(array_ops.identity(value.values), array_ops.identity(value.indices), shape)
        return array_ops.identity(value)


def group_by_size(input_tensors, bytes_per_pack):
    """Divides a list of tensors into lists of at least this many bytes; the last may be smaller. 0 means one list."""
    if bytes_per_pack == 0 or any(not tensor.shape.is_fully_defined() for tensor in input_tensors):
        return [input_tensors]  # the sizes must be known
    packs, size = [[]], 0
    for tensor in input_tensors:
        if packs[-1] and size >= bytes_per_pack:
            packs.append([])
            size = 0
        packs[-1].append(tensor)
        size += tensor.shape.num_elements() * tensor.dtype.size
    return packs
