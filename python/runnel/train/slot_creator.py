"""Slots: variables that belong to another, such as the momentum of a weight."""

from runnel.core import framework
from runnel.ops import variables


def _prefix(primary):
    return primary._shared_name if isinstance(primary, variables.Variable) else primary.op.name


def _make(primary, initializer, name, validate_shape, shape, dtype, colocate_with_primary):
    import contextlib

    from runnel.ops import variable_scopes
    where = contextlib.nullcontext()
    with variable_scopes.variable_scope(None, _prefix(primary) + "/" + name):
        if colocate_with_primary and getattr(primary, "_in_graph_mode", True):
            where = framework.colocate_with(primary.op)
        with where:
            scope = variable_scopes.get_variable_scope()
            partitioner = scope.partitioner
            scope.set_partitioner(None)
            use_resource = None
            if isinstance(primary, variables.Variable):
                use_resource = hasattr(primary, "handle")
            slot = variable_scopes.get_variable(
                "", initializer=initializer, trainable=False, use_resource=use_resource,
                shape=shape if callable(initializer) else None, dtype=dtype,
                validate_shape=validate_shape)
            scope.set_partitioner(partitioner)
    info = primary._save_slice_info if isinstance(primary, variables.Variable) else None
    rank = slot.shape.ndims
    if info and (rank is None or rank > 0):
        own = slot.name[len(primary.op.name + "/"):-2]
        slot._set_save_slice_info(variables.SaveSliceInfo(
            info.full_name + "/" + own, info.full_shape[:rank], info.var_offset[:rank],
            info.var_shape[:rank]))
    return slot


def create_slot(primary, val, name, colocate_with_primary=True):
    """Creates a slot whose initial value is a tensor."""
    return _make(primary, val, name, val.shape.is_fully_defined(), None, None, colocate_with_primary)


def create_slot_with_initializer(primary, initializer, shape, dtype, name,
                                 colocate_with_primary=True):
    """Creates a slot with an initializer."""
    return _make(primary, initializer, name, shape.is_fully_defined(), shape, dtype,
                 colocate_with_primary)


def create_zeros_slot(primary, name, dtype=None, colocate_with_primary=True):
    """Creates a slot of the variable's shape, initialized with zeros."""
    from runnel.ops import array_ops, init_ops
    dtype = primary.dtype if dtype is None else dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():
        return create_slot_with_initializer(primary, init_ops.zeros_initializer(), shape, dtype, name,
                                            colocate_with_primary)
    if isinstance(primary, variables.Variable):
        shape = array_ops.shape(primary.initialized_value())
    else:
        shape = array_ops.shape(primary)
    return create_slot(primary, array_ops.zeros(shape, dtype=dtype.base_dtype), name,
                       colocate_with_primary)
