"""Functions of a state and an element, over all elements of a dataset: reduce and scan."""

from runnel import nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core.type_spec import TensorSpec
from runnel.data import structure
from runnel.data.dataset import _returned
from runnel.eager.tracing import trace

_TRIES = 20


def _widened(before, after, what):
    """Returns the TypeSpecs that hold the state before and after a step. Raises TypeError if there are none."""
    if not _same_kinds(before, after):
        raise TypeError("The element %s for the new state must match the initial state. Expected %s, got %s." % (
            what(before, after), before, after))
    return nest.map_structure(lambda a, b: _wider(a, b), before, after)


def _same_kinds(before, after):
    try:
        nest.assert_same_structure(before, after)
    except (TypeError, ValueError):
        return False
    return all(type(a) is type(b) and getattr(a, "dtype", None) == getattr(b, "dtype", None)
               for a, b in zip(nest.flatten(before), nest.flatten(after)))


def _what_differs(before, after):
    try:
        nest.assert_same_structure(before, after)
    except (TypeError, ValueError):
        return "classes"
    return "classes" if any(type(a) is not type(b) for a, b in zip(nest.flatten(before), nest.flatten(after))) else "types"


def _wider(a, b):
    if isinstance(a, TensorSpec):
        return TensorSpec(a.shape.most_specific_compatible_shape(b.shape), a.dtype)
    return a.most_specific_compatible_type(b)


def _traced(dataset, state_spec, step, stem):
    """Traces `step(state, element)`, a function that returns (state, output or None), until the state's shapes are wide enough.

    Returns the library function, the TypeSpecs of the state and those of the output.
    """
    for _ in range(_TRIES):
        count, states, outputs = len(structure.flat_specs(state_spec)), [], []

        def flat_fn(*flat, spec=state_spec, count=count, states=states, outputs=outputs):
            state = structure.from_compatible_tensor_list(spec, list(flat[:count]))
            after, output = step(state, dataset._pack(list(flat[count:])))
            after = structure.normalize_element(after)
            states.append(structure.type_spec_from_value(after))
            tensors = structure.to_tensor_list(states[-1], after)
            return tensors if output is None else tensors + _returned(output[0], outputs, stem)
        flat = structure.flat_specs(state_spec) + dataset._flat_specs
        f = trace(flat_fn, [(spec.dtype, spec.shape) for spec in flat], stem, in_order=True)
        wider = _widened(state_spec, states[-1], _what_differs)
        if wider == state_spec:
            return f, state_spec, outputs[-1] if outputs else None
        state_spec = wider
    raise ValueError("The shapes of the state of %s did not settle" % stem)


def _start(initial_state):
    state = structure.normalize_element(initial_state)
    spec = structure.type_spec_from_value(state)
    return structure.to_tensor_list(spec, state), spec


def reduce(dataset, initial_state, reduce_func):
    """Computes state = reduce_func(state, element) over all elements. Returns the last state."""
    first, spec = _start(initial_state)
    function = traceable(reduce_func)
    f, spec, _ = _traced(dataset, spec, lambda state, element: (function(state, element), None), "Dataset_reduce")
    specs = structure.flat_specs(spec)
    results = raw_ops.ReduceDataset(
        input_dataset=dataset._variant_tensor, initial_state=first, other_arguments=f.captured, f=f.attr,
        output_types=[s.dtype for s in specs], output_shapes=[s.shape for s in specs])
    return structure.from_compatible_tensor_list(spec, list(results))


def scan(dataset, initial_state, scan_func):
    """Applies `scan_func(state, element)`, which returns (next state, element), to each element."""
    first, spec = _start(initial_state)
    function = traceable(scan_func)

    def step(state, element):
        result = function(state, element)
        if not isinstance(result, (list, tuple)) or len(result) != 2:
            raise TypeError("Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the output value but its return "
                            "type is %s." % type(result))
        return result[0], [result[1]]
    f, spec, output = _traced(dataset, spec, step, "Dataset_scan")
    count = len(structure.flat_specs(spec))
    made = dataset._like(None, output)
    made._variant_tensor = raw_ops.ScanDataset(
        input_dataset=dataset._variant_tensor, initial_state=first, other_arguments=f.captured, f=f.attr,
        output_types=f.dtypes[count:], output_shapes=f.shapes[count:])
    return made
