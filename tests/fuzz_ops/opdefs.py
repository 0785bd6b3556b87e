"""Definitions and kernels of ops, parsed from the bytes that TF_GetAllOpList and similar functions return."""

import struct

from capi import DTYPES, wire

fields, signed = wire.fields, wire.signed


def dtype_name(n):
    return DTYPES[n] if n < len(DTYPES) else None


def shape_value(data):
    dims = []
    for number, value in fields(data):
        if number == 3:
            return None
        if number == 2:
            dims.append(next((signed(v) for n, v in fields(value) if n == 1), 0))
    return dims


def attr_value(data):
    """The value of an AttrValue without its kind; None for tensors and functions."""
    for number, value in fields(data):
        if number == 1:
            out = []
            for inner, v in fields(value):
                if inner == 2:
                    out.append(v)
                elif inner in (3, 5):
                    out += [signed(x) for x in wire.varints(v)]
                elif inner == 4:
                    out += struct.unpack("<%df" % (len(v) // 4), v)
                elif inner == 6:
                    out += [dtype_name(x) for x in wire.varints(v)]
                elif inner == 7:
                    out.append(shape_value(v))
            return out
        if number == 2:
            return value
        if number == 3:
            return signed(value)
        if number == 4:
            return struct.unpack("<f", value.to_bytes(4, "little"))[0]
        if number == 5:
            return bool(value)
        if number == 6:
            return dtype_name(value)
        if number == 7:
            return shape_value(value)
    return None


class Arg:
    def __init__(self, data):
        self.name = self.type = self.type_attr = self.number_attr = self.type_list_attr = None
        self.is_ref = False
        for number, value in fields(data):
            if number == 1:
                self.name = value.decode()
            elif number == 3:
                self.type = dtype_name(value)
            elif number == 4:
                self.type_attr = value.decode()
            elif number == 5:
                self.number_attr = value.decode()
            elif number == 6:
                self.type_list_attr = value.decode()
            elif number == 16:
                self.is_ref = bool(value)

    def is_list(self):
        return bool(self.number_attr or self.type_list_attr)


class Attr:
    def __init__(self, data):
        self.minimum, self.allowed, self.default, self.has_default = None, None, None, False
        has_minimum = False
        for number, value in fields(data):
            if number == 1:
                self.name = value.decode()
            elif number == 2:
                self.kind = value.decode()
            elif number == 3:
                self.default, self.has_default = attr_value(value), True
            elif number == 5:
                has_minimum = bool(value)
            elif number == 6:
                self.minimum = signed(value)
            elif number == 7:
                self.allowed = attr_value(value)
        if has_minimum and self.minimum is None:
            self.minimum = 0


class Op:
    def __init__(self, data):
        self.inputs, self.outputs, self.attrs, self.is_stateful = [], [], {}, False
        self.kernels = []
        for number, value in fields(data):
            if number == 1:
                self.name = value.decode()
            elif number == 2:
                self.inputs.append(Arg(value))
            elif number == 3:
                self.outputs.append(Arg(value))
            elif number == 4:
                attr = Attr(value)
                self.attrs[attr.name] = attr
            elif number == 17:
                self.is_stateful = bool(value)

    def inferred(self):
        """Names of the attributes that follow from the inputs."""
        return {name for arg in self.inputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr) if name}


def ops_of(data):
    return {op.name: op for op in (Op(value) for number, value in fields(data) if number == 1)}


def kernels_of(data):
    """The type constraints of the CPU kernels in a KernelList: [{attr: [dtype ...]} ...]."""
    out = []
    for _, kernel in fields(data):
        device, constraint = b"", {}
        for n, value in fields(kernel):
            if n == 2:
                device = value
            elif n == 3:
                name, allowed = None, None
                for inner, v in fields(value):
                    if inner == 1:
                        name = v.decode()
                    elif inner == 2:
                        allowed = attr_value(v)
                constraint[name] = [d for d in allowed or () if d]
        if device == b"CPU":
            out.append(constraint)
    return out
