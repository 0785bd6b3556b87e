"""The wire format of protobuf, by hand: tests must not depend on the code that they test, nor on Python's protobuf."""


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """One field: a varint for an int, with its length for bytes and str."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed64(number, value):
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def read_varint(data, at):
    """The varint at data[at], and where the next field begins."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Yields (number, value) of each field: an int for a varint and for a fixed number, bytes for what has a length."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        yield key >> 3, value


def varints(value):
    """The numbers of a repeated field: packed, or a single one."""
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        out.append(number)
    return out


def signed(value):
    """What an int64 field holds."""
    return value - (1 << 64) if value >> 63 else value
