"""Conversion of attribute values to and from AttrValue messages."""


def plain(value):
    """Returns the integer in an AttrValue that gives the length of an input list; other values unchanged."""
    if not hasattr(value, "WhichOneof"):
        return value
    field = value.WhichOneof("value")
    if field == "i":
        return value.i
    if field == "list" and value.list.type:
        return list(value.list.type)
    return value


def to_bytes(kind, value):
    """For C: returns the serialized AttrValue of a value of one of the rarer kinds."""
    from runnel.core.protobuf import message_class
    if type(value).__name__ == "AttrValue":
        return value.SerializeToString()
    attr = message_class("AttrValue")()
    if hasattr(value, "SerializeToString"):
        getattr(attr, {"func": "func", "shape": "shape", "tensor": "tensor"}[kind]).CopyFrom(value)
    elif kind == "list(func)":
        attr.list.SetInParent()
        for item in value:
            if hasattr(item, "SerializeToString"):
                attr.list.func.append(item)
            else:
                attr.list.func.add(name=item if isinstance(item, str) else item.name)
    elif kind == "list(tensor)":
        from runnel.core import tensor_util
        attr.list.SetInParent()
        for item in value:
            attr.list.tensor.append(tensor_util.make_tensor_proto(item))
    elif kind == "string":
        attr.s = value.encode() if isinstance(value, str) else value
    else:
        raise TypeError("An attribute of type %s cannot have the value %r" % (kind, value))
    return attr.SerializeToString()
