"""The classes of source datasets of tensorflow.python.data.ops. They recognize datasets; tf.data.Dataset's methods make them."""

from runnel.data.dataset import Dataset


class _Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Dataset) and value._kind == cls.__name__


def _kind(name):
    return _Kind(name, (), {"__doc__": "Recognizes the datasets that stock makes of the class %s." % name})


_GeneratorDataset = _kind("_GeneratorDataset")
_RangeDataset = _kind("_RangeDataset")
_SparseTensorSliceDataset = _kind("_SparseTensorSliceDataset")
_TensorDataset = _kind("_TensorDataset")
_TensorSliceDataset = _kind("_TensorSliceDataset")
