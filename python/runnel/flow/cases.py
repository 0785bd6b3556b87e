"""Choices among several functions: tf.case, tf.switch_case; and tf.Assert."""

import builtins

from runnel import dtypes, raw_ops
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import Tensor, control_dependencies, executing_eagerly, name_scope
from runnel.flow.branches import cond
from runnel.flow.groups import no_op


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """Calls the function of the first pair whose predicate is true; if none is, calls `default`.

    Args:
      pred_fn_pairs: a list of (scalar bool tensor, function), or a dict of them.
      default: a function; if None, one of the predicates must be true.
      exclusive: makes it an error if more than one predicate is true.
      strict: keeps a result of one element as a list of one.
      name: name of the scope of the new operations.
    """
    pairs = _checked_pairs(pred_fn_pairs)
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        preds = [convert_to_tensor(pred) for pred, _ in pairs]
        actions = [fn for _, fn in pairs]
        if default is None:
            default = _last_choice(preds, actions[-1])
            preds, actions = preds[:-1], actions[:-1]
        chosen = default
        for pred, action in reversed(list(zip(preds, actions))):
            chosen = _choice(pred, action, chosen, strict)
        if not exclusive:
            return chosen()
        with control_dependencies([_at_most(preds, 1, "Input error: exclusive=True")]):
            return chosen()


def _at_most(preds, count, message):
    """Asserts that at most `count` of the predicates are true."""
    together = raw_ops.Pack(values=preds, name="preds_c")
    numbers = raw_ops.Cast(x=together, DstT=dtypes.int32, name="Cast")
    from runnel.ops.math_ops import reduce_sum
    total = reduce_sum(numbers, name="num_true_conds")
    fits = raw_ops.LessEqual(x=total, y=constant(count, name="n_true_conds"), name="LessEqual")
    names = ", ".join(pred.name for pred in preds)
    return Assert(fits, ["%s: more than %d conditions (%s) evaluated as True:" % (message, count, names), together],
                  summarize=len(preds))


def _last_choice(preds, action):
    """Returns the last action, guarded by an assertion that its predicate is true."""
    def run():
        together = raw_ops.Pack(values=preds, name="preds_c")
        others = _at_most(preds[:-1], 0, "Implementation error: selected default action #%d was called, but some "
                          "of other predicates are True: " % (len(preds) - 1)) if len(preds) > 1 else None
        last = Assert(preds[-1], ["Input error: None of conditions evaluated as True:", together])
        with control_dependencies([check for check in (others, last) if check is not None]):
            return action()
    return run


def _choice(pred, action, otherwise, strict):
    return lambda: cond(pred, true_fn=action, false_fn=otherwise, strict=strict)


def _checked_pairs(pairs):
    if isinstance(pairs, dict):
        if hasattr(pairs, "move_to_end") or all(isinstance(p, Tensor) for p in pairs):
            items = list(pairs.items())
            if not hasattr(pairs, "move_to_end"):
                items.sort(key=lambda item: item[0].name)
        else:
            items = list(pairs.items())
    elif isinstance(pairs, (list, builtins.tuple)):
        items = list(pairs)
    else:
        raise TypeError("pred_fn_pairs must be a list, tuple, or dict")
    if not items:
        raise ValueError("pred_fn_pairs must not be empty")
    for item in items:
        if not isinstance(item, builtins.tuple):
            raise TypeError("Each entry in pred_fn_pairs must be a tuple: %s" % (item,))
        if len(item) != 2:
            raise ValueError("Each tuple in pred_fn_pairs must have length 2, got: %s" % (item,))
        if isinstance(item[0], Tensor) and item[0].dtype.base_dtype != dtypes.bool:
            raise TypeError("pred must be Tensor of type bool: %s" % item[0].name)
        if not callable(item[1]):
            raise TypeError("fn for pred %s must be callable." % (item[0],))
    return items


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """Calls function number `branch_index`; out of range, calls `default` or else the last function."""
    if isinstance(branch_fns, dict):
        rows = sorted(branch_fns.items())
    elif branch_fns and isinstance(branch_fns[0], builtins.tuple):
        rows = sorted(branch_fns)
    else:
        rows = list(enumerate(branch_fns))
    if default is None:
        default = rows[-1][1]
    with name_scope(name, "switch_case", [branch_index]):
        index = convert_to_tensor(branch_index)
        pairs = [(raw_ops.Equal(x=index, y=constant(i, dtype=index.dtype)), fn) for i, fn in rows]
        return case(pairs, default=default)


def Assert(condition, data, summarize=None, name=None):
    """Returns an operation that fails with `data`, a list of tensors, unless `condition` is true."""
    if executing_eagerly():
        if not bool(condition):
            from runnel.errors import InvalidArgumentError
            raise InvalidArgumentError(None, None, "Expected %r to be true. Summarized data: %s" % (
                condition, "\n".join(str(x) for x in data)))
        return None
    with name_scope(name, "Assert", [condition, data]):
        kinds = [convert_to_tensor(x).dtype for x in data]

        def fail():
            return raw_ops.Assert(condition=condition, data=data, summarize=3 if summarize is None else summarize,
                                  name="Assert")
        if all(kind in (dtypes.string, dtypes.int32) for kind in kinds):
            return fail()
        condition = convert_to_tensor(condition, name="Condition")
        return cond(condition, no_op, fail, name="AssertGuard").op
