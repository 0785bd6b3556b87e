"""Datasets whose elements are composite tensors."""

from runnel import dtypes
from runnel.core.composite import SparseTensor
from runnel.core.composite_specs import SparseTensorSpec
from runnel.core.framework import Tensor
from runnel.data.dataset import Dataset


class SparseDataset(Dataset):
    """A dataset of sparse tensors; `variant` has their indices, values and shapes."""

    def __init__(self, variant, dtype, shape):
        rank = shape.ndims
        super().__init__(variant, (0, 0, 0), [dtypes.int64, dtype, dtypes.int64], [[None, rank], [None], [rank]])
        self._dtype, self._shape = dtype, shape

    def _pack(self, flat):
        return SparseTensor(*flat) if isinstance(flat[0], Tensor) else super()._pack(flat)

    def _like(self, variant, shapes=None):
        return SparseDataset(variant, self._dtype, self._shape) if shapes is None else super()._like(variant, shapes)

    @property
    def element_spec(self):
        """The type and the shape of an element."""
        return SparseTensorSpec(self._shape, self._dtype)
