"""tf.raw_ops: a function for every op of the registry, such as tf.raw_ops.MatMul(a, b, transpose_b=True).

Functions are created when they are first used. They take inputs (tensors or values that convert to tensors), then
attributes, by position or name, and `name`. Names in lower case (`mat_mul`) are other names of the same ops. help()
of a function shows the op's definition.
"""

import re

from runnel import _core

_lower_names = None

# Arguments whose names differ in Python from the op's definition.
_AXIS = {"reduction_indices": "axis"}
_RENAMED = {
    "All": _AXIS, "Any": _AXIS, "EuclideanNorm": _AXIS, "Max": _AXIS, "Mean": _AXIS, "Min": _AXIS,
    "Prod": _AXIS, "Sum": _AXIS, "ExpandDims": {"dim": "axis"}, "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"}, "Squeeze": {"squeeze_dims": "axis"}, "Where": {"input": "condition"},
    "Select": {"t": "x", "e": "y"},
}


def op_names():
    """Returns the names of all ops."""
    from runnel.core.protobuf import message_class
    return [op.name for op in message_class("OpList").FromString(_core.op_list()).op]


def forget_names():
    """Makes the next use of a name in lower case ask the registry again: a plug-in has been loaded."""
    global _lower_names
    _lower_names = None


def snake_case(name):
    """Converts "MatMul" to "mat_mul", "Conv2DBackpropInput" to "conv2d_backprop_input" and "Space>AddOne" to "space_add_one"."""
    return "_".join(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", part) for part in name.split(">")).lower()


def function(name):
    """Returns the function of an op, or None if there is no such op."""
    definition = _core.op_def(name)
    return None if definition is None else _core.OpFunction(name, definition, _RENAMED.get(name, {}))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = function(name)
    if found is None:
        global _lower_names
        if _lower_names is None:
            _lower_names = {snake_case(op): op for op in op_names()}
        if name in _lower_names:
            found = globals().get(_lower_names[name]) or function(_lower_names[name])
    if found is None:
        raise AttributeError("Runnel has no op %r: `runnel ops` lists those it has" % name)
    globals()[name] = found
    return found


def __dir__():
    return op_names()


def _op_def(op):
    """Returns the op's definition, with Python's names of the arguments."""
    from runnel.core.protobuf import message_class
    definition = message_class("OpDef").FromString(op._op_def)
    renamed = _RENAMED.get(definition.name, {})
    for arg in [*definition.input_arg, *definition.attr]:
        arg.name = renamed.get(arg.name, arg.name)
    return definition


def _explain(op, given, error):
    """For C: raises the error that says which argument of an op is wrong, if it is found."""
    from runnel.graph import op_checks
    op_checks.explain(_op_def(op), given, error)


def _default(attr):
    value = attr.default_value
    field = value.WhichOneof("value")
    if field == "list":
        rows = value.list.ListFields()
        return [_plain(attr.type, item) for item in rows[0][1]] if rows else []
    return _plain(attr.type, getattr(value, field))


def _plain(kind, value):
    from runnel import dtypes
    from runnel.core import tensor_shape
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if "type" in kind:
        return dtypes.as_dtype(value)
    if "shape" in kind:
        return tensor_shape.TensorShape(value)
    return value


def _signature(op):
    """For C: returns the inspect.Signature of an op's function."""
    import inspect
    definition = _op_def(op)
    attrs = {attr.name: attr for attr in definition.attr}
    inputs = {arg.name for arg in definition.input_arg}
    parameters = []
    for name in op._params:
        default = inspect.Parameter.empty
        if name == "name" and name not in inputs:
            default = None
        elif name not in inputs and attrs[name].HasField("default_value"):
            default = _default(attrs[name])
        parameters.append(inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature(parameters)


def _type_text(arg):
    kind = arg.type_attr or arg.type_list_attr
    if not kind:
        from runnel import dtypes
        kind = dtypes.as_dtype(arg.type).name if arg.type else "?"
    if arg.number_attr:
        return "a list of %s tensors of type %s" % (arg.number_attr, kind)
    if arg.type_list_attr:
        return "a list of tensors of the types %s" % kind
    return "a %stensor of type %s" % ("mutable " if arg.is_ref else "", kind)


def _documentation(op):
    """For C: returns the docstring of an op's function."""
    from runnel import dtypes
    from runnel.core import op_docs
    definition = _op_def(op)
    lines = ["%s%s" % (definition.name, _signature(op)), "",  # help() shows the signatures of Python's functions only
             op_docs.summary(definition.name) or "Runs the op %s." % definition.name, ""]
    attrs = {attr.name: attr for attr in definition.attr}
    arguments = {arg.name: arg for arg in definition.input_arg}
    lines.append("Args:")
    for name in op._params:
        if name in arguments:
            lines.append("  %s: %s." % (name, _type_text(arguments[name])))
        elif name in attrs:
            attr = attrs[name]
            text = "  %s: a %s" % (name, attr.type)
            if attr.HasField("default_value"):
                text += ", by default %r" % (_default(attr),)
            lines.append(text + ".")
    lines.append("  name: name of the operation.")
    types = [attr for attr in definition.attr if attr.type == "type" and attr.allowed_values.list.type]
    for attr in types:
        lines.append("%s is one of %s." % (
            attr.name, ", ".join(dtypes.as_dtype(t).name for t in attr.allowed_values.list.type)))
    outputs = ["  %s: %s." % (arg.name, _type_text(arg)) for arg in definition.output_arg]
    lines += ["", "Returns:"] + (outputs or ["  The operation."])
    return "\n".join(lines)


_core.register(signature=_signature, documentation=_documentation, explain=_explain)
