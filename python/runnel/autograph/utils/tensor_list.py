"""tensorflow.python.autograph.utils.tensor_list: tensor lists with the methods of Python's lists."""

from runnel import raw_ops
from runnel.alias import list_ops
from runnel.autograph.operators import data_structures


def dynamic_list_append(target, element):
    """Appends an element to a list of any kind. Returns the list."""
    return data_structures.list_append(target, element)


class TensorList:
    """A list of tensors of one shape and type."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype
        self.clear()

    def append(self, value):
        """Adds an element at the end."""
        self.list_ = raw_ops.TensorListPushBack(input_handle=self.list_, tensor=value)

    def pop(self):
        """Removes the last element. Returns it."""
        self.list_, value = list_ops.tensor_list_pop_back(self.list_, self.dtype)
        return value

    def clear(self):
        """Removes all elements."""
        self.list_ = list_ops.empty_tensor_list(self.shape, self.dtype)

    def count(self):
        """Returns the number of elements, a tensor."""
        return raw_ops.TensorListLength(input_handle=self.list_)

    def __getitem__(self, key):
        return list_ops.tensor_list_get_item(self.list_, key, self.dtype)

    def __setitem__(self, key, value):
        self.list_ = list_ops.tensor_list_set_item(self.list_, key, value)
