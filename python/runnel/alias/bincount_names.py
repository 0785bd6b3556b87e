"""tensorflow.python.ops.bincount_ops and sparse_ops: counting in tensors, sparse and ragged tensors."""

from runnel.ops.math_ops import bincount as bincount_v1  # noqa: F401
from runnel.ops.sparse_v2 import bincount as sparse_bincount, dense_bincount as bincount  # noqa: F401
