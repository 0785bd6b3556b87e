"""What is wrong with the arguments of an op: the messages that programs of TensorFlow know, which name the argument.

Building a node checks its arguments in C. When that fails, `explain` looks for the argument that is wrong, in the order of the op's
definition. Nothing here runs while nodes are built without an error.
"""

from runnel import dtypes

_PLAIN = {"int": int, "float": float, "bool": bool, "string": (str, bytes)}


def explain(definition, given, error):
    """Raises the error that says which argument is wrong. Returns if none is found.

    Args:
      definition: the OpDef.
      given: {name: value} of the arguments that the caller gave.
      error: the exception that building the node raised.
    """
    check_inputs(definition, given, str(error))
    check_attrs(definition, given)


def check_inputs(definition, given, text=""):
    """Raises TypeError or ValueError if inputs cannot be tensors of the types that the op takes. `text` says why a value does not convert."""
    attrs = {attr.name: attr for attr in definition.attr}
    known: dict = {}  # attribute -> (name of the argument that determined it, its type or types)
    lengths: dict = {}
    for arg in definition.input_arg:
        if arg.name not in given:
            continue
        value = given[arg.name]
        if is_list(arg):
            if not isinstance(value, (list, tuple)):
                raise TypeError("Expected list for '%s' argument to '%s' Op, not %s." % (arg.name, definition.name, value))
            types = [_type_of(item) for item in value]
            if arg.number_attr:
                _check_length(definition, arg, attrs[arg.number_attr], types, lengths)
                _check_same(definition, arg, value, types, known)
                if types and arg.type_attr:
                    _check_type(attrs[arg.type_attr], arg.name, known[arg.type_attr][1])
            else:
                _check_types(definition, arg, attrs[arg.type_list_attr], types, known)
        elif not _check_one(definition, arg, value, attrs, known, text):
            return


def is_list(arg):
    """Tells whether an argument of an OpDef is a list of tensors."""
    return bool(arg.number_attr or arg.type_list_attr)


def _check_one(definition, arg, value, attrs, known, text):
    """Checks a single tensor. Returns False if it is not known whether the value converts."""
    if value is None:
        raise ValueError("Tried to convert '%s' to a tensor and failed. Error: None values not supported." % arg.name)
    first, wanted = (None, dtypes.as_dtype(arg.type)) if arg.type else known.get(arg.type_attr, (None, None))
    if _is_typed(value):
        found = value.dtype.base_dtype
        if wanted is not None and found != wanted.base_dtype:
            expected = "expected type of %s." % wanted.name if first is None else "type %s of argument '%s'." % (wanted.name, first)
            raise TypeError("Input '%s' of '%s' Op has type %s that does not match %s" % (arg.name, definition.name, found.name, expected))
    elif wanted is not None:
        why = _why_not(value, wanted)
        if why is None:
            return True
        raise TypeError("Expected %s passed to parameter '%s' of op '%s', got %s of type '%s' instead. Error: %s" % (
            wanted.name, arg.name, definition.name, repr(value), type(value).__name__, text or why))
    else:
        found = _type_of(value)
    if found is None:
        return False
    if arg.type_attr and first is None and not arg.type:
        _check_type(attrs[arg.type_attr], arg.name, found)
        known[arg.type_attr] = arg.name, found
    return True


def _why_not(value, wanted):
    """Returns why a Python value does not convert to a type, or None if it does."""
    from runnel.core import tensor_util
    try:
        tensor_util.make_tensor_proto(value, wanted)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def _is_typed(value):
    return isinstance(getattr(value, "dtype", None), dtypes.DType)


def _type_of(value):
    """Returns the type of the tensor that a value would be, or None if it would be none."""
    if _is_typed(value):
        return value.dtype.base_dtype
    if value is None:
        return None
    from runnel.core import tensor_util
    try:
        return dtypes.as_dtype(tensor_util.make_tensor_proto(value).dtype)
    except (TypeError, ValueError):
        return None


def _names(types):
    return ", ".join("<NOT CONVERTIBLE TO TENSOR>" if one is None else one.name for one in types)


def _check_types(definition, arg, attr, types, known):
    """Checks a list of tensors of any types."""
    if None in types:
        raise TypeError("Tensors in list passed to '%s' of '%s' Op have types [%s]" % (arg.name, definition.name, _names(types)))
    if attr.name in known and known[attr.name][1] != types:
        first, before = known[attr.name]
        raise TypeError("Input '%s' of '%s' Op has type list of %s that does not match type list %s of argument '%s'." % (
            arg.name, definition.name, _names(types), _names(before), first))
    known[attr.name] = arg.name, types
    if len(types) < attr.minimum:
        raise ValueError("Attr '%s' of '%s' Op passed list of length %d less than minimum %d." % (
            attr.name, definition.name, len(types), attr.minimum))
    for one in types:
        _check_type(attr, arg.name, one)


def _check_length(definition, arg, attr, types, lengths):
    if len(types) < attr.minimum:
        raise ValueError("List argument '%s' to '%s' Op with length %d shorter than minimum length %d." % (
            arg.name, definition.name, len(types), attr.minimum))
    first, before = lengths.setdefault(attr.name, (arg.name, len(types)))
    if before != len(types):
        raise ValueError("List argument '%s' to '%s' Op with length %d must match length %d of argument '%s'." % (
            arg.name, definition.name, len(types), before, first))


def _check_same(definition, arg, values, types, known):
    """Raises TypeError if the tensors of a list cannot all be of the type that they must be."""
    wanted, why = None, ""
    if arg.type:
        wanted, why = dtypes.as_dtype(arg.type), "do not match expected type %s."
    elif arg.type_attr in known:
        wanted, why = known[arg.type_attr][1], "do not match type %s inferred from earlier arguments."
    else:  # numbers follow the tensors beside them
        wanted = next((value.dtype.base_dtype for value in values if _is_typed(value)), types[0] if types else None)
        why = "don't all match."
        if None in types:
            wanted = None
    fits = wanted is not None and all(
        one == wanted.base_dtype or not _is_typed(value) and arg.type_attr not in known and _why_not(value, wanted) is None
        for value, one in zip(values, types))
    if types and not fits:
        raise TypeError("Tensors in list passed to '%s' of '%s' Op have types [%s] that %s" % (
            arg.name, definition.name, _names(types), why % wanted.name if "%s" in why else why))
    if types and not arg.type:
        known.setdefault(arg.type_attr, (arg.name, wanted))


def check_attrs(definition, given):
    """Raises TypeError or ValueError if attributes have values that the op does not take."""
    for attr in definition.attr:
        if attr.name not in given or given[attr.name] is None and attr.HasField("default_value"):
            continue
        value, kind = given[attr.name], attr.type
        if kind.startswith("list("):
            if not isinstance(value, (list, tuple)):
                raise TypeError("Expected list for attr %s, obtained %s instead." % (attr.name, type(value).__name__))
            if len(value) < attr.minimum:
                raise ValueError("Attr '%s' of '%s' Op passed list of length %d less than minimum %d." % (
                    attr.name, definition.name, len(value), attr.minimum))
            for item in value:
                _check_value(definition, attr, kind[5:-1], item)
        else:
            _check_value(definition, attr, kind, value)
            if kind == "int" and attr.has_minimum and value < attr.minimum:
                raise ValueError("Attr '%s' of '%s' Op passed %d less than minimum %d." % (attr.name, definition.name, value, attr.minimum))


def _check_value(definition, attr, kind, value):
    """Raises TypeError if a value is not of the attribute's kind, or not among those that are allowed."""
    name, allowed = attr.name, attr.allowed_values.list
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError("Expected bool for argument '%s' not %r." % (name, value))
    if kind in ("int", "float"):
        try:
            if isinstance(value, (str, list)):
                raise TypeError
            _PLAIN[kind](value)
        except (TypeError, ValueError):
            raise TypeError("Expected %s for argument '%s' not %r." % (kind, name, value)) from None
    elif kind == "string":
        if not isinstance(value, _PLAIN["string"]):
            raise TypeError("Expected string for argument '%s' not %r." % (name, value))
        text = value.encode() if isinstance(value, str) else value
        if len(allowed.s) and text not in allowed.s:
            raise ValueError("Attr '%s' of '%s' Op passed string '%s' not in: \"%s\"." % (
                name, definition.name, text.decode(errors="replace"), '", "'.join(item.decode() for item in allowed.s)))
    elif kind == "type":
        try:
            found = dtypes.as_dtype(value)
        except TypeError:
            raise TypeError("Expected DataType for argument '%s' not %r." % (name, value)) from None
        _check_type(attr, name, found)
    elif kind == "func" and not (isinstance(value, (str, bytes)) or hasattr(value, "name") or hasattr(value, "add_to_graph")):
        raise TypeError("Don't know how to convert %s to a func for argument %s" % (value, name))


def _check_type(attr, name, dtype):
    allowed = attr.allowed_values.list.type
    if len(allowed) and dtype.base_dtype.as_datatype_enum not in allowed:
        raise TypeError("Value passed to parameter '%s' has DataType %s not in list of allowed values: %s" % (
            name, dtype.name, ", ".join(dtypes.as_dtype(number).name for number in allowed)))
