"""tensorflow.python.ops.op_selector: the operations that others depend on."""

from runnel.core.framework import Operation, Tensor


def _operations(seeds):
    """Operations of a list of operations and tensors, each once."""
    seeds = seeds if isinstance(seeds, (list, tuple, set, frozenset)) else [seeds]
    found = {}
    for seed in seeds:
        if not isinstance(seed, Operation):
            seed = (seed if isinstance(seed, Tensor) else seed._as_graph_element()).op
        found[seed.name] = seed
    return list(found.values())


def get_backward_walk_ops(seed_ops, inclusive=True, within_ops=None, within_ops_fn=None, stop_at_ts=(), control_inputs=False,
                          only_differentiable=None):
    """The operations that `seed_ops` depend on, those nearest first.

    Args:
      seed_ops: operations or tensors to start from.
      inclusive: whether they are in the list.
      within_ops: no others are looked at; None: all are.
      within_ops_fn: the same, as a function of an operation.
      stop_at_ts: tensors that are not looked behind.
      control_inputs: whether what is waited for counts, too.
      only_differentiable: None, or a function of an operation; where it says no, an operation is not looked behind.
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
