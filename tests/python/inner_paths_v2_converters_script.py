"""Prints what functions that tensorflow.python.autograph's compiler converts, by all steps and by single ones, compute. See test_inner_paths_v2.py."""

import tensorflow as tf

from tensorflow.python.autograph.converters import (
    asserts, break_statements, call_trees, conditional_expressions, continue_statements, control_flow, directives as directives_step, functions, lists,
    logical_expressions, return_statements, slices, variables)
from tensorflow.python.autograph.core import ag_ctx, converter, function_wrappers
from tensorflow.python.autograph.impl import api, conversion
from tensorflow.python.autograph.lang import directives, special_functions
from tensorflow.python.autograph.utils import misc, tensor_list, tensors, type_registry


def context(**options):
    return converter.ProgramContext(options=converter.ConversionOptions(recursive=True, **options), autograph_module=api)


class Steps(api.PyToTF):
    """Converts by some steps only."""

    def __init__(self, *steps):
        super().__init__()
        self.steps = steps

    def transform_ast(self, node, ctx):
        node = self.initial_analysis(node, ctx)
        for step in self.steps:
            node = step.transform(node, ctx)
        return node


def outcome(call, *args):
    try:
        value = call(*args)
    except Exception as error:
        return type(error).__name__
    return tf.nest.map_structure(lambda x: x.numpy().tolist() if isinstance(x, tf.Tensor) else x, value)


def search(rows, wanted, limit=4):
    """Finds."""
    position, seen = 0, 0
    for row in rows:
        seen += 1
        if row < 0:
            continue
        if row == wanted:
            break
        for _ in range(2):
            position += 1
            if position > limit:
                return position, seen, True
    if position == 0 or not seen > 1 and position != 3:
        position = -position if seen else 7
    return position, seen, False


every = (functions, break_statements, continue_statements, return_statements, call_trees, control_flow, conditional_expressions, logical_expressions,
         variables)
inputs = [([1, -2, 3, 4], 3), ([], 1), ([1, 2, 3, 4, 5], 9), ([5], 5), ([-1, -1], 0)]
for steps in ((continue_statements,), (functions, return_statements), (break_statements, continue_statements, control_flow), (logical_expressions,),
              (conditional_expressions, variables), (functions, call_trees), every):
    made, _, _ = Steps(*steps).transform(search, context())
    print(made.__name__, made.__doc__, [made(*arguments) for arguments in inputs] if steps[0] is not functions or len(steps) > 2 else made([3], 3))

whole, module, source_map = api.PyToTF().transform(search, context(optional_features=None))
print([whole(*arguments) for arguments in inputs], len(source_map) > 10)


def collatz(n):
    steps, most = 0, n
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        most = n if n > most else most
        steps += 1
    assert steps < 100, "endless"
    return steps, most


converted, _, _ = Steps(*every, asserts).transform(collatz, context(optional_features=converter.Feature.ASSERT_STATEMENTS))
graph = tf.function(converted, autograph=False)
print(outcome(graph, tf.constant(7)), outcome(graph, tf.constant(1)), outcome(converted, 27), collatz(7))


def stack(n):
    rows = special_functions.tensor_list([n, n + 1])
    directives.set_element_type(rows, tf.int32, shape=())
    rows.append(n + 2)
    last = rows.pop()
    rows.append(last * 10)
    return rows[2], last


converted, _, _ = Steps(directives_step, lists, slices).transform(stack, context())
print(outcome(tf.function(converted, autograph=False), tf.constant(5)), outcome(converted, tf.constant(6)))


def delete(a, b):
    del a
    if b:
        a = b
    return a


converted, _, _ = Steps(variables).transform(delete, context())
print(outcome(converted, 1, 2), outcome(converted, 1, 0))

options = converter.ConversionOptions(recursive=True, optional_features=(converter.Feature.LISTS,))
print(options.uses(converter.Feature.LISTS), options.uses(converter.Feature.NAME_SCOPES), options.call_options() == options, options.as_tuple()[:3])
with function_wrappers.FunctionScope("f", "scope", converter.ConversionOptions(user_requested=True)) as scope:
    print(ag_ctx.control_status_ctx().status, scope.ret(5, True))
print(ag_ctx.control_status_ctx().status, api.do_not_convert(lambda: ag_ctx.control_status_ctx().status)())
print(conversion.is_allowlisted(tf.constant), conversion.is_allowlisted(search), conversion.is_unsupported(dict), conversion.is_unsupported(search))
print(api.converted_call(search, ([1, 2], 2), None, options=options), api.is_autograph_artifact(api.autograph_artifact(lambda: 1)))
print(outcome(misc.get_range_len, 1, tf.constant(10), 4), misc.alias_tensors("a"), tensors.is_tensor_list(tf.constant(1)))
rows = tensor_list.TensorList([], tf.int32)
rows.append(tf.constant(3))
print(rows.count().numpy(), rows[0].numpy(), rows.pop().numpy(), special_functions.stack(3, strict=False), outcome(special_functions.stack, [3]))
registry = type_registry.TypeRegistry()
registry.register(int, "number")
print(registry.lookup(3), outcome(registry.lookup, "3"), outcome(registry.register, int, 1))
