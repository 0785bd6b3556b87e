"""tensorflow.python.autograph.operators.slices: elements."""

import collections

from runnel.core.convert import convert_to_tensor

GetItemOpts = collections.namedtuple("GetItemOpts", ["element_dtype"])


def get_item(target, i, opts):
    """Returns target[i]: of a tensor list an element, of a scalar string a character."""
    from runnel.alias import list_ops
    import runnel
    if isinstance(target, runnel.Tensor) and target.dtype == runnel.variant:
        if opts.element_dtype is None:
            raise ValueError("cannot retrieve from a list without knowing its element type; use set_element_type to annotate it")
        return list_ops.tensor_list_get_item(target, i, element_dtype=opts.element_dtype)
    if isinstance(target, runnel.Tensor) and target.dtype == runnel.string and target.shape.rank == 0:
        return runnel.strings.substr(target, i, 1)
    return target[i]


def set_item(target, i, x):
    """Sets target[i]. Returns the target, or a tensor list with the new element."""
    from runnel.alias import list_ops
    import runnel
    if hasattr(target, "write") and hasattr(target, "stack"):
        return target.write(i, x)
    if isinstance(target, runnel.Tensor):
        if target.dtype != runnel.variant:
            raise ValueError("tensor lists are expected to be Tensors with dtype=tf.variant, instead found %s" % target)
        return list_ops.tensor_list_set_item(target, i, convert_to_tensor(x))
    target[i] = x
    return target
