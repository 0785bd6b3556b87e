"""tensorflow.python.autograph.operators.exceptions: assert."""

from runnel.autograph import state
from runnel.core.framework import Operation
from runnel.ops import control_flow


def assert_stmt(expression1, expression2):
    """Checks a condition; `expression2()` is what the error says. Returns the operation that checks a tensor."""
    if not callable(expression2):
        raise ValueError("%r must be a callable" % (expression2,))
    if not state.is_tensor(expression1):
        assert expression1, expression2()
        return None
    said = expression2()
    made = control_flow.Assert(expression1, list(said) if isinstance(said, (list, tuple)) else [said])
    return made if isinstance(made, Operation) else None
