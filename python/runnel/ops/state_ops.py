"""Updates of variables, of both kinds: assign, scatter and the like."""

from runnel import raw_ops
from runnel.core.naming import named


def _is_reference(ref):
    return ref.dtype._is_ref_dtype


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    """Sets the value of a variable. Returns the variable, for use after the assignment."""
    if _is_reference(ref):
        return raw_ops.Assign(ref=ref, value=value, name=name,
                              validate_shape=True if validate_shape is None else validate_shape,
                              use_locking=True if use_locking is None else use_locking)
    return ref.assign(value, name=name)


def assign_add(ref, value, use_locking=None, name=None):
    """Adds `value` to a variable."""
    if _is_reference(ref):
        return raw_ops.AssignAdd(ref=ref, value=value, use_locking=bool(use_locking), name=name)
    return ref.assign_add(value)


def assign_sub(ref, value, use_locking=None, name=None):
    """Subtracts `value` from a variable."""
    if _is_reference(ref):
        return raw_ops.AssignSub(ref=ref, value=value, use_locking=bool(use_locking), name=name)
    return ref.assign_sub(value)


def variable_op_v2(shape, dtype, name="Variable", container="", shared_name=""):
    """Creates the node that holds a reference variable."""
    return raw_ops.VariableV2(shape=shape, dtype=dtype, name=name, container=container,
                              shared_name=shared_name)


def is_variable_initialized(ref, name=None):
    """Returns a bool tensor: whether a variable has a value."""
    if _is_reference(ref):
        return raw_ops.IsVariableInitialized(ref=ref, name=name)
    return ref.is_initialized(name=name)


def count_up_to(ref, limit, name=None):
    """Increments a variable and returns its previous value. Fails with OutOfRangeError at the limit."""
    if _is_reference(ref):
        return raw_ops.CountUpTo(ref=ref, limit=limit, name=name)
    return raw_ops.ResourceCountUpTo(resource=ref.handle, limit=limit, T=ref.dtype, name=name)


_SCATTER_DOCS = {
    "Update": "Sets the %s `indices` of a variable to `updates`.",
    "Add": "Adds `updates` to the %s `indices` of a variable.",
    "Sub": "Subtracts `updates` from the %s `indices` of a variable.",
    "Mul": "Multiplies the %s `indices` of a variable by `updates`.",
    "Div": "Divides the %s `indices` of a variable by `updates`.",
    "Min": "Replaces the %s `indices` of a variable by their minimum with `updates`.",
    "Max": "Replaces the %s `indices` of a variable by their maximum with `updates`."}


def _scatter(op, locks):
    """Makes the function for ScatterAdd and the like, which update rows of a variable by index."""
    def function(ref, indices, updates, use_locking=locks, name=None):
        if _is_reference(ref):
            return getattr(raw_ops, "Scatter" + op)(
                ref=ref, indices=indices, updates=updates, use_locking=use_locking, name=name)
        from runnel.core.convert import convert_to_tensor
        change = getattr(raw_ops, "ResourceScatter" + op)(
            resource=ref.handle, indices=indices, updates=convert_to_tensor(updates, ref.dtype),
            name=name)
        return ref._lazy_read(change)

    return named(function, "scatter_" + op.lower(), _SCATTER_DOCS[op] % "rows")


def _scatter_nd(op, locks):
    def function(ref, indices, updates, use_locking=locks, name=None):
        if _is_reference(ref):
            return getattr(raw_ops, "ScatterNd" + op)(
                ref=ref, indices=indices, updates=updates, use_locking=use_locking, name=name)
        from runnel.core.convert import convert_to_tensor
        change = getattr(raw_ops, "ResourceScatterNd" + op)(
            ref=ref.handle, indices=indices, updates=convert_to_tensor(updates, ref.dtype), name=name)
        return ref._lazy_read(change)

    return named(function, "scatter_nd_" + op.lower(), _SCATTER_DOCS[op] % "elements or slices")


scatter_update = _scatter("Update", True)
scatter_add = _scatter("Add", False)
scatter_sub = _scatter("Sub", False)
scatter_mul = _scatter("Mul", False)
scatter_div = _scatter("Div", False)
scatter_min = _scatter("Min", False)
scatter_max = _scatter("Max", False)
scatter_nd_update = _scatter_nd("Update", True)
scatter_nd_add = _scatter_nd("Add", False)
scatter_nd_sub = _scatter_nd("Sub", False)


def batch_scatter_update(ref, indices, updates, use_locking=True, name=None):
    """Updates rows in each batch of a variable: ref[b, indices[b, i]] = updates[b, i]."""
    from runnel.core import framework
    from runnel.core.convert import convert_to_tensor
    from runnel.ops import array_ops, math_ops
    with framework.name_scope(name):
        indices = convert_to_tensor(indices, name="indices")
        shape = array_ops.shape(indices)
        rank = indices.shape.ndims
        parts = [array_ops.expand_dims(indices, axis=-1)]
        for axis in range(rank - 2, -1, -1):
            ones = [1] * (rank + 1)
            ones[axis] = -1
            steps = array_ops.reshape(math_ops.range(shape[axis]), ones)
            full = array_ops.concat([shape, [1]], 0)
            parts.insert(0, steps + array_ops.zeros(full, indices.dtype))
        return scatter_nd_update(ref, array_ops.concat(parts, axis=-1), updates, use_locking)
