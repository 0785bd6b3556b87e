"""Rows of sparse and ragged tensors as tensors: functions over rows keep them in TensorArrays.

A row of a sparse or ragged tensor, whatever its size, is a row of a tensor of variants. Rows of dense tensors are themselves.
"""

from runnel import dtypes
from runnel import raw_ops as _ops
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.composite_specs import RaggedTensorSpec, SparseTensorSpec
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec, TypeSpec, type_spec_from_value


def as_batch(value, name):
    """Returns a value whose rows are used: a sparse or ragged tensor, or a tensor."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return value if isinstance(value, SparseTensor) or _is_ragged(value) else convert_to_tensor(value, name=name)


def spec_of(value):
    """Returns the description of a value, of a description, or of a type."""
    if isinstance(value, TypeSpec):
        return value
    if isinstance(value, SparseTensor) or _is_ragged(value):
        return type_spec_from_value(value)
    return TensorSpec(None, value.dtype if hasattr(value, "shape") else dtypes.as_dtype(value))


def encoded_type(spec):
    """Returns the type of the tensors that stand for values of a description."""
    return dtypes.variant if isinstance(spec, (SparseTensorSpec, RaggedTensorSpec)) else spec.dtype


def encode_batch(value):
    """Returns a tensor whose row i stands for row i of a value."""
    if isinstance(value, SparseTensor):
        return _ops.SerializeManySparse(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)
    return _ragged_variant(value, True) if _is_ragged(value) else value


def encode_row(value, spec):
    """Returns the tensor that stands for one value."""
    if isinstance(spec, SparseTensorSpec):
        return _ops.SerializeSparse(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)
    return _ragged_variant(value, False) if isinstance(spec, RaggedTensorSpec) else value


def decode(tensor, spec):
    """Returns the value of a description for which a tensor stands: one value, or a batch of several."""
    if isinstance(spec, SparseTensorSpec):
        indices, values, shape = _ops.DeserializeSparse(tensor, dtype=spec.dtype)
        if indices.op is not None and spec.shape.rank is not None:
            indices.set_shape([None, spec.shape.rank])
            shape.set_shape([spec.shape.rank])
        return spec._from_components([indices, values, shape])
    if not isinstance(spec, RaggedTensorSpec):
        return tensor
    outer = tensor.shape.rank or 0
    splits, values = _ops.RaggedTensorFromVariant(
        tensor, input_ragged_rank=max(spec._ragged_rank - outer, -1), output_ragged_rank=spec._ragged_rank, Tvalues=spec.dtype,
        Tsplits=spec._row_splits_dtype)
    if values.op is not None and spec.shape.rank is not None:
        values.set_shape([None, *spec.shape[spec._ragged_rank + 1:]] if spec._ragged_rank else spec.shape)
    return spec._from_components([values, *splits])


def _is_ragged(value):
    return hasattr(value, "ragged_rank") and not isinstance(value, TypeSpec)


def _ragged_variant(value, is_batch):
    splits, values = (list(value.nested_row_splits), value.flat_values) if _is_ragged(value) else ([], value)
    kind = splits[0].dtype if splits else dtypes.int64
    return _ops.RaggedTensorToVariant(rt_nested_splits=splits, rt_dense_values=values, batched_input=is_batch, Tsplits=kind)
