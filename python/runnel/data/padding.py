"""Transformations of datasets that change batches: padded_batch, ragged_batch, unbatch and rebatch."""

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.composite_specs import RaggedTensorSpec, SparseTensorSpec
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.type_spec import TensorSpec
from runnel.data import structure
from runnel.data.dataset import _bool, _int64
from runnel.ops import math_ops


def padded_batch(dataset, batch_size, padded_shapes, padding_values, drop_remainder):
    """Stacks elements, padded to `padded_shapes` or to the largest of the batch."""
    spec = dataset.element_spec
    leaves = nest.flatten(spec)
    for leaf in leaves:
        if not isinstance(leaf, TensorSpec):
            raise TypeError("`padded_batch` is only supported for datasets that produce tensor elements but type spec of elements in the "
                            "dataset is not a subclass of TensorSpec: `%s`." % (leaf,))
    if padded_shapes is None:
        shapes = [leaf.shape for leaf in leaves]
        for shape in shapes:
            if shape.rank is None:
                raise ValueError("You must provide `padded_shapes` argument because component %d has unknown rank." % shapes.index(shape))
    else:
        shapes = [_as_padded(s) for s in (nest.flatten_up_to(spec, padded_shapes) if nest.is_nested(spec) else [padded_shapes])]
    for shape, leaf in zip(shapes, leaves):
        _check_padding(shape, leaf.shape)
    values = [None] * len(leaves) if padding_values is None else _each_padding(spec, padding_values, len(leaves))
    pads = [_padding_value(v, leaf.dtype) for v, leaf in zip(values, leaves)]
    size, remainder = _int64(batch_size, name="batch_size"), _bool(drop_remainder)
    known = constant_value(size) if constant_value(remainder) is not None and bool(constant_value(remainder)) else None
    first = tensor_shape.TensorShape([None if known is None else int(known)])
    out = [TensorSpec(first.concatenate(_static(s)), leaf.dtype) for s, leaf in zip(shapes, leaves)]
    return dataset._like(raw_ops.PaddedBatchDatasetV2(
        input_dataset=dataset._variant_tensor, batch_size=size, padded_shapes=[_shape_vector(s) for s in shapes], padding_values=pads,
        drop_remainder=remainder, output_shapes=[s.shape for s in out]), nest.pack_sequence_as(spec, out))


def _each_padding(spec, padding_values, count):
    if nest.is_nested(padding_values):
        return nest.flatten_up_to(spec, padding_values)
    return [padding_values] * count


def _as_padded(shape):
    """Returns a TensorShape, or the tensor itself."""
    if isinstance(shape, Tensor):
        if shape.shape.rank not in (None, 1):
            raise ValueError("Padded shape %s must be a `tf.int64` vector tensor, but its shape was %s." % (shape, shape.shape))
        if shape.dtype != dtypes.int64:
            raise TypeError("Padded shape %s must be a `tf.int64` vector tensor, but its element type was %s." % (shape, shape.dtype.name))
        return shape
    if not isinstance(shape, (tensor_shape.TensorShape, type(None))) and hasattr(shape, "__len__"):
        shape = [None if d == -1 else d for d in shape]
    return tensor_shape.as_shape(shape)


def _static(shape):
    if not isinstance(shape, Tensor):
        return shape
    known = constant_value(shape)
    if known is None:
        rank = shape.shape.as_list()[0] if shape.shape.rank else None
        return tensor_shape.unknown_shape(rank)
    return tensor_shape.TensorShape([None if d < 0 else int(d) for d in known])


def _check_padding(padded, own):
    padded = _static(padded)
    if padded.rank is None or own.rank is None:
        return
    if padded.rank != own.rank:
        raise ValueError("The padded shape %s is not compatible with the shape %s of the corresponding input component." % (padded, own))
    for wanted, size in zip(padded.as_list(), own.as_list()):
        if wanted is not None and size is not None and wanted < size:
            raise ValueError("The padded shape %s is not compatible with the shape %s of the corresponding input component." % (padded, own))


def _shape_vector(shape):
    if isinstance(shape, Tensor):
        return math_ops.cast(shape, dtypes.int64)
    return _int64([-1 if d is None else d for d in shape.as_list()])


def _padding_value(value, dtype):
    if value is None:
        if dtype == dtypes.variant:
            raise TypeError("Unable to create default padding for a component of type 'variant'.")
        value = b"" if dtype == dtypes.string else 0
    made = convert_to_tensor(value, dtype if not isinstance(value, Tensor) else None)
    if made.shape.rank not in (None, 0):
        raise ValueError("`padding_values` should be a scalar tensor, but its shape is %s." % made.shape)
    if made.dtype != dtype:
        raise TypeError("Mismatched type between padding value %s and input dataset's component type %s." % (made.dtype.name, dtype.name))
    return made


def ragged_batch(dataset, batch_size, drop_remainder, row_splits_dtype):
    """Stacks elements of different sizes into ragged tensors."""
    from runnel.ragged.ragged_tensor import RaggedTensor

    def as_ragged(spec):
        if isinstance(spec, TensorSpec) and spec.shape.rank != 0 and not spec.shape.is_fully_defined():
            return RaggedTensorSpec(spec.shape, spec.dtype, 0, row_splits_dtype)
        return spec
    spec = nest.map_structure(as_ragged, dataset.element_spec)

    def convert(*element):
        element = element[0] if len(element) == 1 and not isinstance(dataset.element_spec, tuple) else element
        return nest.map_structure(_ragged_value, spec, element)

    def _ragged_value(leaf, value):
        if not isinstance(leaf, RaggedTensorSpec) or isinstance(value, RaggedTensor):
            return value
        return _Ragged(value, leaf)
    if any(isinstance(leaf, RaggedTensorSpec) and leaf.ragged_rank == 0 for leaf in nest.flatten(spec)):
        f = dataset._trace(lambda *x: _encoded(spec, convert(*x)), "Dataset_ragged_batch")
        encoded = dataset._like(None, spec)
        encoded._variant_tensor = raw_ops.MapDataset(input_dataset=dataset._variant_tensor, other_arguments=f.captured, f=f.attr,
                                                     preserve_cardinality=True, **encoded._attrs)
        dataset = encoded
    return dataset.batch(batch_size, drop_remainder)


class _Ragged:
    """A tensor that travels as a ragged tensor of rank 0."""

    def __init__(self, value, spec):
        self.value, self.spec = value, spec


def _encoded(spec, element):
    made = []
    for leaf, value in zip(nest.flatten(spec), nest.flatten(element)):
        made += structure._to_tensors(leaf, value.value if isinstance(value, _Ragged) else value)
    return tuple(made)


def unbatch(dataset):
    """Splits elements into their rows."""
    spec = structure.unbatched(dataset.element_spec)
    if any(isinstance(leaf, (SparseTensorSpec, RaggedTensorSpec)) for leaf in nest.flatten(dataset.element_spec)):
        dataset = _as_batches(dataset)
    made = dataset._like(None, spec)
    made._variant_tensor = raw_ops.UnbatchDataset(input_dataset=dataset._variant_tensor, **made._attrs)
    return made


def _as_batches(dataset):
    """Returns a dataset whose elements travel as vectors of what stands for their rows."""
    batched = dataset.element_spec

    def rows(*element):
        element = element[0] if len(element) == 1 and not isinstance(batched, tuple) else element
        return tuple(structure.to_batched_tensor_list(batched, element))
    f = dataset._trace(rows, "Dataset_unbatch")
    made = dataset._like(None, batched)
    made._variant_tensor = raw_ops.MapDataset(input_dataset=dataset._variant_tensor, other_arguments=f.captured, f=f.attr,
                                              output_types=f.dtypes, output_shapes=f.shapes, preserve_cardinality=True)
    return made


def rebatch(dataset, batch_size, drop_remainder):
    """Regroups the rows of batches into batches of `batch_size`, or of sizes taken in turn from a list of them."""
    sizes = _int64(batch_size, name="batch_sizes")
    if sizes._rank() == 0:
        return unbatch(dataset).batch(batch_size, drop_remainder)
    known = constant_value(sizes)
    one = int(known[0]) if known is not None and len(set(known.tolist())) == 1 and drop_remainder is True else None
    made = dataset._like(None, structure.batched(structure.unbatched(dataset.element_spec), one))
    made._variant_tensor = raw_ops.RebatchDatasetV2(
        input_dataset=dataset._variant_tensor, batch_sizes=sizes, drop_remainder=_bool(drop_remainder), **made._attrs)
    return made
