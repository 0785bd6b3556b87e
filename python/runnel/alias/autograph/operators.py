"""tensorflow.python.autograph.operators: what converted code calls, with the arguments that TensorFlow's converted code has."""

import collections

from runnel import nest
from runnel.autograph import loops, operators, state
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Operation
from runnel.ops import control_flow

GetItemOpts = collections.namedtuple("GetItemOpts", ["element_dtype"])


# control_flow

def if_stmt(cond, body, orelse, get_state, set_state, symbol_names, nouts):
    """Runs one of two blocks; on a tensor, builds both."""
    operators.if_statement(cond, body, orelse, get_state or (lambda: ()), set_state or (lambda values: None), symbol_names)


def while_stmt(test, body, get_state, set_state, symbol_names, opts):
    """Runs a block while a test holds."""
    loops.while_statement(test, body, get_state or (lambda: ()), set_state or (lambda values: None), symbol_names, lambda: _settings(opts))


def for_stmt(iter_, extra_test, body, get_state, set_state, symbol_names, opts):
    """Runs a block for each item, as long as `extra_test` holds, which may be None."""
    loops.for_statement(iter_, extra_test, body, get_state or (lambda: ()), set_state or (lambda values: None), symbol_names, lambda: _settings(opts))


def _settings(opts):
    return {key: value for key, value in (opts or {}).items() if key != "iterate_names"}


# conditional_expressions, exceptions

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


# variables

class Undefined(state.Undefined):
    """The value of a name before it is assigned; so are its attributes and elements."""

    symbol_name = property(lambda self: self.name)

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self


class UndefinedReturnValue:
    """What a function without a return statement returns."""


def ld(v):
    """Returns a value that is about to be used. Raises UnboundLocalError if it is undefined."""
    return state.load(v)


def ldu(load_v, name):
    """Returns load_v(), or Undefined if there is no such value."""
    try:
        return load_v()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)


# slices

def get_item(target, i, opts):
    """Returns target[i]: of a tensor list an element, of a scalar string a character."""
    from runnel.alias import list_ops
    import runnel
    if isinstance(target, runnel.Tensor) and target.dtype == runnel.variant:
        if opts.element_dtype is None:
            raise ValueError("cannot retrieve from a list without knowing its element type; use set_element_type to annotate it")
        return list_ops.tensor_list_get_item(target, i, element_dtype=opts.element_dtype)
    if isinstance(target, runnel.Tensor) and target.dtype == runnel.string and target.shape.rank == 0:
        return runnel.strings.substr(target, i, 1)
    return target[i]


def set_item(target, i, x):
    """Sets target[i]. Returns the target, or a tensor list with the new element."""
    from runnel.alias import list_ops
    import runnel
    if hasattr(target, "write") and hasattr(target, "stack"):
        return target.write(i, x)
    if isinstance(target, runnel.Tensor):
        if target.dtype != runnel.variant:
            raise ValueError("tensor lists are expected to be Tensors with dtype=tf.variant, instead found %s" % target)
        return list_ops.tensor_list_set_item(target, i, convert_to_tensor(x))
    target[i] = x
    return target
