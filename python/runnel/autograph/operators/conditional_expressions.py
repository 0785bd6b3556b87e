"""tensorflow.python.autograph.operators.conditional_expressions: `a if c else b`."""

from runnel import nest
from runnel.autograph import state
from runnel.core.convert import convert_to_tensor
from runnel.ops import control_flow


def if_exp(cond, if_true, if_false, expr_repr):
    """Returns if_true() or if_false()."""
    if not (state.is_tensor(cond) and state.builds_graph()):
        return if_true() if cond else if_false()
    found = []

    def checked(branch):
        def build():
            value = nest.map_structure(convert_to_tensor, branch())
            found.append(value)
            if len(found) == 2:
                for one, other in zip(nest.flatten(found[0]), nest.flatten(found[1])):
                    if one.dtype != other.dtype:
                        raise TypeError("'%s' has dtype %s in the main branch, but dtype %s in the else branch" % (
                            expr_repr, one.dtype.name, other.dtype.name))
            return value
        return build
    return control_flow.cond(convert_to_tensor(cond), checked(if_true), checked(if_false))
