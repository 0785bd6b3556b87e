"""while and for in converted code."""

from runnel import nest, raw_ops
from runnel.autograph.branches import and_, if_statement
from runnel.autograph.state import Layout, Undefined, as_condition, as_flow, builds_graph, is_defined, is_flow_value, is_tensor, scratch_graph, spec_of
from runnel.core import framework, tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.ops import control_flow


def while_statement(test, body, read, write, names, options):
    """Runs a block while a test holds; if the test is a tensor, builds a loop."""
    if not builds_graph():
        while test():
            body()
        return
    while True:  # `while True` with a break that depends on a tensor becomes a loop of the graph after an iteration
        with scratch_graph():
            wanted = test()
        if is_tensor(wanted):
            _build(test, body, read, write, names, options)
            return
        if not wanted:
            return
        body()


def for_statement(items, test, body, read, write, names, options):
    """Runs a block for each item. Builds a loop over tensors, datasets and iterators of a graph."""
    if builds_graph():
        if is_tensor(items):
            _over_tensor(convert_to_tensor(items), test, body, read, write, names, options)
            return
        over = _special(items)
        if over is not None:
            over(items, test, body, read, write, names, options)
            return
    if test is None:
        for item in items:
            body(item)
        return
    rest = iter(items)
    while True:
        wanted = test()
        is_known = not (is_tensor(wanted) and builds_graph())
        if is_known and not wanted:  # before the next item is taken: another loop may go on from here
            return
        try:
            item = next(rest)
        except StopIteration:
            return
        if is_known:
            body(item)
        else:  # the loop ended for a reason that is only known when the graph runs
            if_statement(wanted, lambda item=item: body(item), lambda: None, read, write, names)


def _special(items):
    from runnel.data.dataset import Dataset
    from runnel.data.owned_iterator import OwnedIterator
    from runnel.distribute.input_data import DistributedDataset, DistributedIterator
    from runnel.ragged.ragged_tensor import RaggedTensor
    if isinstance(items, Dataset):
        return _over_dataset
    if isinstance(items, (OwnedIterator, DistributedIterator)):
        return _over_iterator
    if isinstance(items, DistributedDataset):
        return lambda items, *rest: _over_iterator(iter(items), *rest)
    if isinstance(items, RaggedTensor):
        return _over_ragged
    return None


# --- The kinds of for

def _over_tensor(items, test, body, read, write, names, options):
    if items.shape.rank == 0:
        raise ValueError("cannot iterate over a scalar tensor: %s" % items)
    known = items.shape.dims[0].value if items.shape.rank else None
    count = convert_to_tensor(known) if known is not None else raw_ops.StridedSlice(
        raw_ops.Shape(input=items), [0], [1], [1], shrink_axis_mask=1)
    _counted(count, lambda i: raw_ops.GatherV2(items, i, 0), test, body, read, write, names, options, items.op.type == "Range")


def _over_ragged(items, test, body, read, write, names, options):
    from runnel.ops import math_ops
    count = math_ops.cast(items.nrows(), "int32")
    _counted(count, lambda i: items[i], test, body, read, write, names, options)


def _counted(count, item, test, body, read, write, names, options, is_range=False):
    """Builds a loop over 0, 1, ... count - 1. The target of a loop over a range is 0 if the loop does not run, as in TensorFlow."""
    position, items = [convert_to_tensor(0)], []

    def more():
        is_inside = raw_ops.Less(position[0], count)
        return is_inside if test is None else and_(is_inside, test)

    def turn():
        now = position[0]
        items[:] = [item(now)]
        body(items[0])
        position[0] = raw_ops.AddV2(now, 1)
    _with_own(position, more, turn, read, write, names, options, items if is_range else ())


def _over_iterator(items, test, body, read, write, names, options):
    """Builds a loop over what an iterator still gives. The next item is fetched ahead, to know whether there is one."""
    first = items.get_next_as_optional()
    kind, spec = type(first), first.element_spec
    own = [first._variant_tensor]

    def more():
        has_value = raw_ops.OptionalHasValue(optional=own[0])
        return has_value if test is None else and_(has_value, test)

    def turn():
        body(kind(own[0], spec).get_value())
        own[0] = items.get_next_as_optional()._variant_tensor
    _with_own(own, more, turn, read, write, names, options)


def _over_dataset(items, test, body, read, write, names, options):
    from runnel.data.owned_iterator import OwnedIterator
    _over_iterator(OwnedIterator(items), test, body, read, write, names, options)


def _with_own(own, more, turn, read, write, names, options, optional=()):
    """Builds a loop whose state also has `own`, a list of one tensor, which the loop keeps for itself."""
    def read_all():
        return (own[0], *read())

    def write_all(values):
        own[0] = values[0]
        write(tuple(values[1:]))
    _build(more, turn, read_all, write_all, ("iteration", *names), options, optional)


# --- Building

def _build(test, body, read, write, names, options, optional=()):
    """Builds a loop. Its variables are the leaves of the state that tensors can hold; others must stay what they are.

    A name to which only the loop gives a value has none if the loop does not run, unless that value is among `optional` after an iteration.
    """
    settings = dict(options()) if options is not None else {}
    given = read()
    shapes = _invariants(settings.pop("shape_invariants", None) or (), given)
    before, loose, made = _with_undefined(given, body, read, write, names, optional)
    layout = Layout(before)
    start = [as_flow(layout.flat[i]) for i in layout.carried]
    dummy = [] if start else [convert_to_tensor(0)]
    ran = [convert_to_tensor(False)] if made else []
    entering = [spec_of(x) for x in start]

    def condition(*values):
        write(layout.fill(values))
        return as_condition(test(), "while loop")

    def turn(*values):
        write(layout.fill(values))
        body()
        after = _after(layout, read(), names, made)
        for i, x, spec in zip(layout.carried, after, entering):
            _check_leaf(layout.name_of(i, names), x, spec, shapes.get(id(layout.flat[i])), i in loose)
        return after + (list(values) if dummy else []) + ([convert_to_tensor(True)] if ran else [])
    invariants = [_invariant(layout.flat[i], x, shapes, i in loose) for i, x in zip(layout.carried, start)]
    kept = {key: value for key, value in settings.items() if value is not None}
    invariants += [tensor_shape.TensorShape([])] * len(dummy + ran)
    result = control_flow.while_loop(condition, turn, start + dummy + ran, shape_invariants=invariants, return_same_structure=True, **kept)
    write(layout.fill(_after_a_turn(result, layout, names, made) if ran else result))


def _after_a_turn(result, layout, names, made):
    """Returns the leaves; those of names that only the loop assigns are there only if it ran. The last value of `result` says so."""
    check = control_flow.Assert(result[-1], ["loop must iterate at least once to initialize %s" % ", ".join(sorted(made))])
    with framework.control_dependencies([check] if check is not None else []):
        return [raw_ops.Identity(input=x) if layout.name_of(i, names) in made and is_tensor(x) else x for i, x in zip(layout.carried, result)]


def _invariants(pairs, state):
    """Returns {id of a leaf: shape} for [(value, shapes)], which tf.autograph.experimental.set_loop_options gave."""
    found = {}
    for value, shape in pairs:
        for leaf, s in zip(nest.flatten(value), nest.flatten(shape) if nest.is_nested(value) else [shape]):
            found[id(leaf)] = None if s is None else tensor_shape.as_shape(s)
    return found


def _invariant(leaf, start, shapes, is_loose):
    if id(leaf) in shapes:
        return shapes[id(leaf)] if shapes[id(leaf)] is not None else tensor_shape.unknown_shape()
    if not isinstance(start, framework.Tensor):
        return start if getattr(start, "_is_composite", False) else tensor_shape.TensorShape([])
    return tensor_shape.unknown_shape() if is_loose else start.shape


def _check_leaf(name, value, spec, invariant, is_loose):
    now = spec_of(value)
    if spec is None or now is None:
        return
    if spec[0] != now[0]:
        raise TypeError("'%s' has dtype %s before the loop, but dtype %s after one iteration" % (name, spec[0].name, now[0].name))
    if invariant is None and not is_loose and not control_flow._is_within(spec[1], now[1]):
        raise ValueError("'%s' has shape %s before the loop, but shape %s after one iteration. Use tf.autograph.experimental.set_loop_options to set "
                         "shape invariants." % (name, spec[1], now[1]))
    if invariant is not None and not control_flow._is_within(invariant, now[1]):
        raise ValueError("'%s' has shape %s after one iteration, which does not conform with the shape invariant %s." % (name, now[1], invariant))


def _after(layout, values, names, made):
    """Returns the leaves after an iteration, checked against the layout before it. `made` are the names that only the loop assigns."""
    for name, before, after in zip(names, layout.values, values):
        if not is_defined(before):
            continue
        if before is None and after is not None or before is not None and after is None:
            raise ValueError("'%s' is None %s." % (name, "before the loop" if before is None else "at the end of an iteration"))
        try:
            nest.assert_same_structure(before, after)
        except (TypeError, ValueError) as error:
            raise TypeError("'%s' does not have the same nested structure after one iteration.\n\n%s" % (name, error)) from None
    flat = [leaf for before, value in zip(layout.values, values) for leaf in (nest.flatten(value) if is_defined(before) else [before])]
    for i, (before, after) in enumerate(zip(layout.flat, flat)):
        if i not in layout.carried and before is not after and is_defined(before):
            if layout.name_of(i, names) in made:
                raise ValueError("'%s' must be defined before the loop. Runnel tried to define it by one iteration, which gave an unsupported type: %r" % (
                    layout.name_of(i, names), after))
            raise TypeError("'%s' changes in a loop over tensors, but is no tensor: %r and %r" % (layout.name_of(i, names), before, after))
    return [as_flow(flat[i]) for i in layout.carried]


def _with_undefined(given, body, read, write, names, optional):
    """Gives names that only the loop assigns a first value: zeros, of the type that one iteration gives them.

    Returns the state, the positions of those leaves, whose shapes may change, and the names that have no value unless the loop runs.
    """
    missing = [i for i, value in enumerate(given) if not is_defined(value)]
    if not missing:
        return given, frozenset(), frozenset()
    with scratch_graph():
        layout = Layout(given)
        inside = [as_flow(layout.flat[i]) for i in layout.carried]
        write(layout.fill([_stand_in(x) for x in inside]))
        try:
            body()
        except (ValueError, TypeError, NameError, LookupError, AttributeError) as error:
            lacking = ", ".join("'%s'" % names[i] for i in missing if not names[i].startswith("ag__"))
            if not lacking or not (isinstance(error, (ValueError, NameError)) or "Undefined" in str(error)):
                raise
            raise ValueError("%s must be defined before the loop. Runnel tried to define it by one iteration, which failed: %s" % (
                lacking, error)) from error
        after = read()
        specs = {i: nest.map_structure(_spec_or_value, after[i]) for i in missing if is_defined(after[i])}
    write(given)
    filled = list(given)
    for i, spec in specs.items():
        filled[i] = nest.map_structure(_first_value, spec)
    layout, loose, position = Layout(filled), set(), 0
    for i, row in enumerate(layout.leaves):
        if i in specs:
            loose.update(range(position, position + len(row)))
        position += len(row)
    made = frozenset(names[i] for i in specs if not names[i].startswith("ag__") and not any(after[i] is value for value in optional))
    return tuple(filled), frozenset(loose), made


def _stand_in(value):
    """Returns a tensor of the same kind without a known value."""
    spec = spec_of(value)
    return value if spec is None else raw_ops.Placeholder(dtype=spec[0], shape=spec[1])


def _spec_or_value(value):
    if not is_flow_value(value):
        return value
    if not is_tensor(value):
        value = as_flow(value)
    return _Spec(*spec_of(convert_to_tensor(value))) if is_tensor(value) else Undefined("value")


class _Spec:
    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape


def _first_value(spec):
    if not isinstance(spec, _Spec):
        return spec
    import runnel
    dims = [0 if d is None else d for d in spec.shape.as_list()] if spec.shape.rank is not None else []
    return runnel.zeros(dims, spec.dtype)
