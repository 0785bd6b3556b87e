"""Functions of XLA that programs also call outside compiled functions."""

from runnel import dtypes, raw_ops
from runnel.core import convert
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops


def dynamic_update_slice(x, updates, starts, name=None):
    """Returns `x` with `updates` written at `starts`; starts are moved so that the updates fit."""
    with name_scope(name, "XlaDynamicUpdateSlice", [x, updates, starts]):
        x = convert.convert_to_tensor(x, name="x")
        updates = convert.convert_to_tensor(updates, dtype=x.dtype, name="updates")
        starts = math_ops.cast(convert.convert_to_tensor(starts, name="starts"), dtypes.int32)
        if x._rank() == 0:
            return array_ops.identity(updates)
        last = array_ops.shape(x) - array_ops.shape(updates)
        starts = raw_ops.Maximum(x=raw_ops.Minimum(x=starts, y=last), y=array_ops.zeros_like(starts))
        places = array_ops.meshgrid(*[math_ops.range(array_ops.shape(updates)[i]) + starts[i] for i in range(x._rank())], indexing="ij")
        result = raw_ops.TensorScatterUpdate(tensor=x, indices=array_ops.stack(places, -1), updates=updates)
        result.set_shape(x.shape)
        return result
