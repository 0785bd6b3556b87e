"""tf.ragged: tensors whose rows have different lengths."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "ragged.ragged_tensor: RaggedTensor RaggedTensorValue",
    "ragged.ragged_arrays: cross cross_hashed",
    "ragged.ragged_functions: boolean_mask map_flat_values stack",
    "ragged.ragged_ops: constant constant_value placeholder range row_splits_to_segment_ids segment_ids_to_row_splits "
    "stack_dynamic_partitions",
)
