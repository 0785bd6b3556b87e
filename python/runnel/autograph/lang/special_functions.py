"""tensorflow.python.autograph.lang.special_functions: the same calls for Python's values and for tensors."""

from runnel.autograph.operators import data_structures
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import is_tensor


def match_staging_level(value, like_value):
    """Returns a value as a tensor if the other one is a tensor."""
    return convert_to_tensor(value) if is_tensor(like_value) else value


def tensor_list(elements, element_dtype=None, element_shape=None, use_tensor_array=False):
    """Returns a tensor list, or a TensorArray, of elements."""
    if (element_dtype is None or element_shape is None) and not is_tensor(elements):
        if not isinstance(elements, (list, tuple)):
            raise ValueError("unknown type for elements: %s; only Tensor, list and tuple are allowed" % type(elements))
        if not elements:
            raise ValueError("element_dtype and element_shape are required when elements are empty")
    make = data_structures.tf_tensor_array_new if use_tensor_array else data_structures.tf_tensor_list_new
    return make(elements, element_dtype, element_shape)


def stack(list_or_tensor, element_dtype=None, strict=True):
    """Returns the elements of a tensor list or TensorArray as the rows of a tensor; anything else as it is, or a ValueError if |strict|."""
    def original_call(value):
        if strict:
            raise ValueError("%s must be stackable when strict=True" % value)
        return value
    return data_structures.list_stack(list_or_tensor, data_structures.ListStackOpts(element_dtype=element_dtype, original_call=original_call))
