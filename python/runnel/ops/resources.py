"""Resources that libraries register with a graph, and their initialization."""

import collections

from runnel.core.framework import GraphKeys, add_to_collection, get_collection, name_scope

_Resource = collections.namedtuple("_Resource", ["handle", "create", "is_initialized"])


def register_resource(handle, create_op, is_initialized_op, is_shared=True):
    """Registers a resource: its handle, the operation that creates it, and a tensor that tells whether it exists."""
    add_to_collection(GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES, _Resource(handle, create_op, is_initialized_op))


def shared_resources():
    """Returns the registered resources that sessions share."""
    return get_collection(GraphKeys.RESOURCES)


def local_resources():
    """Returns the registered resources of a single session."""
    return get_collection(GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list, name="init"):
    """Returns the operation that creates the resources of a list."""
    from runnel.ops.control_flow import group, no_op
    return group(*[r.create for r in resource_list], name=name) if resource_list else no_op(name=name)


def report_uninitialized_resources(resource_list=None, name="report_uninitialized_resources"):
    """Returns the names of the resources that do not exist yet, as a tensor."""
    from runnel.core.convert import constant, convert_to_tensor
    from runnel import raw_ops
    from runnel.ops import array_ops
    found = shared_resources() + local_resources() if resource_list is None else resource_list
    with name_scope(name):
        if not found:
            return constant([], dtype="string")
        missing = raw_ops.LogicalNot(x=array_ops.stack([r.is_initialized for r in found]))
        return array_ops.boolean_mask(convert_to_tensor([r.handle.name for r in found]), missing)
