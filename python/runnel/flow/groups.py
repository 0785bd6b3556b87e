"""Operations that wait for others: tf.group, tf.tuple, tf.no_op."""


from runnel import nest, raw_ops
from runnel.core.composite import IndexedSlices
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Operation, colocate_with, control_dependencies, executing_eagerly, get_default_graph, name_scope


def no_op(name=None):
    """Returns an operation that does nothing."""
    return raw_ops.NoOp(name=name)


def group(*inputs, name=None):
    """Returns an operation that finishes when all `inputs` have."""
    if executing_eagerly():
        return None
    if not inputs:
        return no_op(name=name)
    with name_scope(name, "group_deps", list(inputs)) as scope:
        by_device = {}
        for item in nest.flatten(list(inputs), expand_composites=True):
            if item is None:
                continue
            op = item if isinstance(item, Operation) else getattr(item, "op", None)
            if op is None:
                raise TypeError("'%s' is neither an operation nor a tensor and cannot be grouped" % (item,))
            by_device.setdefault(op.device, []).append(op)
        graph = get_default_graph()
        if len(by_device) == 1:
            (device, ops), = by_device.items()
            return _grouped(graph, ops, device, scope)
        nodes = [_grouped(graph, by_device[device], device, None) for device in sorted(by_device)]
        with control_dependencies(nodes):
            return no_op(name=scope)


def _grouped(graph, ops, device, name):
    with control_dependencies(ops):
        if device:
            with graph.device(device):
                return no_op(name=name)
        return no_op(name=name)


def with_dependencies(dependencies, output_tensor, name=None):
    """Returns `output_tensor`, available only after `dependencies` have run."""
    with name_scope(name, "control_dependency", list(dependencies) + [output_tensor]) as scope:
        with colocate_with(output_tensor), control_dependencies(dependencies):
            if isinstance(output_tensor, IndexedSlices):
                return IndexedSlices(raw_ops.Identity(input=output_tensor.values, name=scope),
                                     output_tensor.indices, output_tensor.dense_shape)
            return raw_ops.Identity(input=convert_to_tensor(output_tensor), name=scope)


def tuple(tensors, name=None, control_inputs=None):  # noqa: A001
    """Returns `tensors`, none of which is available before all are computed."""
    if executing_eagerly():
        return tensors
    with name_scope(name, "tuple", tensors):
        waits = [x.op for x in tensors if x is not None and not isinstance(x, Operation)]
        waits += [x for x in tensors if isinstance(x, Operation)]
        for item in control_inputs or ():
            waits.append(item if isinstance(item, Operation) else item.op)
        if not waits:
            raise ValueError("Must have at least one Tensor: %s" % (tensors,))
        gate = group(*waits)
        return [None if x is None else gate if isinstance(x, Operation)
                else with_dependencies([gate], x) for x in tensors]
