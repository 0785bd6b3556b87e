"""Finds the operations that others depend on (tensorflow.python.ops.op_selector)."""

from runnel.core.framework import Operation, Tensor


def _operations(seeds):
    """Returns the operations of a list of operations and tensors, each once."""
    seeds = seeds if isinstance(seeds, (list, tuple, set, frozenset)) else [seeds]
    found = {}
    for seed in seeds:
        if not isinstance(seed, Operation):
            seed = (seed if isinstance(seed, Tensor) else seed._as_graph_element()).op
        found[seed.name] = seed
    return list(found.values())


def get_backward_walk_ops(seed_ops, inclusive=True, within_ops=None, within_ops_fn=None, stop_at_ts=(), control_inputs=False,
                          only_differentiable=None):
    """Returns the operations that `seed_ops` depend on, the nearest first.

    Args:
      seed_ops: operations or tensors to start from.
      inclusive: whether they are in the list themselves.
      within_ops: the operations to consider; by default all.
      within_ops_fn: a function of an operation that says whether to consider it.
      stop_at_ts: tensors at which the walk stops.
      control_inputs: whether control inputs count as dependencies.
      only_differentiable: None, or a function of an operation; the walk stops where it returns False.
    """
    wave = seeds = _operations(seed_ops)
    stops = {t.name for t in stop_at_ts}
    within = None if within_ops is None else {op.name for op in _operations(within_ops)}
    seen = {op.name: op for op in seeds}

    def wanted(op):
        return (within is None or op.name in within) and (within_ops_fn is None or within_ops_fn(op))
    while wave:
        behind = {}
        for op in wave:
            if only_differentiable is not None and not only_differentiable(op):
                continue
            before = [t.op for t in op.inputs if t.name not in stops] + (list(op.control_inputs) if control_inputs else [])
            behind.update((b.name, b) for b in before if b.name not in seen and wanted(b))
        seen.update(behind)
        wave = list(behind.values())
    first = {op.name for op in seeds}
    return [op for op in seen.values() if wanted(op) and (inclusive or op.name not in first)]
