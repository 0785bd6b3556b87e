"""Functions that are told of every operation that a thread runs or adds to a graph, and may replace its outputs in graphs.

A function is called as f(op_type, inputs, attrs, outputs, op_name=None, graph=None): op_name and graph are None in eager execution.
`attrs` are names and values by turns. It returns None, or the outputs that later code gets in a graph. While it runs, no function is called.
Operations that C builds by itself are not seen: those of gradients in graphs.
"""

import threading

from runnel import _core, dtypes, nest


class _State(threading.local):
    def __init__(self):
        self.callbacks = []


_state = _State()


def callbacks():
    """Returns the functions of this thread."""
    return tuple(_state.callbacks)


def add_op_callback(callback_fn):
    """Calls a function for every operation of this thread."""
    if callback_fn is None:
        raise ValueError("Passed callback function cannot be None.")
    if not callable(callback_fn):
        raise ValueError("Callback function passed to op_callback() is expected to be callable, but got %s of type %s." % (
            callback_fn, type(callback_fn)))
    if callback_fn not in _state.callbacks:
        _state.callbacks.append(callback_fn)
    _core.intercept_ops(True)


def remove_op_callback(op_callback):
    """Does not call a function any more. Raises KeyError if add_op_callback has not been called with it."""
    if op_callback not in _state.callbacks:
        raise KeyError("The specified op callback has not been registered, and hence cannot be removed.")
    _state.callbacks.remove(op_callback)
    _core.intercept_ops(bool(_state.callbacks))


def clear_op_callbacks():
    """Calls no function of this thread any more."""
    for callback in callbacks():
        remove_op_callback(callback)


def should_invoke_op_callbacks():
    """Tells whether functions are called for the next operation."""
    return _core.intercepts_ops()


def invoke_op_callbacks(op_type, inputs, attrs, outputs, op_name=None, graph=None):
    """Calls the functions of this thread. Returns the outputs that the last one returned."""
    if isinstance(attrs, dict):
        attrs = tuple(part for row in attrs.items() for part in row)
    before = _core.intercept_ops(False)
    try:
        new = outputs
        for callback in callbacks():
            new = callback(op_type, inputs, attrs, new, op_name=op_name, graph=graph)
            if new is not None and len(new) != len(outputs):
                raise ValueError("The op callback returned %d tensors, which does not match the original number of outputs of op %s (%d)." % (
                    len(new), op_name, len(outputs)))
        return new
    finally:
        _core.intercept_ops(before and bool(_state.callbacks))


def _intercept(function, args, kwargs):
    """For C: calls an op's function, and the callbacks."""
    before = _core.intercept_ops(False)
    try:
        is_eager = _core.current() is None
        if is_eager:
            given, inputs = _with_tensors(function, args, kwargs)
            result = function(**given)
        else:
            result = function(*args, **kwargs)
    finally:
        _core.intercept_ops(before)
    from runnel.core.framework import Operation
    outputs = [] if result is None or isinstance(result, Operation) else nest.flatten(result)
    if is_eager:
        name = function.__name__
        called = given.get("f") if name.endswith("PartitionedCall") else None
        invoke_op_callbacks(called or name, tuple(inputs), _attrs(function, given, inputs), outputs)
        return result
    op = result if isinstance(result, Operation) else outputs[0].op if outputs else None
    if op is None:
        return result
    new = invoke_op_callbacks(op.type, tuple(op.inputs), dict(op.node_def.attr.items()), tuple(outputs), op.name, op.graph)
    return result if new is None or not outputs else nest.pack_sequence_as(result, list(new))


def _with_tensors(function, args, kwargs):
    """Returns ({name: argument} with tensors in place of values, the list of these tensors)."""
    from runnel import raw_ops
    from runnel.core.convert import convert_to_tensor
    given = dict(zip(function._params, args), **kwargs)
    known: dict = {}
    for arg in raw_ops._op_def(function).input_arg:
        values = given[arg.name] if isinstance(given.get(arg.name), (list, tuple)) else [given.get(arg.name)]
        kind = arg.type_attr and next((x.dtype for x in values if isinstance(x, _core.Tensor)), None)
        if kind:
            known.setdefault(arg.type_attr, kind)
    tensors = []
    for arg in raw_ops._op_def(function).input_arg:
        wanted = dtypes.as_dtype(arg.type) if arg.type else known.get(arg.type_attr)
        value = given.get(arg.name)
        is_list = bool(arg.number_attr or arg.type_list_attr)
        if value is None or is_list and not isinstance(value, (list, tuple)):
            continue  # the op's function says what is wrong
        found = [convert_to_tensor(item, wanted) for item in (value if is_list else [value])]
        given[arg.name] = found if is_list else found[0]
        tensors.extend(found)
        if arg.type_attr and found:
            known.setdefault(arg.type_attr, found[0].dtype)
    return given, tensors


def _attrs(function, given, inputs):
    """Returns the names and values of an eager operation's attributes by turns."""
    from runnel import raw_ops
    definition = raw_ops._op_def(function)
    inferred = {}
    for arg in definition.input_arg:
        value = given.get(arg.name)
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if arg.number_attr:
            inferred[arg.number_attr] = len(values)
        if arg.type_list_attr:
            inferred[arg.type_list_attr] = [x.dtype.as_datatype_enum for x in values]
        if arg.type_attr and values and isinstance(values[0], _core.Tensor):
            inferred[arg.type_attr] = values[0].dtype.as_datatype_enum
    found = []
    for attr in definition.attr:
        if attr.name in inferred:
            value = inferred[attr.name]
        elif given.get(attr.name) is not None:
            value = given[attr.name]
            value = dtypes.as_dtype(value).as_datatype_enum if attr.type == "type" else value
        else:
            value = raw_ops._default(attr) if attr.HasField("default_value") else None
        found += [attr.name, value]
    return tuple(found)


def constant_added(tensor):
    """Returns what later code gets for a constant that was added to a graph."""
    op = tensor.op
    new = invoke_op_callbacks("Const", (), dict(op.node_def.attr.items()), (tensor,), op.name, op.graph)
    return tensor if new is None else new[0]


_core.register(intercept=_intercept)
