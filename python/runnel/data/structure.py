"""The structure of dataset elements: their TypeSpecs, and the tensors that stand for an element inside a pipeline.

A pipeline passes tensors from stage to stage, and batches them by stacking. So a sparse or ragged tensor is one variant there,
whatever its size, and a dataset or an optional is a scalar variant. Any other composite value is its components.
"""

import collections.abc

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.composite_specs import RaggedTensorSpec, SparseTensorSpec
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.type_spec import NoneTensorSpec, TensorSpec, TypeSpec, type_spec_from_value as _spec_of

__all__ = ["NoneTensorSpec", "normalize_element", "type_spec_from_value", "to_tensor_list", "from_tensor_list"]


def _is_variant(spec):
    return isinstance(spec, (SparseTensorSpec, RaggedTensorSpec))


def _leaf_specs(spec):
    """Returns the TensorSpecs of what stands for one value."""
    if isinstance(spec, TensorSpec):
        return [spec]
    if _is_variant(spec):
        return [TensorSpec(None, dtypes.variant)]
    return [part for component in nest.flatten(_part_specs(spec)) for part in _leaf_specs(component)]


def _part_specs(spec):
    """Returns the TypeSpecs of the parts of a composite value, as its class wants them batched."""
    encoder = getattr(spec, "__batch_encoder__", None)
    return spec._component_specs if encoder is None else encoder.encoding_specs(spec)


def _parts(spec, value, minimum_rank=0):
    """Returns pairs of the TypeSpec and the value of each part of a composite value."""
    encoder = getattr(spec, "__batch_encoder__", None)
    made = spec._to_components(value) if encoder is None else encoder.encode(spec, value, minimum_rank)
    return zip(nest.flatten(_part_specs(spec)), nest.flatten(made))


def flat_specs(element_spec):
    """Returns the TensorSpecs of the tensors that stand for an element."""
    return [part for leaf in nest.flatten(element_spec) for part in _leaf_specs(leaf)]


def get_flat_tensor_specs(element_spec):
    """Returns the TensorSpecs of the tensors that stand for an element."""
    return flat_specs(element_spec)


def get_flat_tensor_types(element_spec):
    """Returns the types of the tensors that stand for an element."""
    return [spec.dtype for spec in flat_specs(element_spec)]


def get_flat_tensor_shapes(element_spec):
    """Returns the shapes of the tensors that stand for an element."""
    return [spec.shape for spec in flat_specs(element_spec)]


# --- Elements

def normalize_element(element, element_signature=None):
    """Converts the leaves of an element to tensors and composite tensors. Lists are leaves; tuples and dicts are structure."""
    if element_signature is not None:
        given = flatten_like(element_signature, element)
        made = [_normal(x, spec.dtype if isinstance(spec, TensorSpec) else None) for spec, x in zip(nest.flatten(element_signature), given)]
        return nest.pack_sequence_as(element_signature, made)
    return _map(_normal, element)


def _map(function, element):
    """Applies a function to the leaves of an element, of which lists are some."""
    if isinstance(element, (list, SparseTensorValue)) or hasattr(element, "ragged_rank") or not nest.is_nested(element):
        return function(element)
    return nest._rebuild(element, [_map(function, child) for child in nest._children(element)])


def _normal(value, dtype=None):
    from runnel.data.dataset import Dataset, _NestedVariant
    if isinstance(value, list) and value and all(isinstance(one, Dataset) for one in value):
        return _NestedVariant.of(value)
    if value is None or isinstance(value, (Tensor, Dataset, TypeSpec)) or getattr(value, "_is_composite", False):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if hasattr(value, "ragged_rank"):
        from runnel.ragged.ragged_tensor import as_ragged_or_tensor
        return as_ragged_or_tensor(value)
    return convert_to_tensor(value, dtype)


def flatten_like(element_spec, element):
    """Returns the leaves of an element that has the structure of `element_spec`; lists are leaves."""
    if not nest.is_nested(element_spec):
        return [element]
    if isinstance(element_spec, collections.abc.Mapping):
        if not isinstance(element, collections.abc.Mapping) or set(element) != set(element_spec):
            raise ValueError("%s does not have the keys of %s" % (element, element_spec))
        pairs = [(element_spec[key], element[key]) for key in nest._sorted_keys(element_spec)]
    else:
        children = nest._children(element_spec)
        parts = nest._children(element) if nest.is_nested(element) else list(element)
        if len(children) != len(parts):
            raise ValueError("%s does not have the structure of %s" % (element, element_spec))
        pairs = zip(children, parts)
    return [leaf for spec, part in pairs for leaf in flatten_like(spec, part)]


def type_spec_from_value(element, use_fallback=True):
    """Returns the TypeSpecs of an element, in its structure."""
    return _map(_spec_of_leaf, element)


def _spec_of_leaf(value):
    if isinstance(value, TypeSpec):
        return value
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, Tensor) and not getattr(value, "_is_composite", False) and hasattr(value, "_as_graph_element"):
        return TensorSpec(value.shape, value.dtype)  # a variable: its value
    spec = _spec_of(value)
    return spec._without_tensor_names()


# --- Elements as tensors

def _to_tensors(spec, value):
    if isinstance(spec, SparseTensorSpec):
        value = SparseTensor.from_value(value) if isinstance(value, SparseTensorValue) else value
        return [raw_ops.SerializeSparse(sparse_indices=value.indices, sparse_values=value.values, sparse_shape=value.dense_shape,
                                        out_type=dtypes.variant)]
    if isinstance(spec, RaggedTensorSpec):
        return [_ragged_variant(value, False)]
    if isinstance(spec, TensorSpec):
        return [convert_to_tensor(value, spec.dtype)]
    return [tensor for component, part in _parts(spec, value) for tensor in _to_tensors(component, part)]


def _ragged_variant(value, is_batched):
    if hasattr(value, "ragged_rank"):
        return raw_ops.RaggedTensorToVariant(rt_nested_splits=list(value.nested_row_splits), rt_dense_values=value.flat_values,
                                             batched_input=is_batched)
    return raw_ops.RaggedTensorToVariant(rt_nested_splits=[], rt_dense_values=value, batched_input=is_batched, Tsplits=dtypes.int64)


def _to_batch(spec, value):
    """Returns the tensors of a value that is a batch: a row of them stands for a row of the value."""
    if isinstance(spec, SparseTensorSpec):
        return [raw_ops.SerializeManySparse(sparse_indices=value.indices, sparse_values=value.values, sparse_shape=value.dense_shape,
                                            out_type=dtypes.variant)]
    if isinstance(spec, RaggedTensorSpec):
        return [_ragged_variant(value, True)]
    if isinstance(spec, TensorSpec):
        return [convert_to_tensor(value, spec.dtype)]
    return [tensor for component, part in _parts(spec, value, minimum_rank=1) for tensor in _to_batch(component, part)]


def _from_tensors(spec, tensors):
    """Returns the value of one leaf; `tensors` is an iterator."""
    if isinstance(spec, TensorSpec):
        return next(tensors)
    if isinstance(spec, SparseTensorSpec):
        parts = raw_ops.DeserializeSparse(serialized_sparse=next(tensors), dtype=spec.dtype)
        rank = spec.shape.rank
        if rank is not None:
            parts[0].set_shape([None, rank])
            parts[2].set_shape([rank])
        return spec._from_components(list(parts))
    if isinstance(spec, RaggedTensorSpec):
        return _ragged_from_variant(spec, next(tensors))
    specs, encoder = _part_specs(spec), getattr(spec, "__batch_encoder__", None)
    made = nest.pack_sequence_as(specs, [_from_tensors(part, tensors) for part in nest.flatten(specs)])
    return spec._from_components(made) if encoder is None else encoder.decode(spec, made)


def _ragged_from_variant(spec, variant):
    from runnel.ragged.ragged_tensor import RaggedTensor
    outer, rank = variant.shape.rank, max(spec.ragged_rank, 0)
    made = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=variant, input_ragged_rank=-1 if outer is None else max(rank - outer, -1), output_ragged_rank=rank,
        Tvalues=spec.dtype, Tsplits=spec.row_splits_dtype)
    value = made[1]
    for splits in reversed(made[0]):
        value = RaggedTensor.from_row_splits(value, splits, validate=False)
    if spec.shape.rank is not None:
        if rank:
            value._set_shape(spec.shape)
        else:
            value.set_shape(spec.shape)
    return value


def _leaves(element_spec, element):
    try:
        return list(zip(nest.flatten(element_spec), flatten_like(element_spec, element)))
    except TypeError:
        raise ValueError("%s does not have the structure of %s" % (element, element_spec)) from None


def to_tensor_list(element_spec, element):
    """Returns the tensors that stand for an element."""
    return [tensor for spec, value in _leaves(element_spec, element) for tensor in _to_tensors(spec, value)]


def to_batched_tensor_list(element_spec, element):
    """Returns the tensors that stand for an element that is a batch; row i of each stands for row i of the element."""
    made = [tensor for spec, value in _leaves(element_spec, element) for tensor in _to_batch(spec, value)]
    for tensor in made:
        if tensor.shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
    return made


def from_tensor_list(element_spec, tensor_list):
    """Returns the element for which tensors stand. Raises ValueError if they do not fit."""
    specs = flat_specs(element_spec)
    if len(specs) != len(tensor_list):
        raise ValueError("Expected %d tensors but got %d." % (len(specs), len(tensor_list)))
    for spec, tensor in zip(specs, tensor_list):
        if not spec.is_compatible_with(tensor):
            raise ValueError("Tensor %s is not compatible with %s." % (tensor, spec))
    return from_compatible_tensor_list(element_spec, tensor_list)


def from_compatible_tensor_list(element_spec, tensor_list):
    """Returns the element for which tensors stand."""
    rest = iter(tensor_list)
    made = [_from_tensors(spec, rest) for spec in nest.flatten(element_spec)]
    return nest.pack_sequence_as(element_spec, made)


# --- Relations of structures

def are_compatible(spec1, spec2):
    """Tells whether two structures are the same and their TypeSpecs fit."""
    try:
        nest.assert_same_structure(spec1, spec2)
    except (TypeError, ValueError):
        return False
    return all(a.is_compatible_with(b) for a, b in zip(nest.flatten(spec1), nest.flatten(spec2)))


def common(spec1, spec2):
    """Returns the narrowest structure that covers two. Raises TypeError or ValueError if there is none."""
    nest.assert_same_structure(spec1, spec2)
    return nest.map_structure(lambda a, b: a.most_specific_compatible_type(b), spec1, spec2)


def batched(element_spec, size):
    """Returns the TypeSpecs of a batch of elements."""
    return nest.map_structure(lambda spec: spec._batch(size), element_spec)


def unbatched(element_spec):
    """Returns the TypeSpecs of a row of elements."""
    return nest.map_structure(lambda spec: spec._unbatch(), element_spec)


# --- The older form: types, shapes and classes

def legacy_types(element_spec):
    """Returns the types of the leaves, in the structure."""
    return nest.map_structure(lambda spec: getattr(spec, "_to_legacy_output_types", lambda: getattr(spec, "dtype", spec))(), element_spec)


def legacy_shapes(element_spec):
    """Returns the shapes of the leaves, in the structure."""
    return nest.map_structure(lambda spec: getattr(spec, "_to_legacy_output_shapes", lambda: getattr(spec, "shape", spec))(), element_spec)


def legacy_classes(element_spec):
    """Returns the classes of the leaves, in the structure."""
    return nest.map_structure(lambda spec: getattr(spec, "_to_legacy_output_classes", lambda: _class_of(spec))(), element_spec)


def _class_of(spec):
    return spec.value_type if isinstance(spec, (TensorSpec, SparseTensorSpec, RaggedTensorSpec)) else spec


def convert_legacy_structure(output_types, output_shapes, output_classes):
    """Returns the TypeSpecs of types, shapes and classes of the same structure."""
    types = nest.flatten(output_types)
    shapes = flatten_like(output_types, output_shapes) if nest.is_nested(output_types) else [output_shapes]
    classes = flatten_like(output_types, output_classes) if nest.is_nested(output_types) else [output_classes]
    return nest.pack_sequence_as(output_types, [_of_legacy(*row) for row in zip(types, shapes, classes)])


def _of_legacy(kind, shape, cls):
    if isinstance(cls, TypeSpec):
        return cls
    if isinstance(cls, type) and issubclass(cls, SparseTensor):
        return SparseTensorSpec(shape, kind)
    if isinstance(cls, type) and issubclass(cls, Tensor):
        return TensorSpec(tensor_shape.as_shape(shape), kind)
    raise TypeError("Could not build a structure for output class %r. Make sure any component class in `output_classes` inherits "
                    "from one of the following classes: `tf.TypeSpec`, `tf.sparse.SparseTensor`, `tf.Tensor`, `tf.TensorArray`." % (
                        getattr(cls, "__name__", cls),))
