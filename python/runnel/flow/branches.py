"""Conditionals: tf.cond, smart_cond."""

import builtins

from runnel import dtypes, nest, raw_ops
from runnel.core.composite import IndexedSlices, SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, Tensor, executing_eagerly, get_default_graph, name_scope
from runnel.flow.flow_contexts import CondContext, _is_array


def cond(pred, true_fn=None, false_fn=None, strict=False, name=None, fn1=None, fn2=None):
    """Returns `true_fn()` if `pred` is true, else `false_fn()`. Only the operations of that branch run.

    Args:
      pred: a scalar bool tensor.
      true_fn, false_fn: functions without arguments that return tensors of the same structure and types.
      strict: keeps a result of one element as a list of one.
      name: name of the scope of the new operations.
    """
    true_fn, false_fn = true_fn or fn1, false_fn or fn2
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if executing_eagerly():
        return true_fn() if bool(pred) else false_fn()
    return build_cond(pred, true_fn, false_fn, strict, name)


def build_cond(pred, true_fn, false_fn, strict, name=None, settle=None):
    """Builds a conditional in a graph. `settle`, if given, gets the results of both branches and returns those to merge."""
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("pred must not be a Python bool")
        pred = convert_to_tensor(pred)
        no, yes = raw_ops.Switch(data=pred, pred=pred, name="Switch")
        pivot_yes = raw_ops.Identity(input=yes, name="switch_t")
        pivot_no = raw_ops.Identity(input=no, name="switch_f")
        pred = raw_ops.Identity(input=pred, name="pred_id")
        for x in (yes, pivot_yes, pivot_no, pred):
            x.graph.prevent_fetching(x.op)
        results, contexts = [], []
        for pivot, branch, fn in ((pivot_yes, 1, true_fn), (pivot_no, 0, false_fn)):
            with CondContext(pred, pivot, branch).entered() as context:
                results.append(context.build(fn) if settle is None else fn())
            contexts.append(context)
        if settle is not None:
            settled = settle(contexts, results)
            results = []
            for context, values in zip(contexts, settled):
                with context.entered():
                    results.append(context.build(lambda values=values: values))
        results = _with_same_indices(contexts, results)
        if contexts[0].outer_context is None:
            for context in contexts:
                get_default_graph().add_to_collection(GraphKeys.COND_CONTEXT, context)
        return _merge_branches(results, pivot_yes, pivot_no, strict)


def _with_same_indices(contexts, results):
    """Casts indices of IndexedSlices to int64 where the other branch has that type."""
    flat = [[] if original is None else nest.flatten(original) for original, _ in results]
    if len(flat[0]) != len(flat[1]):
        return results
    pairs = [(one, two) for one, two in zip(*flat) if isinstance(one, IndexedSlices) and isinstance(two, IndexedSlices)]
    if all(one.indices.dtype == two.indices.dtype for one, two in pairs):
        return results

    def cast(value):
        if not isinstance(value, IndexedSlices) or value.indices.dtype != dtypes.int32:
            return value
        return IndexedSlices(value.values, raw_ops.Cast(x=value.indices, DstT=dtypes.int64), value.dense_shape)
    made = []
    for context, (original, _) in zip(contexts, results):
        with context.entered():
            made.append(context.build(lambda original=original: nest.map_structure(cast, original)))
    return made


def cond_v2(pred, true_fn, false_fn, name="cond"):
    """The same as cond; it is tensorflow.python.ops.cond_v2.cond_v2."""
    return cond(pred, true_fn, false_fn, strict=True, name=name)


def _merge_branches(results, pivot_yes, pivot_no, strict):
    (original, yes), (other, no) = results
    if not strict:
        original, other = _only_one(original), _only_one(other)
    if original is None or other is None:
        if original is not other:
            raise ValueError("true_fn and false_fn must return the same structure: %s and %s" % (
                original, other))
        return raw_ops.Merge(inputs=[pivot_no, pivot_yes], name="Merge")[0]
    try:
        nest.assert_same_structure(original, other, expand_composites=True)
    except (TypeError, ValueError) as error:
        raise type(error)("Incompatible return types of true_fn and false_fn: %s" % error) from None
    for one, two in zip(yes, no):
        if one.dtype.base_dtype != two.dtype.base_dtype:
            raise ValueError("Outputs of true_fn and false_fn must have the same type: %s, %s" % (
                one.dtype.name, two.dtype.name))
    merges = []
    for one, two in zip(yes, no):
        op = raw_ops.RefMerge if one.dtype._is_ref_dtype and two.dtype._is_ref_dtype else raw_ops.Merge
        merges.append(op(inputs=[two, one], name="Merge")[0])
    likes = nest.flatten(original, expand_composites=True)
    values = []
    for like, value in zip(likes, merges):
        values.append(like._with_flow(value) if _is_array(like) else value)
    packed = nest.pack_sequence_as(original, values, expand_composites=True)
    _set_common_shapes(packed, original, other)
    return packed if strict else _only_one(packed)


def _set_common_shapes(merged, original, other):
    """Sets the static shapes of sparse results, as far as both branches agree on them."""
    for made, one, two in zip(nest.flatten(merged), nest.flatten(original), nest.flatten(other)):
        if isinstance(made, SparseTensor) and isinstance(two, SparseTensor):
            made.set_shape(one.shape.most_specific_compatible_shape(two.shape))


def _only_one(result):
    """Unpacks a list of one element."""
    is_one = isinstance(result, (list, builtins.tuple)) and len(result) == 1
    return result[0] if is_one else result


def smart_constant_value(pred):
    """Returns the truth value of `pred` if it is known, else None. Raises TypeError if it is no bool, 0, 1, tensor or variable."""
    if isinstance(pred, Tensor):
        from runnel.core.convert import evaluated_value
        return evaluated_value(pred)
    if hasattr(pred, "_as_graph_element"):
        return None
    if pred in (0, 1):
        return bool(pred)
    raise TypeError("Argument `pred` must be a Tensor, or a Python bool, or 1 or 0. Received: pred=%s of type %s" % (pred, type(pred).__name__))


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """Like cond, but if `pred` is known only that branch is built. Any Python value is a truth value."""
    is_node = isinstance(pred, Tensor) or hasattr(pred, "_as_graph_element")
    known = smart_constant_value(pred) if is_node else bool(pred)
    if known is not None:
        return true_fn() if known else false_fn()
    return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)


def checked_smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """The same as tf.__internal__.smart_cond, which takes tensors, bools, 0 and 1 only."""
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError("Argument `%s` must be callable. Received %s" % (what, function))
    known = smart_constant_value(pred)
    return smart_cond(pred if known is None else known, true_fn, false_fn, name)
