"""Python's functions on datasets, and max and min on tensors, as converted functions call them."""


def _nest():
    from runnel import nest
    return nest


def abs_of_dataset(dataset):
    """Returns the dataset of the absolute values."""
    import runnel
    return dataset.map(lambda *row: _nest().map_structure(runnel.abs, row[0] if len(row) == 1 else row))


def len_of_dataset(dataset):
    """Returns the number of elements. Fails in the step if it is infinite or unknown."""
    import runnel
    from runnel.data import experimental
    count = experimental.cardinality(dataset)
    checks = [runnel.debugging.Assert(runnel.not_equal(count, experimental.INFINITE_CARDINALITY), ["dataset is infinite"]),
              runnel.debugging.Assert(runnel.not_equal(count, experimental.UNKNOWN_CARDINALITY), ["dataset has unknown cardinality"])]
    with runnel.control_dependencies([check for check in checks if check is not None]):
        return runnel.identity(count)


def _check_flags(name, dataset):
    import runnel
    specs = _nest().flatten(dataset.element_spec)
    if len(specs) != 1 or specs[0].dtype != runnel.bool:
        raise ValueError('in graph mode, the "%s" builtin for datasets of boolean tensors only, got %s' % (name, dataset.element_spec))


def any_of_dataset(dataset):
    """Tells whether a dataset of bools has a True."""
    import runnel
    _check_flags("any", dataset)
    return dataset.reduce(runnel.constant(False), lambda found, value: runnel.logical_or(found, runnel.reduce_any(value)))


def all_of_dataset(dataset):
    """Tells whether all elements of a dataset of bools are True."""
    import runnel
    _check_flags("all", dataset)
    return dataset.reduce(runnel.constant(True), lambda found, value: runnel.logical_and(found, runnel.reduce_all(value)))


def _extreme(name, args, reduce, combine):
    from runnel.core.convert import convert_to_tensor
    tensors = [convert_to_tensor(x) for x in args]
    if len(tensors) == 1:
        if tensors[0].shape.rank not in (0, 1, None):
            raise ValueError("%s(arg) currently support only tensor with a single dimension, but got a tensor with shape %s" % (
                name, tensors[0].shape))
        return reduce(tensors[0])
    found = tensors[0]
    for tensor in tensors:
        if tensor.shape.rank not in (0, None):
            raise ValueError("%s(arg1, arg2, *args) currently support only scalar tensor, but got a tensor with shape %s" % (name, tensor.shape))
        found = combine(found, tensor)
    return found


def max_of_tensors(*args):
    """Returns the largest element of a vector, or of several scalars."""
    import runnel
    return _extreme("max", args, runnel.reduce_max, runnel.maximum)


def min_of_tensors(*args):
    """Returns the smallest element of a vector, or of several scalars."""
    import runnel
    return _extreme("min", args, runnel.reduce_min, runnel.minimum)


def next_of_iterator(iterator, *default):
    """Returns the next element of an iterator. In a graph, iterators of tf.data tell only when it runs whether there is one."""
    from runnel.autograph.state import builds_graph
    if not (hasattr(iterator, "get_next_as_optional") and builds_graph()):
        return next(iterator, *default)
    if not default:
        return iterator.get_next()
    import runnel
    found = iterator.get_next_as_optional()
    value = _as_element(default[0], found.element_spec)
    return runnel.cond(found.has_value(), found.get_value, lambda: value)


def _as_element(default, spec):
    """Returns a default as tensors. Raises TypeError unless it is like the elements."""
    nest = _nest()
    try:
        nest.assert_same_structure(spec, default)
    except (TypeError, ValueError) as error:
        raise TypeError("default must have the same element structure as the dataset: %s" % error) from None

    def checked(one, wanted):
        from runnel.core.convert import convert_to_tensor
        made = convert_to_tensor(one)
        if made.dtype != wanted.dtype:
            raise TypeError("default must have the types of the elements: %s is expected, got %s" % (wanted.dtype.name, made.dtype.name))
        return made
    return nest.map_structure(checked, default, spec)
