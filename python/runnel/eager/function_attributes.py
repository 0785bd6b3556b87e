"""Attributes that a program gives a tf.function (`experimental_attributes`): they are those of its FunctionDef."""

from runnel.core.protobuf import message_class


def function_attributes(attributes):
    """Returns {name: serialized AttrValue} of {name: value}."""
    return {name: _attr_value(name, value).SerializeToString() for name, value in attributes.items() if name != "_disable_acd"}


def _attr_value(name, value):
    kind = message_class("AttrValue")
    if isinstance(value, kind):
        return value
    made = kind()
    if isinstance(value, (list, tuple)):
        for one in value:
            _set(name, one, lambda field, x: getattr(made.list, field).append(x))
        made.list.SetInParent()
    else:
        _set(name, value, lambda field, x: setattr(made, field, x))
    return made


def _set(name, value, put):
    if isinstance(value, bool):
        put("b", value)
    elif isinstance(value, int):
        put("i", value)
    elif isinstance(value, float):
        put("f", value)
    elif isinstance(value, (str, bytes)):
        put("s", value.encode() if isinstance(value, str) else value)
    else:
        raise ValueError("Attribute %s must be bool, int, float, string, list, or AttrValue. Got %s." % (name, type(value)))
