"""Broadcasting of shapes of which some dimensions are ragged.

Two shapes are made to have as many row partitions, then go from the outermost dimension inwards: the rows of both become the rows
of the result, and for each of the two there is a vector that says which of its slices each slice of the result is (a layer).
A uniform dimension of size 1 is repeated; a ragged one is never. The inner dimensions broadcast as those of tensors.
"""

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert, fallbacks, tensor_shape
from runnel.core.convert import constant_value
from runnel.core.framework import Tensor
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ragged.dynamic_ragged_shape import DynamicRaggedShape, find_dtype
from runnel.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor, match_row_splits_dtypes
from runnel.ragged.row_partition import RowPartition, _after

_MISFIT = "Cannot broadcast"


class LayerBroadcaster:
    """For one dimension: which slice of the source each slice of the target is."""

    def __init__(self, gather_index, is_identity=False):
        gather_index = convert.convert_to_tensor(gather_index)
        if gather_index.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("gather_index must be int64 or int32")
        self._gather_index, self.is_identity = gather_index, is_identity

    @classmethod
    def from_gather_index(cls, gather_index):
        """Returns the layer of a vector of slices of the source."""
        return cls(gather_index)

    @classmethod
    def identity(cls, count, dtype=None):
        """Returns the layer in which the slices of the target are those of the source."""
        return cls(math_ops.range(count, dtype=dtype), is_identity=True)

    gather_index = property(lambda self: self._gather_index)
    dtype = property(lambda self: self._gather_index.dtype)

    def with_dtype(self, dtype):
        """Returns the layer with numbers of another type."""
        return self if dtype == self.dtype else LayerBroadcaster(math_ops.cast(self._gather_index, dtype), self.is_identity)

    def broadcast_tensor(self, tensor):
        """Returns the slices of the target of a tensor whose rows are the slices of the source."""
        return tensor if self.is_identity else fallbacks.applied(array_ops.gather, tensor, self._gather_index)

    def broadcast_row_partition(self, partition):
        """Returns the partition of the slices of the target."""
        if self.is_identity:
            return partition
        if partition.is_uniform():
            rows = convert.constant_value_as_shape(array_ops.shape(self._gather_index)).as_list()[0]
            rows = array_ops.shape(self._gather_index, out_type=self.dtype)[0] if rows is None else rows
            return RowPartition.from_uniform_row_length(partition.uniform_row_length(), nrows=rows)
        return RowPartition.from_row_lengths(self.broadcast_tensor(partition.row_lengths()), validate=False)

    def next_layer(self, source, target, is_checked=False):
        """Returns the layer of the next dimension, whose partitions in the source and in the target are given."""
        if self.is_identity and source is target:
            return LayerBroadcaster.identity(source.nvals(), self.dtype)
        is_repeated = _is_single(source)
        rows = self.broadcast_tensor(target.value_rowids()) if self.is_identity else array_ops.gather(self._gather_index, target.value_rowids())
        if is_repeated is True:
            return LayerBroadcaster(rows)
        starts, offsets, checks = array_ops.gather(source.row_splits(), rows), target.offsets_in_rows(), []
        if not is_checked:
            fits = math_ops.equal(self.broadcast_tensor(source.row_lengths()), target.row_lengths())
            checks = [check_ops.assert_equal(fits if is_repeated is False else fits | is_repeated, True, message=_MISFIT)]
        if is_repeated is not False:
            offsets = offsets * math_ops.cast(_ops.LogicalNot(x=is_repeated), offsets.dtype)
        return LayerBroadcaster(_after(checks, starts + offsets))

    def __repr__(self):
        return str(self._gather_index)


class Broadcaster:
    """How a tensor of one shape is broadcast to another one. It has no layers if the inner dimensions are all that is broadcast."""

    def __init__(self, source_shape, target_shape, layer_broadcasters, dtype=None):
        for name, shape in (("source_shape", source_shape), ("target_shape", target_shape)):
            if not isinstance(shape, DynamicRaggedShape):
                raise TypeError("%s is not a DynamicRaggedShape" % name)
        if not isinstance(layer_broadcasters, list):
            raise TypeError("layer_broadcasters not a list: %s" % (layer_broadcasters,))
        for layer in layer_broadcasters:
            if not isinstance(layer, LayerBroadcaster):
                raise TypeError("Not a LayerBroadcaster: %s" % (layer,))
            dtype = dtype or layer.dtype
        dtype = find_dtype(target_shape, find_dtype(source_shape, dtype))
        self.source_shape, self.target_shape = source_shape.with_dtype(dtype), target_shape.with_dtype(dtype)
        self._layer_broadcasters, self.dtype = [layer.with_dtype(dtype) for layer in layer_broadcasters], dtype

    def with_dtype(self, dtype):
        """Returns the broadcaster with numbers of another type."""
        return Broadcaster(self.source_shape, self.target_shape, self._layer_broadcasters, dtype)

    def broadcast_flat_values(self, rt, inner_dimensions=True):
        """Returns the flat values of a tensor broadcast. Without `inner_dimensions`, these only fit the target's for implicit broadcasting."""
        source, target = self.source_shape, self.target_shape
        flat, rank = getattr(rt, "flat_values", rt), target.inner_rank
        if not source.rank and not target.rank:
            return flat
        if source.rank:
            own = min(source.rank, rank)
            if source.inner_rank != own:
                flat = array_ops.reshape(flat, source._alt_inner_shape(own))
            if self._layer_broadcasters and own == rank:
                flat = self._layer_broadcasters[-1].broadcast_tensor(flat)
        return _ops.BroadcastTo(input=flat, shape=target.inner_shape) if inner_dimensions else flat

    def broadcast(self, rt):
        """Returns a tensor of the source's shape broadcast."""
        return self.target_shape._add_row_partitions(self.broadcast_flat_values(rt))

    def __repr__(self):
        return "{src_shape:%s, target_shape:%s layer_broadcasters: %s}" % (self.source_shape, self.target_shape, self._layer_broadcasters)


def _is_single(partition):
    """Tells whether rows have the length 1 because a dimension is uniform: True, False, or a tensor."""
    if not partition.is_uniform():
        return False
    known = partition.static_uniform_row_length
    return math_ops.equal(partition.uniform_row_length(), 1) if known is None else known == 1


def _widened(shape, rank, count):
    """Returns the partitions of a shape that is given dimensions of size 1 until it has a rank; `count` is the number of partitions."""
    missing = rank - shape.rank
    if not missing:
        return list(shape._with_num_row_partitions(count).row_partitions)
    if count < missing:
        return [RowPartition.from_uniform_row_length(1, nrows=1, dtype=shape.dtype)] * count
    rows = shape[0]
    known = constant_value(rows)
    outer = [RowPartition.from_uniform_row_length(1, nrows=1, dtype=shape.dtype)] * (missing - 1)
    outer.append(RowPartition.from_uniform_row_length(rows if known is None else int(known), nrows=1, dtype=shape.dtype))
    return outer + list(shape._with_num_row_partitions(count - missing).row_partitions)


def _first_layer(rows, target_rows):
    """Returns the layer of the outermost dimension."""
    if rows is target_rows:
        return LayerBroadcaster.identity(target_rows)
    known, target_known = constant_value(rows), constant_value(target_rows)
    if known == 1:
        if target_known == 1:
            return LayerBroadcaster.identity(target_rows)
        return LayerBroadcaster(array_ops.zeros([target_rows if target_known is None else int(target_known)], target_rows.dtype))
    if known is not None and known == target_known:
        return LayerBroadcaster.identity(target_rows)
    is_repeated = math_ops.equal(rows, 1)
    check = check_ops.assert_equal(is_repeated | math_ops.equal(rows, target_rows), True, message=_MISFIT)
    return LayerBroadcaster(_after([check], math_ops.range(target_rows) * math_ops.cast(_ops.LogicalNot(x=is_repeated), target_rows.dtype)))


def first_layers(a_rows, b_rows):
    """Returns the layers of the outermost dimension of two shapes broadcast together, which have these numbers of rows."""
    known = constant_value(a_rows), constant_value(b_rows)
    if a_rows is b_rows or known[1] == 1:
        rows = a_rows
    elif known[0] is not None:
        rows = b_rows if known[0] == 1 else a_rows
    else:
        rows = array_ops.where(math_ops.equal(a_rows, 1), b_rows, a_rows)
    return _first_layer(a_rows, rows), _first_layer(b_rows, rows)


def next_layers(a_layer, b_layer, a, b):
    """Returns the partition of the next dimension of two shapes broadcast together, and its layers."""
    for name, one in (("ac_0", a_layer), ("bc_0", b_layer)):
        if not isinstance(one, LayerBroadcaster):
            raise TypeError("%s should be a _LayerBroadcaster" % name)
    for name, one in (("a_1", a), ("b_1", b)):
        if not isinstance(one, RowPartition):
            raise TypeError("%s should be a RowPartition" % name)
    a_single, b_single = _is_single(a), _is_single(b)
    is_of_a = is_of_b = False
    if a_single is True or a.is_uniform() and not b.is_uniform():
        result, is_of_b = b_layer.broadcast_row_partition(b), True
    elif b_single is True or not a.is_uniform() or a_single is False:
        result, is_of_a = a_layer.broadcast_row_partition(a), True
    elif b_single is False:
        result, is_of_b = b_layer.broadcast_row_partition(b), True
    else:
        length = array_ops.where(a_single, b.uniform_row_length(), a.uniform_row_length())
        rows = array_ops.shape(a_layer.gather_index, out_type=a_layer.dtype)[0]
        result = RowPartition.from_uniform_row_length(length, nrows=rows)
    lengths = a.static_uniform_row_length, b.static_uniform_row_length
    is_same = lengths[0] is not None and lengths[0] == lengths[1]
    return result, a_layer.next_layer(a, result, is_of_a or is_same), b_layer.next_layer(b, result, is_of_b or is_same)


def _broadcast_num_row_partitions(a, b):
    """Returns how many partitions two shapes have together: more than none only if one of them has."""
    rank = max(a.rank, b.rank)
    return max((shape.num_row_partitions + rank - shape.rank for shape in (a, b) if shape.num_row_partitions), default=0)


def _of_one_dtype(a, b):
    if a.dtype == b.dtype:
        return a, b
    if a.row_partitions and b.row_partitions:
        raise ValueError("Dtypes don't match")
    dtype = a.dtype if a.row_partitions else b.dtype if b.row_partitions else dtypes.int64
    return a.with_dtype(dtype), b.with_dtype(dtype)


def _layers_of(layers, shape, rank):
    """Returns the layers of the dimensions that a shape has itself; none if it has fewer than the flat values of the target."""
    return layers[rank - shape.rank:]


def _trailing(shape, count):
    """Returns the sizes of the last dimensions of a shape, at most `count`."""
    return shape._alt_inner_shape(count + 1)[1:] if shape.rank > count else shape._alt_inner_shape(shape.rank)


def broadcast_dynamic_shape_extended(a, b):
    """Returns what two shapes broadcast to, and the broadcasters of both."""
    a, b = _of_one_dtype(a, b)
    if a.rank is None or b.rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    if a.rank == 0 or b.rank == 0:
        target = a if b.rank == 0 else b
        return target, Broadcaster(a, target, []), Broadcaster(b, target, [])
    rank, count = max(a.rank, b.rank), _broadcast_num_row_partitions(a, b)
    if not count:
        sizes = array_ops.broadcast_dynamic_shape(a.inner_shape, b.inner_shape)
        known = array_ops.broadcast_static_shape(a._static_inner_shape, b._static_inner_shape)
        target = DynamicRaggedShape([], sizes, static_inner_shape=known)
        return target, Broadcaster(a, target, []), Broadcaster(b, target, [])
    a_partitions, b_partitions = _widened(a, rank, count), _widened(b, rank, count)
    a_layer, b_layer = first_layers(a_partitions[0].nrows(), b_partitions[0].nrows())
    a_layers, b_layers, partitions = [a_layer], [b_layer], []
    for one, other in zip(a_partitions, b_partitions):
        partition, a_layer, b_layer = next_layers(a_layer, b_layer, one, other)
        partitions.append(partition)
        a_layers.append(a_layer)
        b_layers.append(b_layer)
    sizes, known = [partitions[-1].nvals()], tensor_shape.TensorShape([partitions[-1].static_nvals])
    if rank > count + 1:
        inner = [_trailing(shape, rank - count - 1) for shape in (a, b)]
        sizes = array_ops.concat([sizes, array_ops.broadcast_dynamic_shape(*inner)], 0)
        known = known.concatenate(array_ops.broadcast_static_shape(*map(convert.constant_value_as_shape, inner)))
    target = DynamicRaggedShape(partitions, sizes, static_inner_shape=known)
    return target, Broadcaster(a, target, _layers_of(a_layers, a, rank)), Broadcaster(b, target, _layers_of(b_layers, b, rank))


def broadcaster(source_shape, target_shape):
    """Returns how tensors of one shape are broadcast to another. Raises ValueError if that is not possible."""
    source, target = source_shape, target_shape
    if source.dtype != target.dtype:
        raise ValueError("The source and target row_split dtypes should be equal")
    if source.rank is None or target.rank is None:
        raise ValueError("Rank of source and target must be statically known")
    if source.rank > target.rank:
        raise ValueError("Cannot broadcast to a shape with smaller rank")
    if source.rank == 0:
        return Broadcaster(source, target, [])
    count = max(target.num_row_partitions, source.num_row_partitions + target.rank - source.rank if source.num_row_partitions else 0)
    if not count:
        return Broadcaster(source, target, [])
    targets = target._with_num_row_partitions(count).row_partitions
    partitions = _widened(source, target.rank, count)
    layers = [_first_layer(partitions[0].nrows(), targets[0].nrows())]
    for one, other in zip(partitions, targets):
        layers.append(layers[-1].next_layer(one, other))
    return Broadcaster(source, target, _layers_of(layers[:target.num_row_partitions + 1], source, target.rank))


def identity_broadcaster(shape):
    """Returns the broadcaster of a shape to itself."""
    if shape.rank is None:
        raise ValueError("Shape must have a defined rank")
    return Broadcaster(shape, shape, [LayerBroadcaster.identity(shape._num_slices_in_dimension(axis), shape.dtype) for axis in range(shape.rank)])


def broadcast_dynamic_shape(shape_x, shape_y):
    """Returns what two shapes broadcast to."""
    for name, shape in (("shape_x", shape_x), ("shape_y", shape_y)):
        if not isinstance(shape, DynamicRaggedShape):
            raise TypeError("%s must be a DynamicRaggedShape" % name)
    return broadcast_dynamic_shape_extended(shape_x, shape_y)[0]


def broadcast_to(rt_input, shape):
    """Broadcasts a tensor or a ragged tensor to a shape."""
    if not isinstance(shape, DynamicRaggedShape):
        raise TypeError("shape must be a DynamicRaggedShape")
    value = as_ragged_or_tensor(rt_input)
    if isinstance(value, RaggedTensor):
        if shape.num_row_partitions and value.row_splits.dtype != shape.dtype:
            raise ValueError("Cannot coerce row_splits.dtype")
        dtype = value.row_splits.dtype
    else:
        dtype = shape.dtype if shape.num_row_partitions else dtypes.int64
    return broadcaster(DynamicRaggedShape.from_tensor(value, dtype), shape.with_dtype(dtype)).broadcast(value)


def aligned(x, y):
    """Returns the flat values of two tensors, one of them ragged, so that an op may be applied to them, and a function that makes
    its result a ragged tensor."""
    x, y = as_ragged_or_tensor(x), as_ragged_or_tensor(y)
    kinds = [isinstance(value, RaggedTensor) for value in (x, y)]
    ragged, other = (x, y) if kinds[0] else (y, x)
    flat = [value.flat_values if kind else value for value, kind in zip((x, y), kinds)]
    if not all(kinds) and (other.shape.ndims == 0 or (ragged.flat_values.shape.ndims or 0) > (other.shape.ndims or 0)):
        return *flat, ragged.with_flat_values
    if all(kinds):
        x, y = match_row_splits_dtypes(x, y)
    dtype = ragged.row_splits.dtype if not all(kinds) else x.row_splits.dtype
    a, b = (DynamicRaggedShape.from_tensor(value, dtype) for value in (x, y))
    if a.num_row_partitions == b.num_row_partitions and all(one.row_splits() is two.row_splits() for one, two in zip(
            a.row_partitions, b.row_partitions)):
        return *flat, x.with_flat_values
    shape, a_to, b_to = broadcast_dynamic_shape_extended(a, b)
    return (a_to.broadcast_flat_values(x, inner_dimensions=False), b_to.broadcast_flat_values(y, inner_dimensions=False),
            lambda values: shape._add_row_partitions(values, validate=isinstance(values, Tensor)))


def applied(function, *tensors):
    """Returns what a function of tensors makes of the flat values of tensors, ragged or not, that are broadcast together."""
    tensors = match_row_splits_dtypes(*tensors)
    dtype = next(value.row_splits.dtype for value in tensors if isinstance(value, RaggedTensor))
    shape, *others = [DynamicRaggedShape.from_tensor(value, dtype) for value in tensors]
    for other in others:
        shape = broadcast_dynamic_shape(shape, other)
    made = [broadcast_to(value, shape) for value in tensors]
    return shape._add_row_partitions(function(*[getattr(value, "flat_values", value) for value in made]))
