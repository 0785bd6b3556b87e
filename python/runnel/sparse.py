"""tf.sparse: tensors that keep only their nonzero elements."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "SparseTensor SparseConditionalAccumulator",
    "add=sparse_add concat=sparse_concat "
    "fill_empty_rows=sparse_fill_empty_rows "
    "mask=sparse_mask matmul=sparse_tensor_dense_matmul maximum=sparse_maximum merge=sparse_merge "
    "minimum=sparse_minimum placeholder=sparse_placeholder reduce_max=sparse_reduce_max reduce_max_sparse=sparse_reduce_max_sparse "
    "reduce_sum=sparse_reduce_sum reduce_sum_sparse=sparse_reduce_sum_sparse reorder=sparse_reorder reset_shape=sparse_reset_shape "
    "reshape=sparse_reshape retain=sparse_retain segment_mean=sparse_segment_mean segment_sqrt_n=sparse_segment_sqrt_n "
    "segment_sum=sparse_segment_sum slice=sparse_slice softmax=sparse_softmax sparse_dense_matmul=sparse_tensor_dense_matmul split=sparse_split "
    "to_dense=sparse_tensor_to_dense to_indicator=sparse_to_indicator transpose=sparse_transpose",
    "ops.sparse_ops: cross=sparse_cross cross_hashed=sparse_cross_hashed expand_dims=sparse_expand_dims eye=sparse_eye from_dense",
    "ops.sparse_v2: bincount",
)
