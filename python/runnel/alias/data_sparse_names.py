"""tensorflow.python.data.util.sparse: elements whose sparse tensors are variants, by types, shapes and classes."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.composite import SparseTensor
from runnel.core.framework import Tensor
from runnel.data import structure_nest as nest


def _is_sparse(cls):
    return cls is SparseTensor


def any_sparse(classes):
    """Tells whether any part is a sparse tensor."""
    return any(_is_sparse(cls) for cls in nest.flatten(classes))


def get_classes(tensors):
    """Returns the classes of the parts."""
    return nest.map_structure(lambda x: SparseTensor if isinstance(x, SparseTensor) else Tensor, tensors)


def _mapped(values, classes, sparse, plain):
    flat = zip(nest.flatten(values), nest.flatten(classes))
    return nest.pack_sequence_as(values, [sparse(value) if _is_sparse(cls) else plain(value) for value, cls in flat])


def as_dense_shapes(shapes, classes):
    """Returns the shapes of what stands for the parts: unknown for sparse tensors."""
    return _mapped(shapes, classes, lambda _: tensor_shape.unknown_shape(), lambda shape: shape)


def as_dense_types(types, classes):
    """Returns the types of what stands for the parts: variants for sparse tensors."""
    return _mapped(types, classes, lambda _: dtypes.variant, lambda kind: kind)


def _serialized(op):
    def serialize(tensors):
        def one(x):
            if not isinstance(x, SparseTensor):
                return x
            return op(sparse_indices=x.indices, sparse_values=x.values, sparse_shape=x.dense_shape, out_type=dtypes.variant)
        return nest.map_structure(one, tensors)
    serialize.__doc__ = "Returns the parts with sparse tensors as variants."
    return serialize


serialize_sparse_tensors = _serialized(raw_ops.SerializeSparse)
serialize_many_sparse_tensors = _serialized(raw_ops.SerializeManySparse)


def deserialize_sparse_tensors(tensors, types, shapes, classes):
    """Returns the parts with variants as the sparse tensors for which they stand."""
    made = []
    for value, kind, shape, cls in zip(*(nest.flatten(x) for x in (tensors, types, shapes, classes))):
        if _is_sparse(cls):
            value = SparseTensor(*raw_ops.DeserializeSparse(serialized_sparse=value, dtype=kind))
            if tensor_shape.as_shape(shape).rank is not None:
                value.set_shape(shape)
        made.append(value)
    return nest.pack_sequence_as(types, made)
