"""tensorflow.python.autograph.utils.misc."""

import runnel
from runnel.core.framework import is_tensor
from runnel.ops.variables import Variable


def alias_tensors(*args):
    """Returns copies of the arguments that are tensors, and the others as they are; a single one not in a tuple."""
    made = tuple(runnel.identity(one) if is_tensor(one) and not isinstance(one, Variable) else one for one in args)
    return made[0] if len(made) == 1 else made


def get_range_len(start, limit, delta):
    """Returns how many elements a range has."""
    distance = runnel.convert_to_tensor(limit) - start
    turns = distance // delta + runnel.cast(runnel.not_equal(distance % delta, 0), distance.dtype)
    return runnel.maximum(turns, 0)
