"""Lists of tensors as variants: the ops TensorList* with shapes as Python writes them (tensorflow.python.ops.list_ops)."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.tensor_shape import TensorShape


def _build_element_shape(shape):
    """Returns a shape as the ops take it: a vector with -1 for sizes that are not known, or -1 for an unknown rank."""
    if isinstance(shape, Tensor):
        return shape
    if isinstance(shape, TensorShape):
        shape = shape.as_list() if shape.ndims is not None else None
    if shape is None:
        return -1
    if not isinstance(shape, (list, tuple)):
        return convert_to_tensor(shape)
    sizes = [-1 if size is None else getattr(size, "value", size) for size in shape]
    sizes = [-1 if size is None else size for size in sizes]
    return convert_to_tensor(sizes, dtype=dtypes.int32) if not sizes else convert_to_tensor(sizes)


def empty_tensor_list(element_shape, element_dtype, max_num_elements=None, name=None):
    """Returns an empty list; `max_num_elements` None: it may grow without limit."""
    return _ops.EmptyTensorList(element_shape=_build_element_shape(element_shape), element_dtype=element_dtype,
                                max_num_elements=-1 if max_num_elements is None else max_num_elements, name=name)


def tensor_list_reserve(element_shape, num_elements, element_dtype, name=None):
    """Returns a list of `num_elements` elements without a value."""
    return _ops.TensorListReserve(element_shape=_build_element_shape(element_shape), num_elements=num_elements,
                                  element_dtype=element_dtype, name=name)


def tensor_list_from_tensor(tensor, element_shape, name=None):
    """Returns a list of the rows of `tensor`."""
    return _ops.TensorListFromTensor(tensor=tensor, element_shape=_build_element_shape(element_shape), name=name)


def tensor_list_get_item(input_handle, index, element_dtype, element_shape=None, name=None):
    """Returns one element."""
    return _ops.TensorListGetItem(input_handle=input_handle, index=index, element_shape=_build_element_shape(element_shape),
                                  element_dtype=element_dtype, name=name)


def tensor_list_set_item(input_handle, index, item, resize_if_index_out_of_bounds=False, name=None):
    """Returns the list with another value of one element."""
    return _ops.TensorListSetItem(input_handle=input_handle, index=index, item=item,
                                  resize_if_index_out_of_bounds=resize_if_index_out_of_bounds, name=name)


def tensor_list_pop_back(input_handle, element_dtype, name=None):
    """Returns the list without its last element, and that element."""
    return _ops.TensorListPopBack(input_handle=input_handle, element_shape=-1, element_dtype=element_dtype, name=name)


def tensor_list_gather(input_handle, indices, element_dtype, element_shape=None, name=None):
    """Returns the elements at `indices` as the rows of a tensor."""
    return _ops.TensorListGather(input_handle=input_handle, indices=indices, element_shape=_build_element_shape(element_shape),
                                 element_dtype=element_dtype, name=name)


def tensor_list_scatter(tensor, indices, element_shape=None, input_handle=None, name=None):
    """Returns a list, new or `input_handle`, with the rows of `tensor` at `indices`."""
    tensor = convert_to_tensor(tensor)
    if input_handle is not None:
        return _ops.TensorListScatterIntoExistingList(input_handle=input_handle, tensor=tensor, indices=indices, name=name)
    return _ops.TensorListScatterV2(tensor=tensor, indices=indices, element_shape=_build_element_shape(element_shape),
                                    num_elements=-1, name=name)


def tensor_list_stack(input_handle, element_dtype, num_elements=-1, element_shape=None, name=None):
    """Returns the elements as the rows of a tensor."""
    return _ops.TensorListStack(input_handle=input_handle, element_shape=_build_element_shape(element_shape),
                                element_dtype=element_dtype, num_elements=num_elements, name=name)


def tensor_list_concat(input_handle, element_dtype, element_shape=None, name=None):
    """Returns the elements one after the other along their first dimension."""
    return _ops.TensorListConcatV2(input_handle=input_handle, element_shape=_build_element_shape(element_shape),
                                   leading_dims=convert_to_tensor([], dtype=dtypes.int64), element_dtype=element_dtype, name=name)[0]


def tensor_list_split(tensor, element_shape, lengths, name=None):
    """Returns a list of parts of `tensor`, with the numbers of rows in `lengths`."""
    return _ops.TensorListSplit(tensor=tensor, element_shape=_build_element_shape(element_shape), lengths=lengths, name=name)
