"""Functions that see a tensor's value in every step that computes it: `subscribe`.

What reads the tensor reads an Identity instead, which waits for what the functions return.
"""

from runnel import raw_ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor


def _mapped(value, function):
    """Returns a structure of the same kind with the function's results in place of the tensors."""
    if isinstance(value, dict):
        return type(value)((key, _mapped(one, function)) for key, one in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_mapped(one, function) for one in value])
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(one, function) for one in value)
    if isinstance(value, SparseTensor):
        return SparseTensor(*[_mapped(one, function) for one in (value.indices, value.values, value.dense_shape)])
    if isinstance(value, Tensor):
        return function(value)
    if hasattr(value, "read_value"):
        return function(convert_to_tensor(value))
    raise TypeError("The argument %r of subscribe has invalid type %r: tensors are expected, or lists, tuples and dictionaries of them" % (
        value, type(value)))


def _is_subscribed_identity(tensor):
    """Tells whether `subscribe` made a tensor."""
    if tensor.op.type != "Identity":
        return False
    source, mark, rest = tensor.op.name.rpartition("/subscription/")
    return bool(mark) and rest.startswith("Identity") and tensor.op.inputs[0].op.name == source


def _identity_of(tensor):
    """Returns what stands for a tensor that has been subscribed to, or None."""
    if _is_subscribed_identity(tensor):
        return tensor
    return next((op.outputs[0] for op in tensor.consumers() if _is_subscribed_identity(op.outputs[0]) and op.inputs[0] is tensor), None)


def _move_control(operation, old, new):
    """Makes an operation wait for `new` instead of `old`."""
    kept = [op for op in operation.control_inputs if op is not old]
    operation._remove_all_control_inputs()
    operation._add_control_inputs([*kept, new])


def _subscribe(tensor, side_effects, awaiting):
    identity = _identity_of(tensor)
    is_new = identity is None
    source = tensor if is_new else identity.op.inputs[0]
    if source.dtype.base_dtype.name in ("resource", "variant"):
        return tensor
    graph = source.graph
    readers = source.consumers()
    if source.op not in awaiting:
        awaiting[source.op] = list(source.op._control_outputs)
    scope = source.op.name + "/subscription/"
    with graph.as_default(), graph.name_scope(scope), graph.control_dependencies(None), graph.colocate_with(source.op, ignore_existing=True):
        context = source.op._get_control_flow_context()
        before = graph._get_control_flow_context()
        graph._set_control_flow_context(context)
        try:
            seen = [result for effect in side_effects for result in _flat(effect(source))]
            if is_new:
                with graph.control_dependencies(seen):
                    identity = raw_ops.Identity(input=source, name="Identity")
            else:
                identity.op._add_control_inputs([one.op if isinstance(one, Tensor) else one for one in seen])
        finally:
            graph._set_control_flow_context(before)
    if is_new:
        for reader in readers:
            for index, value in enumerate(reader.inputs):
                if value is source:
                    reader._update_input(index, identity)
        for operation in awaiting[source.op]:
            _move_control(operation, source.op, identity.op)
    return identity


def _flat(results):
    return list(results) if isinstance(results, (list, tuple)) else [] if results is None else [results]


def subscribe(tensors, side_effects):
    """Calls functions on tensors in every step that computes them.

    Args:
      tensors: a tensor, or a list, tuple or dictionary of tensors.
      side_effects: a function of a tensor, such as `lambda t: tf.py_func(log, [t], [])`, or a list of such functions.

    Returns:
      The same structure of tensors that stand for those of `tensors`, in new operations too. What read them before reads these.
    """
    side_effects = list(side_effects) if isinstance(side_effects, (list, tuple)) else [side_effects]
    awaiting: dict = {}  # operation -> those that wait for it
    return _mapped(tensors, lambda tensor: _subscribe(tensor, side_effects, awaiting))
