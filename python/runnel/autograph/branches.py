"""if, and, or, not, assert and calls in converted code."""

import builtins
import sys

from runnel import nest, raw_ops
from runnel.autograph import conversion, on_values
from runnel.autograph.jumps import FLAGS, VALUE
from runnel.autograph.state import Layout, Undefined, as_condition, as_flow, builds_graph, is_defined, is_flow_value, is_tensor, spec_of
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.ops import control_flow

_BRANCHES = ("main", "else")


# --- if

def if_statement(condition, body, orelse, read, write, names):
    """Runs one of two blocks; on a tensor, builds both as branches of a conditional."""
    if not (is_tensor(condition) and builds_graph()):
        body() if condition else orelse()
        return
    condition = as_condition(condition, "if statement")
    before = read()

    def branch(block):
        def build():
            write(before)
            block()
            return read()
        return build
    merge = _Merge(names)
    merged = control_flow.build_cond(condition, branch(body), branch(orelse), strict=True, settle=merge.settle)
    write(merge.layout.fill(merged if merge.layout.carried else ()))


class _Merge:
    """Checks that the states after two branches agree, and says which of their leaves are merged."""

    def __init__(self, names):
        self._names = names
        self.layout = None

    def settle(self, contexts, states):
        """Returns the leaves to merge, one list per branch."""
        states = [list(state) for state in states]
        for i, name in enumerate(self._names):
            self._complete(i, name, contexts, states)
        layouts = [Layout(state) for state in states]
        self._check(layouts)
        self.layout = layouts[0]
        both = sorted(set(layouts[0].carried) | set(layouts[1].carried))
        self.layout.carried = both
        leaves = []
        for context, layout in zip(contexts, layouts):
            with context.entered():
                leaves.append([as_flow(layout.flat[i]) for i in both])
        for i, one, other in zip(both, *leaves):
            if spec_of(one) and spec_of(other) and spec_of(one)[0] != spec_of(other)[0]:
                raise TypeError("'%s' has dtype %s in the main branch, but dtype %s in the else branch" % (
                    self.layout.name_of(i, self._names), spec_of(one)[0].name, spec_of(other)[0].name))
        return leaves if both else [None, None]

    def _complete(self, i, name, contexts, states):
        """Checks a value that one branch lacks.

        After a jump nothing is read but the value of a return, and without a return not even that: then it becomes zeros.
        """
        one, other = states[0][i], states[1][i]
        if is_defined(one) == is_defined(other):
            if name == VALUE and (one is None) != (other is None):
                raise ValueError("the %s branch must also have a return statement." % _BRANCHES[one is not None])
            return
        missing = 0 if not is_defined(one) else 1
        if name != VALUE and not self._jumps(states[missing]):
            raise ValueError("'%s' must also be initialized in the %s branch" % (name, _BRANCHES[missing]))
        with contexts[missing].entered():
            states[missing][i] = nest.map_structure(_zeros_like, states[1 - missing][i])

    def _jumps(self, state):
        return any(value is True and name.startswith(FLAGS) for name, value in zip(self._names, state))

    def _check(self, layouts):
        for name, one, other in zip(self._names, layouts[0].values, layouts[1].values):
            if not is_defined(one):
                continue
            for value, branch in ((one, "main"), (other, "else")):
                if value is None and (one is not None or other is not None):
                    raise ValueError("'%s' is None at the end of the %s branch." % (name, branch))
            try:
                nest.assert_same_structure(one, other)
            except (TypeError, ValueError) as error:
                raise TypeError("'%s' must have the same nested structure in the main and else branches:\n\n%s" % (name, error)) from None
        for i, (one, other) in enumerate(zip(layouts[0].flat, layouts[1].flat)):
            if not (is_flow_value(one) and is_flow_value(other)) and one is not other and not isinstance(one, Undefined):
                raise TypeError("'%s' must be a tensor in both branches, or the same object: it is %r in the main branch and %r in the else branch" % (
                    layouts[0].name_of(i, self._names), one, other))


def _zeros_like(value):
    """Returns zeros of the type and shape of a tensor of another branch."""
    if not is_flow_value(value):
        return value
    if not is_tensor(value):
        return type(value)() if isinstance(value, (bool, int, float)) else value
    dims = [0 if d is None else d for d in value.shape.as_list()] if value.shape.rank is not None else []
    import runnel
    return runnel.zeros(dims, value.dtype.base_dtype)


# --- Operators

def if_expression(condition, body, orelse):
    """Returns body() or orelse()."""
    if is_tensor(condition) and builds_graph():
        return control_flow.cond(convert_to_tensor(condition), body, orelse)
    return body() if condition else orelse()


def not_(value):
    """Returns `not value`."""
    return raw_ops.LogicalNot(x=convert_to_tensor(value)) if is_tensor(value) and builds_graph() else not value


def and_(value, other):
    """Returns `value and other()`."""
    if is_tensor(value) and builds_graph():
        return control_flow.cond(convert_to_tensor(value), other, lambda: convert_to_tensor(value))
    return value and other()


def or_(value, other):
    """Returns `value or other()`."""
    if is_tensor(value) and builds_graph():
        return control_flow.cond(convert_to_tensor(value), lambda: convert_to_tensor(value), other)
    return value or other()


def assert_statement(condition, message):
    """Checks a condition; on a tensor, when the graph runs."""
    if is_tensor(condition) and builds_graph():
        text = message()
        control_flow.Assert(condition, [text if text is not None else "assertion failed"])
        return
    assert condition, message()


# --- Calls

def callee(function):
    """Returns what to call for a function: the converted one, or one that also takes tensors."""
    if not conversion.is_enabled() or isinstance(function, type) and function not in OVERLOADS:
        return function
    try:
        overload = OVERLOADS.get(function)
    except TypeError:  # it has no hash
        overload = None
    if function is print and not conversion.optional_features() & {"ALL", "BUILTIN_FUNCTIONS"}:
        return print
    return overload or conversion.convert(function)


def _on_tensors(builtin, on_tensors):
    def run(*args, **kwargs):
        if builds_graph() and any(is_tensor(x) for x in args):
            return on_tensors(*args, **kwargs)
        return builtin(*args, **kwargs)
    return run


def _range(*args):
    import runnel
    if len(args) == 1:  # a range may be empty, as in Python, where the op refuses one
        return runnel.range(runnel.maximum(args[0], 0))
    if len(args) == 2:
        return runnel.range(args[0], runnel.maximum(*args))
    return runnel.range(*args)


def _len(value):
    import runnel
    if value.dtype == runnel.variant:
        return raw_ops.TensorListLength(input_handle=value)
    if value.shape.rank == 0:
        raise ValueError("len requires a non-zero rank, got the scalar %s" % value)
    known = value.shape.dims[0].value if value.shape.rank else None
    return known if known is not None else runnel.shape(value)[0]


def _number(dtype):
    def run(value=0, base=10):
        import runnel
        if base != 10:
            raise NotImplementedError("int of a tensor has base 10, not %r" % (base,))
        if value.dtype == runnel.string:
            return runnel.strings.to_number(value, out_type=dtype)
        return runnel.cast(value, dtype)
    return run


def _all(value):
    import runnel
    return runnel.reduce_all(value)


def _any(value):
    import runnel
    return runnel.reduce_any(value)


def _sorted(value, key=None, reverse=False):
    import runnel
    direction = "DESCENDING" if reverse else "ASCENDING"
    if value.shape.rank not in (None, 1) and key is None:
        raise ValueError("sorted only supports only 1D tensors")
    if key is None:
        return runnel.sort(value, direction=direction)
    keys = runnel.map_fn(key, value)
    if keys.shape.rank not in (None, 1):
        raise ValueError("sorted only supports only 1D tensors")
    return runnel.gather(value, runnel.argsort(keys, direction=direction))


def _abs(value):
    return framework.Tensor.__abs__(convert_to_tensor(value))


def _of_datasets(builtin, on_datasets):
    def run(*args, **kwargs):
        from runnel.data import Dataset
        if any(isinstance(x, Dataset) for x in args):
            return on_datasets(*args, **kwargs)
        return builtin(*args, **kwargs)
    return run


def _enumerate(iterable, start=0):
    distributed = sys.modules.get("runnel.distribute.input_data")
    if distributed is not None and isinstance(iterable, (distributed.DistributedDataset, distributed.DistributedIterator)):
        raise NotImplementedError("enumerate of a distributed dataset in a tf.function: use a for loop over the dataset and count in a variable")
    return enumerate(iterable, start)


def _zip_datasets(*datasets):
    from runnel.data import Dataset
    return Dataset.zip(datasets)


def _print(*values, **settings):
    """Prints the values of tensors when the graph runs."""
    import runnel
    places = [i for i, value in enumerate(values) if is_tensor(value)]

    def show(*arrays):
        shown = list(values)
        for i, array in zip(places, arrays):
            shown[i] = array.decode(errors="replace") if isinstance(array, bytes) else array
        print(*shown, **settings)
    return runnel.numpy_function(show, [values[i] for i in places], [])


ON_TENSORS = {builtins.print: _print, builtins.len: _len, builtins.int: _number("int32"), builtins.float: _number("float32")}
OVERLOADS = {
    builtins.print: _on_tensors(print, _print),
    builtins.range: _on_tensors(range, _range),
    builtins.len: _of_datasets(_on_tensors(len, _len), on_values.len_of_dataset),
    builtins.int: _on_tensors(int, _number("int32")),
    builtins.float: _on_tensors(float, _number("float32")),
    builtins.abs: _of_datasets(_on_tensors(abs, _abs), on_values.abs_of_dataset),
    builtins.all: _on_tensors(all, _all),
    builtins.any: _on_tensors(any, _any),
    builtins.sorted: _on_tensors(sorted, _sorted),
    builtins.enumerate: _of_datasets(_enumerate, lambda dataset, start=0: dataset.enumerate(start)),
    builtins.zip: _of_datasets(zip, _zip_datasets),
    builtins.map: _of_datasets(map, lambda function, *datasets: _zip_datasets(*datasets).map(function)
                                 if len(datasets) > 1 else datasets[0].map(function)),
    builtins.filter: _of_datasets(filter, lambda function, dataset: dataset.filter(function)),
    builtins.next: on_values.next_of_iterator,
}
