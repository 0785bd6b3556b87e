"""Transformations of datasets that change batches: padded_batch, ragged_batch, unbatch and rebatch."""

from runnel import dtypes, nest, raw_ops
from runnel.core import nest_up_to, tensor_shape
from runnel.core.composite_specs import RaggedTensorSpec
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
        if hasattr(leaf, "_dataset_shape"):
            raise TypeError("`padded_batch` is not supported for datasets of datasets")
        if not isinstance(leaf, TensorSpec):
            raise TypeError("`padded_batch` is only supported for datasets that produce tensor elements but type spec of elements in the input "
                            "dataset is not a subclass of TensorSpec: `%s`." % (leaf,))
    if padded_shapes is None:
        shapes = [leaf.shape for leaf in leaves]
        for shape in shapes:
            if shape.rank is None:
                raise ValueError("You must provide `padded_shapes` argument because component %d has unknown rank." % shapes.index(shape))
    else:
        shapes = [_as_padded(s) for s in (nest_up_to.flatten_up_to(spec, padded_shapes, check_types=False) if nest.is_nested(spec) else [padded_shapes])]
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
    if not nest.is_nested(padding_values):
        return [padding_values] * count
    if not nest.is_nested(spec):
        return [padding_values]
    keys = nest._sorted_keys(spec) if isinstance(spec, dict) else range(len(nest._children(spec)))
    return [value for key, child in zip(keys, nest._children(spec))
            for value in _each_padding(child, padding_values[key], len(nest.flatten(child)))]


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
    def as_ragged(spec):
        if not isinstance(spec, TensorSpec) or spec.shape.rank is None or spec.shape.is_fully_defined():
            return spec
        last = max(axis for axis, size in enumerate(spec.shape.as_list()) if size is None)
        return RaggedTensorSpec(spec.shape, spec.dtype, last, row_splits_dtype)
    before = dataset.element_spec
    spec = nest.map_structure(as_ragged, before)
    if any(a is not b for a, b in zip(nest.flatten(spec), nest.flatten(before))):
        f = dataset._trace(lambda *element: _encoded(before, spec, element), "Dataset_ragged_batch")
        encoded = dataset._like(None, spec)
        encoded._variant_tensor = raw_ops.MapDataset(input_dataset=dataset._variant_tensor, other_arguments=f.captured, f=f.attr,
                                                     preserve_cardinality=True, **encoded._attrs)
        dataset = encoded
    return dataset.batch(batch_size, drop_remainder)


def _encoded(before, after, element):
    """Returns the tensors that stand for an element; those that `after` describes as ragged travel as ragged tensors."""
    from runnel.ragged.ragged_tensor import RaggedTensor
    element = element[0] if len(element) == 1 and not isinstance(before, tuple) else element
    made = []
    for old, new, value in zip(nest.flatten(before), nest.flatten(after), structure.flatten_like(before, element)):
        if new is not old and new.ragged_rank > 0:
            value = RaggedTensor.from_tensor(value, ragged_rank=new.ragged_rank, row_splits_dtype=new.row_splits_dtype)
        made += structure._to_tensors(new, value)
    return tuple(made)


def unbatch(dataset):
    """Splits elements into their rows."""
    counts = {shape.as_list()[0] for shape in dataset._shapes if shape.rank} - {None}
    if len(counts) > 1:
        raise ValueError("Dimensions %s are not compatible" % " and ".join(str(count) for count in sorted(counts)))
    made = dataset._like(None, structure.unbatched(dataset.element_spec))
    made._variant_tensor = raw_ops.UnbatchDataset(input_dataset=normalize_to_dense(dataset)._variant_tensor, **made._attrs)
    return made


def normalize_to_dense(dataset):
    """Returns a dataset whose elements travel as tensors of which a row stands for a row of the element."""
    batched = dataset.element_spec
    if dtypes.variant not in structure.get_flat_tensor_types(batched):
        return dataset

    def rows(*element):
        element = element[0] if len(element) == 1 and not isinstance(batched, tuple) else element
        return tuple(structure.to_batched_tensor_list(batched, element))
    f = dataset._trace(rows, "Dataset_unbatch")
    made = dataset._like(None, batched)
    made._variant_tensor = raw_ops.MapDataset(input_dataset=dataset._variant_tensor, other_arguments=f.captured, f=f.attr,
                                              output_types=f.dtypes, output_shapes=f.shapes, preserve_cardinality=True)
    return made


def rebatch(dataset, batch_size, drop_remainder=False, name=None):
    """Regroups the rows of batches into batches of `batch_size`, or of sizes taken in turn from a list of them."""
    sizes, remainder = _int64(batch_size, name="batch_sizes"), _bool(drop_remainder, name="drop_remainder")
    size = _static_size(dataset, sizes, remainder)
    made = dataset._like(None, structure.batched(structure.unbatched(dataset.element_spec), size))
    made._variant_tensor = raw_ops.RebatchDatasetV2(
        input_dataset=normalize_to_dense(dataset)._variant_tensor, batch_sizes=sizes, drop_remainder=remainder, **made._attrs)
    return made


def _static_size(dataset, sizes, remainder):
    """Returns the size of all batches of a rebatched dataset, None if they may differ."""
    known = constant_value(sizes)
    if known is None:
        return None
    if known.ndim > 1:
        raise ValueError("Invalid `batch_sizes`. Expected `batch_sizes` to be a scalar or a vector. Received `batch_sizes` of rank %d." % known.ndim)
    if known.size == 0 or (known != known.flat[0]).any():
        return None
    size, drops = int(known.flat[0]), constant_value(remainder)
    return size if drops is not None and bool(drops) or not _leaves_rest(dataset, size) else None


def _leaves_rest(dataset, size):
    """Tells whether a batch of a dataset may end within a batch of `size` rows."""
    before = []
    for leaf in nest.flatten(dataset.element_spec):
        shape = getattr(leaf, "shape", None)
        if not isinstance(shape, tensor_shape.TensorShape) or shape.rank is None:
            continue
        if shape.rank < 1:
            raise ValueError("Invalid `batch_sizes`. Expected dataset with rank of >= 1 but found a dataset with scalar elements. Fix the issue by "
                             "adding the `batch` transformation to the dataset.")
        before.append(shape.as_list()[0])
    known = [count for count in before if count is not None]
    if len(set(known)) > 1:
        raise ValueError("Invalid `input_dataset.` The batch dimension of component 0 is %d, while the batch dimension of component i is %s." % (
            known[0], known))
    return not known or not size or known[0] % size != 0
