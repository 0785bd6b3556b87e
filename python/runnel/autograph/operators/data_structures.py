"""tensorflow.python.autograph.operators.data_structures: lists of Python, tensor lists and TensorArrays by the same calls."""

import collections

import runnel
from runnel import nest, raw_ops
from runnel.alias import list_ops
from runnel.core.convert import convert_to_tensor
from runnel.ops.tensor_array import TensorArray

ListPopOpts = collections.namedtuple("ListPopOpts", ["element_dtype", "element_shape"])
ListStackOpts = collections.namedtuple("ListStackOpts", ["element_dtype", "original_call"])


def _elements(iterable):
    return [convert_to_tensor(one) for one in iterable]


def _common(elements, element_dtype, element_shape, same_shapes):
    """Returns (type, shape) of elements, either of which may be given. Raises ValueError if they differ."""
    types, shapes = {x.dtype for x in elements}, [x.shape for x in elements]
    given = None if element_dtype is None else runnel.as_dtype(element_dtype)
    if len(types | ({given} - {None})) > 1:
        raise ValueError("all elements of a list must have one type, got %s" % sorted(x.name for x in types | ({given} - {None})))
    shape = None if element_shape is None else runnel.TensorShape(element_shape)
    for one in shapes:
        if shape is not None and not shape.is_compatible_with(one):
            raise ValueError("an element of shape %s does not fit the shape %s" % (one, shape))
        if same_shapes and not one.is_compatible_with(shapes[0]):
            raise ValueError("all elements of a list must have one shape, got %s and %s" % (shapes[0], one))
    return given or next(iter(types), None), shape


def new_list(iterable=None):
    """Returns a tensor list without elements, or a list of the given ones."""
    elements = list(iterable) if iterable is not None else []
    return elements if elements else tf_tensor_list_new(elements)


def tf_tensor_list_new(elements, element_dtype=None, element_shape=None):
    """Returns a tensor list of elements."""
    if isinstance(elements, runnel.Tensor):
        shape = elements.shape[1:]
        if element_shape is not None and not shape.is_compatible_with(runnel.TensorShape(element_shape)):
            raise ValueError("elements of shape %s do not fit the shape %s" % (shape, element_shape))
        return list_ops.tensor_list_from_tensor(elements, element_shape=shape)
    elements = _elements(elements)
    kind, shape = _common(elements, element_dtype, element_shape, False)
    made = list_ops.empty_tensor_list(element_shape=shape, element_dtype=kind or runnel.variant)
    for one in elements:
        made = raw_ops.TensorListPushBack(input_handle=made, tensor=one)
    return made


def tf_tensor_array_new(elements, element_dtype=None, element_shape=None):
    """Returns a TensorArray of elements."""
    elements = _elements(elements)
    kind, shape = _common(elements, element_dtype, element_shape, True)
    if kind is None:
        raise ValueError("dtype is required to create an empty TensorArray")
    made = TensorArray(dtype=kind, size=len(elements), dynamic_size=True, infer_shape=shape is None, element_shape=shape)
    for i, one in enumerate(elements):
        made = made.write(i, one)
    return made


def _is_list(value):
    if not isinstance(value, runnel.Tensor):
        return False
    if value.dtype != runnel.variant:
        raise ValueError("tensor lists are expected to be Tensors with dtype=tf.variant, instead found %s" % value)
    return True


def list_append(list_, x):
    """Appends an element. Returns the list."""
    if isinstance(list_, TensorArray):
        return list_.write(list_.size(), x)
    if not _is_list(list_):
        list_.append(x)
        return list_
    x = convert_to_tensor(x)
    started = runnel.cond(raw_ops.TensorListLength(input_handle=list_) > 0, lambda: list_,
                          lambda: list_ops.empty_tensor_list(element_shape=runnel.shape(x), element_dtype=x.dtype))
    return raw_ops.TensorListPushBack(input_handle=started, tensor=x)


def list_pop(list_, i, opts):
    """Removes an element, by default the last one. Returns (list, element)."""
    if isinstance(list_, TensorArray):
        raise ValueError("TensorArray does not support item removal")
    if not _is_list(list_):
        removed = list_.pop() if i is None else list_.pop(i)
        return list_, removed
    if i is not None:
        raise NotImplementedError("tensor lists only support removing from the end")
    if opts.element_dtype is None or opts.element_shape is None:
        raise ValueError("cannot pop from a list without knowing the type and the shape of its elements")
    rest, removed = list_ops.tensor_list_pop_back(list_, element_dtype=opts.element_dtype)
    removed.set_shape(opts.element_shape)
    return rest, removed


def list_stack(list_, opts):
    """Returns the elements as the rows of a tensor; a list of Python goes to `opts.original_call`."""
    if isinstance(list_, TensorArray):
        return list_.stack()
    if isinstance(list_, runnel.Tensor) and list_.dtype != runnel.variant:
        return list_
    if not nest.is_nested(list_) and _is_list(list_):
        if opts.element_dtype is None:
            raise ValueError("cannot stack a list without knowing the type of its elements")
        return list_ops.tensor_list_stack(list_, element_dtype=opts.element_dtype)
    return opts.original_call(list_)
