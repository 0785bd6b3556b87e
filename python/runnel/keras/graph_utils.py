"""Functions of graphs that Keras uses (tensorflow.python.keras.utils.tf_utils)."""

from runnel.core.convert import constant_value  # noqa: F401
from runnel.core.framework import Tensor, is_tensor
from runnel.ops.control_flow import smart_cond  # noqa: F401

_symbolic = [Tensor]


def get_reachable_from_inputs(inputs, targets=None):
    """Returns the inputs and what is computed from them; may stop once all targets were found."""
    wanted = set(map(id, targets)) if targets else None
    seen, waiting = {}, list(inputs)
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if wanted is not None:
            wanted.discard(id(item))
            if not wanted:
                break
        if hasattr(item, "outputs"):
            waiting.extend(item.outputs)
        elif hasattr(item, "consumers"):
            waiting.extend(item.consumers())
        elif hasattr(item, "handle"):
            waiting.append(item.handle)
    return set(seen.values())


def register_symbolic_tensor_type(cls):
    """Makes is_symbolic_tensor return True for a class."""
    _symbolic.append(cls)


def is_symbolic_tensor(tensor):
    """Tells whether `tensor` is a tensor of a graph."""
    if isinstance(tensor, Tensor):
        return tensor.op is not None
    return isinstance(tensor, tuple(_symbolic))


def is_tensor_or_tensor_list(v):
    """Tells whether `v`, or its first element, is a tensor."""
    if isinstance(v, (list, tuple)):
        v = v[0] if v else None
    return is_tensor(v)
