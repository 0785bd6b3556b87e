"""tensorflow.python.ops.control_flow_case and control_flow_util: names without a public name."""

from runnel.core import framework
from runnel.flow.cases import _checked_pairs

ENABLE_CONTROL_FLOW_V2 = True


def _case_helper(cond_fn, pred_fn_pairs, default, exclusive, name, allow_python_preds=False, **cond_kwargs):
    """tf.case with another function in place of tf.cond, which may know the values of predicates."""
    pairs = _checked_pairs(pred_fn_pairs) if not allow_python_preds else list(
        pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    with framework.name_scope(name or "case"):
        if default is None:
            default, pairs = pairs[-1][1], pairs[:-1]
        chosen = default
        for pred, action in reversed(pairs):
            chosen = _choice(cond_fn, pred, action, chosen, cond_kwargs)
        if exclusive:
            from runnel.flow.cases import _at_most
            preds = [pred for pred, _ in pairs if isinstance(pred, framework.Tensor)]
            if preds and not framework.executing_eagerly():
                with framework.control_dependencies([_at_most(preds, 1, "Input error: exclusive=True")]):
                    return chosen()
        return chosen()


def _choice(cond_fn, pred, action, otherwise, cond_kwargs):
    return lambda: cond_fn(pred, action, otherwise, **cond_kwargs)
