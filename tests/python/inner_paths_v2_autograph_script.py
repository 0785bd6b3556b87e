"""Prints what tensorflow.python.autograph's operators do: the calls of converted code. See test_inner_paths_v2.py."""

import tensorflow as tf

from tensorflow.python.autograph.operators import (
    conditional_expressions, control_flow, data_structures, exceptions, py_builtins, slices, variables)
from tensorflow.python.autograph.utils import ag_logging
from tensorflow.python.ops import list_ops


def outcome(call, *args, **kwargs):
    """Returns the value of a call, or the class of its error."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


@tf.function(autograph=False)
def loops(n):
    state = [tf.constant(0), tf.constant(1)]

    def read():
        return tuple(state)

    def write(values):
        state[:] = values

    def add(i):
        state[0] = state[0] + i
        state[1] = state[1] * 2
    control_flow.for_stmt(tf.range(n), lambda: state[0] < 6, add, read, write, ("a", "b"), {"iterate_names": "i"})
    control_flow.while_stmt(lambda: state[1] < 100, lambda: add(1), read, write, ("a", "b"), {"maximum_iterations": 3})
    control_flow.if_stmt(state[0] > 8, lambda: add(1000), lambda: add(2000), read, write, ("a", "b"), 2)
    return state


print([x.numpy() for x in loops(tf.constant(10))], [x.numpy() for x in loops(tf.constant(2))])


@tf.function(autograph=False)
def choice(x):
    return conditional_expressions.if_exp(x > 1, lambda: x * 2, lambda: -x, "x > 1")


print(choice(tf.constant(3)).numpy(), choice(tf.constant(0)).numpy(), conditional_expressions.if_exp(True, lambda: 1, lambda: 2, ""))
print(outcome(exceptions.assert_stmt, False, lambda: "text"), outcome(exceptions.assert_stmt, tf.constant(False), lambda: tf.constant("text")))
undefined = variables.Undefined("x")
print(undefined.symbol_name, isinstance(undefined.y, variables.Undefined), isinstance(undefined[0], variables.Undefined),
      outcome(variables.ld, undefined), variables.ld(3), isinstance(variables.ldu(lambda: missing, "missing"), variables.Undefined))  # noqa: F821
rows = data_structures.tf_tensor_list_new([3, 4, 5])
rows = data_structures.list_append(rows, 6)
rows, last = data_structures.list_pop(rows, None, data_structures.ListPopOpts(element_dtype=tf.int32, element_shape=()))
stacked = data_structures.list_stack(rows, data_structures.ListStackOpts(element_dtype=tf.int32, original_call=None))
print(last.numpy(), stacked.numpy(), py_builtins.len_(rows).numpy())
print(data_structures.list_append([1], 2), data_structures.tf_tensor_array_new([1, 2]).stack().numpy(), data_structures.new_list([1, 2]))
rows = slices.set_item(list_ops.tensor_list_from_tensor(tf.constant([[1, 2], [3, 4]]), element_shape=[2]), 0, [5, 6])
print(slices.get_item(rows, 0, slices.GetItemOpts(element_dtype=tf.int32)).numpy(), slices.set_item([1, 2], 0, 7))
print(slices.get_item(tf.constant("abc"), 1, slices.GetItemOpts(element_dtype=tf.string)).numpy())
print(py_builtins.int_(tf.constant("12"), 10).numpy(), outcome(py_builtins.int_, tf.constant(1.0), 2), py_builtins.int_("11", 2),
      outcome(py_builtins.len_, tf.constant(1)))
tf.autograph.set_verbosity(3)
print(ag_logging.has_verbosity(3), ag_logging.has_verbosity(4), ag_logging.get_verbosity())
