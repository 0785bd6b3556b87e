"""Functions of one batch dimension applied to inputs with several."""

from runnel.core.convert import convert_to_tensor
from runnel.ops import array_ops


def with_one_batch_dimension(function, value, inner_rank):
    """Returns `function(value)`. If `value` has more than one dimension before its last `inner_rank`, `function` sees them as one."""
    rank = getattr(getattr(value, "shape", None), "rank", None)
    if rank is None or rank <= inner_rank + 1:
        return function(value)
    value = convert_to_tensor(value)
    batch, inner = _part(value, slice(None, -inner_rank)), _part(value, slice(-inner_rank, None))
    result = function(array_ops.reshape(value, array_ops.concat([[-1], inner], 0)))
    out = array_ops.reshape(result, array_ops.concat([batch, _part(result, slice(-inner_rank, None))], 0))
    out.set_shape(value.shape[:-inner_rank].concatenate(result.shape[-inner_rank:]))
    return out


def _part(value, which):
    """Returns some of the dimensions: as numbers where all are known."""
    known = value.shape[which]
    return known.as_list() if known.is_fully_defined() else array_ops.shape(value)[which]
