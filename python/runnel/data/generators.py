"""Dataset.from_generator: the states of Python generators by number, advanced by py_func."""

import itertools

from runnel import dtypes, nest, raw_ops
from runnel.core import nest_up_to, tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import get_default_graph
from runnel.core.type_spec import TensorSpec, TypeSpec
from runnel.data import structure
from runnel.data.dataset import Dataset
from runnel.eager.tracing import trace

_numbers = itertools.count()


def _signature(generator, output_types, output_shapes, output_signature):
    """Returns the TypeSpecs of an element from what the caller gave."""
    if not callable(generator):
        raise TypeError("`generator` must be a Python callable.")
    if output_signature is not None:
        if output_types is not None:
            raise TypeError("The `output_types` argument can not be used together with the `output_signature` argument.")
        if output_shapes is not None:
            raise TypeError("The `output_shapes` argument can not be used together with the `output_signature` argument.")
        for spec in nest.flatten(output_signature):
            if not isinstance(spec, TypeSpec):
                raise TypeError("`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found %s which is not." % type(spec))
        return output_signature
    if output_types is None:
        raise TypeError("Either `output_signature` or `output_types` must be specified.")
    if output_shapes is None:
        shapes = [tensor_shape.TensorShape(None)] * len(nest.flatten(output_types))
    else:
        shapes = [tensor_shape.as_shape(s) for s in (nest_up_to.flatten_up_to(output_types, output_shapes, check_types=False) if nest.is_nested(output_types)
                                                     else [output_shapes])]
    return nest.pack_sequence_as(output_types, [TensorSpec(s, dtypes.as_dtype(t)) for t, s in zip(nest.flatten(output_types), shapes)])


def from_generator(generator, output_types, output_shapes, args, output_signature):
    """Creates a dataset of what `generator(*args)` yields."""
    spec = _signature(generator, output_types, output_shapes, output_signature)
    specs = structure.flat_specs(spec)
    states = {}
    args = [convert_to_tensor(x) for x in args or ()]
    is_plain = all(isinstance(leaf, TensorSpec) for leaf in nest.flatten(spec))

    def start(*values):
        import numpy
        number = next(_numbers)
        states[number] = iter(generator(*values))
        return numpy.int64(number)

    def finish(number):
        import numpy
        states.pop(int(number), None)
        return numpy.int64(0)

    from runnel.ops.script_ops import py_func
    init = trace(lambda *values: py_func(start, list(values), dtypes.int64), [(x.dtype, x.shape) for x in args], "generator_init")
    number = [(dtypes.int64, tensor_shape.TensorShape([]))]
    following = trace(_advancing(states, spec, specs, is_plain), number, "generator_next")
    end = trace(lambda number: py_func(finish, [number], dtypes.int64), number, "generator_finalize")
    graph = get_default_graph()
    if graph is not None:
        graph._scopes.setdefault(__name__, []).append(states)
    made = Dataset(None, spec)
    made._variant_tensor = raw_ops.GeneratorDataset(
        init_func_other_args=args + init.captured, next_func_other_args=following.captured,
        finalize_func_other_args=end.captured, init_func=init.attr, next_func=following.attr,
        finalize_func=end.attr, **made._attrs)
    return made


def _advancing(states, spec, specs, is_plain):
    """Returns the function of a generator's number that returns the tensors of its next element."""
    from runnel.eager.eager_script import py_function
    from runnel.ops.script_ops import py_func
    leaves = nest.flatten(spec)

    def plain(number):
        def arrays(number):
            return _as_arrays(next(states[int(number)]), spec, specs)  # StopIteration ends the dataset
        values = py_func(arrays, [number], [s.dtype for s in specs])
        for value, one in zip(values, specs):
            value.set_shape(one.shape)
        return tuple(values)

    def composite(number):
        def components(number):
            return _as_components(next(states[int(number)]), spec)
        parts = [part for leaf in leaves for part in leaf._flat_specs()]
        values = py_function(components, [number], [part.dtype for part in parts])
        for value, part in zip(values, parts):
            value.set_shape(part.shape)
        rest = iter(values)
        made = [leaf._from_tensors([next(rest) for _ in leaf._flat_specs()]) for leaf in leaves]
        return tuple(structure.to_tensor_list(spec, nest.pack_sequence_as(spec, made)))
    return plain if is_plain else composite


def _mismatch(spec, values):
    return TypeError("`generator` yielded an element that did not match the expected structure. The expected structure was %s, but the "
                     "yielded element was %s." % (structure.legacy_types(spec), values))


def _as_components(values, spec):
    try:
        element = structure.normalize_element(values, spec)
    except (TypeError, ValueError):
        raise _mismatch(spec, values) from None
    found = structure.type_spec_from_value(element)
    if not structure.are_compatible(found, spec):
        raise TypeError("`generator` yielded an element of %s where an element of %s was expected." % (found, spec))
    return [tensor for leaf, value in zip(nest.flatten(spec), structure.flatten_like(spec, element)) for tensor in leaf._to_tensors(value)]


def _as_arrays(values, spec, specs):
    import numpy
    try:
        flat = structure.flatten_like(spec, values)
    except (TypeError, ValueError):
        raise _mismatch(spec, values) from None
    arrays = []
    for value, one in zip(flat, specs):
        kind, shape = one.dtype, one.shape
        value = value.numpy() if hasattr(value, "numpy") else value
        if kind == dtypes.string:
            array = numpy.asarray(value, dtype=object)
        else:
            try:
                array = numpy.asarray(value, dtype=kind.as_numpy_dtype)
            except (TypeError, ValueError):
                raise TypeError("`generator` yielded an element that could not be converted to the expected type. The expected type was %s, "
                                "but the yielded element was %s." % (kind.name, value)) from None
        if not shape.is_compatible_with(array.shape):
            raise TypeError("`generator` yielded an element of shape %s where an element of shape %s was expected." % (array.shape, shape))
        arrays.append(array)
    return arrays
