"""The classes of TensorFlow's protocol buffers, without the protobuf package.

A class is made from a table of fields when it is first used. Messages have the methods of protobuf that client code
uses: SerializeToString, ParseFromString, FromString, CopyFrom, MergeFrom, Clear, HasField, ClearField, WhichOneof,
ListFields, ByteSize, repeated fields with add, extend and append, maps like dicts, and str() for the text form. A
message inside another is decoded when it is first read, so reading one node of a large graph is cheap.
"""

import struct

_classes: dict = {}
_VARINTS = frozenset(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"))
_FIXED = {
    "double": ("<d", 1), "fixed64": ("<Q", 1), "sfixed64": ("<q", 1),
    "float": ("<f", 5), "fixed32": ("<I", 5), "sfixed32": ("<i", 5),
}
_DEFAULTS = {"string": "", "bytes": b"", "bool": False, "double": 0.0, "float": 0.0}


class DecodeError(ValueError):
    """The bytes are not a valid message."""


def _write_varint(out, value):
    if value < 0:
        value += 1 << 64
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _read_varint(data, at):
    shift = value = 0
    while True:
        try:
            byte = data[at]
        except IndexError:
            raise DecodeError("Error parsing message: truncated") from None
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise DecodeError("Error parsing message: a number is too long")


class _Field:
    __slots__ = ("name", "number", "type", "label", "type_name", "wire", "oneof", "key", "value")

    def __init__(self, name, number, type_, label, type_name):
        self.name, self.number, self.type, self.label, self.type_name = name, number, type_, label, type_name
        self.wire = 0 if type_ in _VARINTS else _FIXED[type_][1] if type_ in _FIXED else 2
        self.oneof = int(label[1:]) if label.startswith("?") else None
        self.key = self.value = None

    def default(self):
        return _DEFAULTS.get(self.type, 0)

    def check(self, value):
        """Returns the value as it is stored. Raises TypeError if it does not fit."""
        kind = self.type
        if kind == "string":
            if isinstance(value, bytes):
                return value.decode("utf-8")
            if isinstance(value, str):
                return value
        elif kind == "bytes":
            if isinstance(value, (bytes, bytearray, memoryview)):
                return bytes(value)
            if isinstance(value, str):
                return value.encode("utf-8")
        elif kind == "bool":
            return bool(value)
        elif kind in ("float", "double"):
            value = float(value)
            if kind == "float" and value == value and abs(value) != float("inf"):
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            return value
        elif kind == "enum" and isinstance(value, str):
            return _enum_values(self.type_name)[value]
        elif hasattr(value, "__index__"):
            return value.__index__()
        elif kind == "enum" and hasattr(value, "as_datatype_enum"):
            return value.as_datatype_enum
        raise TypeError("%r has type %s, but the field needs type %s: %s" % (
            value, type(value).__name__, kind, self.name))

    def write(self, out, value):
        kind = self.type
        if self.wire == 0:
            if kind in ("sint32", "sint64"):
                value = value << 1 ^ value >> 63
            _write_varint(out, int(value))
        elif self.wire == 2:
            data = (value.SerializeToString() if kind == "message"
                    else value.encode("utf-8") if kind == "string" else value)
            _write_varint(out, len(data))
            out += data
        else:
            out += struct.pack(_FIXED[kind][0], value)

    def number_of(self, raw):
        """Converts a varint to the value of this field."""
        kind = self.type
        if kind == "bool":
            return raw != 0
        if kind in ("uint32", "uint64"):
            return raw if kind == "uint64" else raw & 0xFFFFFFFF
        if kind in ("sint32", "sint64"):
            return raw >> 1 ^ -(raw & 1)
        if raw >= 1 << 63:
            raw -= 1 << 64
        if kind in ("int32", "enum"):
            raw = (raw + (1 << 31)) % (1 << 32) - (1 << 31)
        return raw

    def of_bytes(self, data):
        if self.type == "string":
            return bytes(data).decode("utf-8", "replace")
        if self.type == "bytes":
            return bytes(data)
        message = message_class(self.type_name)()
        message._pending = bytes(data)
        return message


def _enum_values(name):
    from runnel._descriptors import ENUMS
    return dict(ENUMS[name])


class _Repeated(list):
    """A repeated field."""

    __slots__ = ("_field",)

    def __init__(self, field):
        super().__init__()
        self._field = field

    def append(self, value):
        if self._field.type == "message":
            copy = message_class(self._field.type_name)()
            copy.CopyFrom(value)
            super().append(copy)
        else:
            super().append(self._field.check(value))

    def add(self, **kwargs):
        value = message_class(self._field.type_name)(**kwargs)
        super().append(value)
        return value

    def extend(self, values):
        for value in values:
            self.append(value)

    MergeFrom = extend

    def __iadd__(self, values):  # type: ignore[misc, override]
        self.extend(values)
        return self

    def insert(self, index, value):
        self.append(value)
        super().insert(index, super().pop())

    def __setitem__(self, index, value):
        if not isinstance(index, slice) and self._field.type != "message":
            value = self._field.check(value)
        super().__setitem__(index, value)


class _Map(dict):
    """A map field; reading a missing message creates it."""

    __slots__ = ("_entry",)

    def __init__(self, entry):
        super().__init__()
        self._entry = entry

    def __missing__(self, key):
        value = self._entry.value
        if value.type != "message":
            raise KeyError(key)
        message = message_class(value.type_name)()
        dict.__setitem__(self, key, message)
        return message

    def __setitem__(self, key, value):
        if self._entry.value.type == "message":
            raise ValueError("A message in a map cannot be assigned: use CopyFrom")
        super().__setitem__(self._entry.key.check(key), self._entry.value.check(value))

    def get_or_create(self, key):
        return self[key]

    def GetEntryClass(self):
        """Returns the class of a message with a key and a value."""
        return message_class(self._entry.type_name)

    def MergeFrom(self, other):
        for key, value in other.items():
            if self._entry.value.type == "message":
                self[key].CopyFrom(value)
            else:
                self[key] = value


class _Described:
    """The attribute DESCRIPTOR of a class of messages."""

    def __get__(self, message, cls):
        from runnel.core import message_descriptors
        return message_descriptors.of(cls._name)


class Message:
    """The base of all messages."""

    DESCRIPTOR = _Described()
    __slots__ = ("_values", "_pending", "_unknown", "__weakref__")
    _fields: dict = {}
    _by_number: dict = {}
    _oneofs = ()
    _name = ""

    def __init__(self, **kwargs):
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_pending", None)
        object.__setattr__(self, "_unknown", b"")
        for name, value in kwargs.items():
            if name not in self._fields:
                raise ValueError("Protocol message %s has no \"%s\" field." % (self._name.split(".")[-1], name))
            self._set_initial(name, value)

    def _set_initial(self, name, value):
        field = self._field(name)
        if value is None:
            return
        if field.label == "m":
            target = getattr(self, name)
            for key, item in value.items():
                if field.value.type == "message":
                    target[key].CopyFrom(item)
                else:
                    target[key] = item
        elif field.label == "*":
            target = getattr(self, name)
            for item in value:
                if isinstance(item, dict):
                    target.add(**item)
                else:
                    target.append(item)
        elif field.type == "message":
            if isinstance(value, dict):
                value = message_class(field.type_name)(**value)
            getattr(self, name).CopyFrom(value)
            self._mark(field)
        else:
            setattr(self, name, value)

    @classmethod
    def _field(cls, name):
        try:
            return cls._fields[name]
        except KeyError:
            raise AttributeError("Protocol message %s has no \"%s\" field." % (cls._name, name)) from None

    def _load(self):
        data, self._pending = self._pending, None
        self._values["_touched"] = True
        self._merge(data)

    def _mark(self, field):
        """Clears the other members of the field's oneof."""
        if field.oneof is None:
            return
        for other in self._fields.values():
            if other.oneof == field.oneof and other is not field:
                self._values.pop(other.name, None)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        field = self._field(name)
        if self._pending is not None:
            self._load()
        values = self._values
        if name in values:
            return values[name]
        if field.label == "*":
            values[name] = _Repeated(field)
        elif field.label == "m":
            values[name] = _Map(field)
        elif field.type == "message":
            # The field counts as absent until something is set in the message: see _present.
            values[name] = message_class(field.type_name)()
        else:
            return field.default()
        return values[name]

    def __setattr__(self, name, value):
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        field = self._field(name)
        if field.label in ("*", "m") or field.type == "message":
            raise AttributeError("Assignment not allowed to field \"%s\": use CopyFrom or extend" % name)
        if self._pending is not None:
            self._load()
        self._mark(field)
        self._values[name] = field.check(value)
        self._values["_touched"] = True  # a field of the parent is present once something is set in it, even to the default

    def _present(self, field, value):
        if field.label in ("*", "m"):
            return bool(value)
        if field.type == "message":
            return value._is_set()
        if field.oneof is not None:
            return True
        return bool(value) if field.type in ("string", "bytes", "bool") else (
            value != 0 or str(value) == "-0.0")

    def _is_set(self):
        if self._pending is not None:
            return True
        if self._values.get("_touched"):
            return True
        return bool(self._unknown) or any(
            self._present(self._fields[name], value) for name, value in self._values.items()
            if name != "_touched")

    # For google.protobuf.Any, whose fields are type_url and value. The other message may be one of google.protobuf's own.

    def Pack(self, msg, type_url_prefix="type.googleapis.com/", deterministic=None):
        """Makes an Any hold a message."""
        self.type_url = type_url_prefix.rstrip("/") + "/" + _full_name(msg)
        self.value = msg.SerializeToString()

    def Unpack(self, msg):
        """Reads what an Any holds into a message of that type. Returns whether it holds one."""
        if not self.Is(getattr(msg, "DESCRIPTOR", None) or msg):
            return False
        msg.ParseFromString(self.value)
        return True

    def Is(self, descriptor):
        """Tells whether an Any holds a message of a type."""
        return "/" in self.type_url and self.type_url.split("/")[-1] == (getattr(descriptor, "full_name", None) or _full_name(descriptor))

    def SetInParent(self):
        """Marks an empty message as present."""
        self._values["_touched"] = True

    def ListFields(self):
        """Returns (descriptor, value) of every field that is set, by number."""
        known = self.DESCRIPTOR.fields_by_name
        return [(known[field.name], value) for field, value in self._rows()]

    def _rows(self):
        """Returns [(field, value)] of the fields that are set."""
        if self._pending is not None:
            self._load()
        rows = [(self._fields[name], value) for name, value in self._values.items()
                if name != "_touched" and self._present(self._fields[name], value)]
        return sorted(rows, key=lambda row: row[0].number)

    def HasField(self, name):
        """Tells whether a field is set."""
        if name in self._oneofs:
            return self.WhichOneof(name) is not None
        field = self._field(name)
        if self._pending is not None:
            self._load()
        if field.label in ("*", "m"):
            raise ValueError("Protocol message %s has no singular \"%s\" field." % (self._name, name))
        return name in self._values and self._present(field, self._values[name])

    def WhichOneof(self, name):
        """Returns the name of the oneof's field that is set, or None."""
        number = self._oneofs.index(name)
        if self._pending is not None:
            self._load()
        for field in self._fields.values():
            if field.oneof == number and field.name in self._values:
                if self._present(field, self._values[field.name]):
                    return field.name
        return None

    def ClearField(self, name):
        """Clears a field."""
        self._field(name)
        if self._pending is not None:
            self._load()
        self._values.pop(name, None)

    def Clear(self):
        """Clears all fields."""
        self._values.clear()
        self._pending = None
        self._unknown = b""

    def CopyFrom(self, other):
        """Replaces the contents by those of another message."""
        if other is self:
            return
        self.Clear()
        self.MergeFromString(other.SerializeToString())
        self.SetInParent()

    def MergeFrom(self, other):
        """Merges another message into this one."""
        self.MergeFromString(other.SerializeToString())

    def SerializeToString(self, deterministic=None):
        """Returns the message as bytes."""
        if self._pending is not None:
            return self._pending
        out = bytearray()
        for field, value in self._rows():
            if field.label == "m":
                _write_map(out, field, value)
            elif field.label == "*":
                _write_repeated(out, field, value)
            else:
                _write_varint(out, field.number << 3 | field.wire)
                field.write(out, value)
        out += self._unknown
        return bytes(out)

    SerializePartialToString = SerializeToString

    def ByteSize(self):
        """Returns the number of bytes of the message."""
        return len(self.SerializeToString())

    def IsInitialized(self):
        """Returns True: no field is required."""
        return True

    def ParseFromString(self, data):
        """Replaces the contents by the decoded bytes."""
        self.Clear()
        return self.MergeFromString(data)

    def MergeFromString(self, data):
        """Merges the decoded bytes into this message."""
        if self._pending is not None:
            self._load()
        self._merge(bytes(data))
        return len(data)

    @classmethod
    def FromString(cls, data):
        """Returns a message decoded from bytes."""
        message = cls()
        message._merge(bytes(data))
        return message

    def _merge(self, data):
        at, end = 0, len(data)
        by_number = self._by_number
        while at < end:
            start = at
            key, at = _read_varint(data, at)
            field, wire = by_number.get(key >> 3), key & 7
            if wire == 0:
                raw, at = _read_varint(data, at)
            elif wire == 2:
                size, at = _read_varint(data, at)
                raw = data[at:at + size]
                at += size
            elif wire in (1, 5):
                raw = data[at:at + (8 if wire == 1 else 4)]
                at += 8 if wire == 1 else 4
            else:
                raise DecodeError("Error parsing message: field %d has wire type %d" % (key >> 3, wire))
            if at > end:
                raise DecodeError("Error parsing message: truncated")
            if field is None:
                self._unknown += data[start:at]
            else:
                self._take(field, wire, raw)

    def _take(self, field, wire, raw):
        if field.label == "m":
            _take_entry(self, field, raw)
        elif field.label == "*":
            target = getattr(self, field.name)
            if wire == 2 and field.wire != 2:
                _unpack(field, raw, target)
            else:
                list.append(target, _decode(field, wire, raw))
        elif field.type == "message" and field.name in self._values:
            self._values[field.name].MergeFromString(raw)
            self._mark(field)
        else:
            self._mark(field)
            self._values[field.name] = _decode(field, wire, raw)

    def __eq__(self, other):
        if not isinstance(other, Message):
            return NotImplemented
        return type(self) is type(other) and _plain(self) == _plain(other)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo):
        return type(self).FromString(self.SerializeToString())

    __copy__ = lambda self: self.__deepcopy__(None)  # noqa: E731

    def __reduce__(self):
        return (_rebuild, (self._name, self.SerializeToString()))

    def __dir__(self):
        return sorted(set(object.__dir__(self)) | set(self._fields))

    def __str__(self):
        lines = []
        _write_text(self, "", lines)
        return "".join(line + "\n" for line in lines)

    __repr__ = __str__


def _full_name(message):
    """Returns the name of a message's type with its package."""
    return type(message).DESCRIPTOR.full_name


def _rebuild(name, data):
    return message_class(name).FromString(data)


def _plain(message):
    rows = []
    for field, value in message._rows():
        if field.type == "message" and field.label not in ("*", "m"):
            value = _plain(value)
        elif field.label == "*" and field.type == "message":
            value = [_plain(item) for item in value]
        elif field.label == "m" and field.value.type == "message":
            value = {key: _plain(item) for key, item in value.items()}
        rows.append((field.number, value))
    return rows


def _decode(field, wire, raw):
    if wire != field.wire:
        raise DecodeError("Error parsing message: field %s has wire type %d" % (field.name, wire))
    if wire == 0:
        return field.number_of(raw)
    if wire == 2:
        return field.of_bytes(raw)
    return struct.unpack(_FIXED[field.type][0], raw)[0]


def _unpack(field, raw, target):
    if field.wire == 0:
        at = 0
        while at < len(raw):
            value, at = _read_varint(raw, at)
            list.append(target, field.number_of(value))
        return
    code = _FIXED[field.type][0]
    size = struct.calcsize(code)
    if len(raw) % size:
        raise DecodeError("Error parsing message: field %s is truncated" % field.name)
    list.extend(target, struct.unpack("<%d%s" % (len(raw) // size, code[1]), raw))


def _take_entry(message, field, raw):
    entry = message_class(field.type_name).FromString(raw)
    target = getattr(message, field.name)
    value = entry._values.get("value")
    if value is None:
        value = (message_class(field.value.type_name)() if field.value.type == "message"
                 else field.value.default())
    dict.__setitem__(target, entry.key, value)


def _write_repeated(out, field, values):
    if field.wire == 2:
        for value in values:
            _write_varint(out, field.number << 3 | 2)
            field.write(out, value)
        return
    packed = bytearray()
    for value in values:
        field.write(packed, value)
    _write_varint(out, field.number << 3 | 2)
    _write_varint(out, len(packed))
    out += packed


def _write_map(out, field, values):
    for key in sorted(values):
        entry = bytearray()
        _write_varint(entry, 1 << 3 | field.key.wire)
        field.key.write(entry, key)
        _write_varint(entry, 2 << 3 | field.value.wire)
        field.value.write(entry, values[key])
        _write_varint(out, field.number << 3 | 2)
        _write_varint(out, len(entry))
        out += entry


def _quote(data):
    out = []
    for byte in data:
        char = chr(byte)
        if char in "\"\\'":
            out.append("\\" + char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append("\\%03o" % byte)
    return '"' + "".join(out) + '"'


def _text_value(field, value):
    if field.type == "string":
        return _quote(value.encode("utf-8"))
    if field.type == "bytes":
        return _quote(value)
    if field.type == "bool":
        return "true" if value else "false"
    if field.type == "enum":
        from runnel._descriptors import ENUMS
        return next((name for name, number in ENUMS[field.type_name] if number == value), str(value))
    if field.type in ("float", "double"):
        return _shortest(value, field.type)
    return repr(value)


def _shortest(value, kind):
    """Returns the shortest text of a number that reads back as the same number."""
    if value != value:
        return "nan"
    code, first, last = ("<f", 6, 10) if kind == "float" else ("<d", 15, 18)
    text = ""
    for digits in range(first, last):
        text = "%.*g" % (digits, value)
        if struct.pack(code, float(text)) == struct.pack(code, value):
            break
    return text


def _write_text(message, indent, lines):
    for field, value in message._rows():
        if field.label == "m":
            for key in sorted(value):
                lines.append("%s%s {" % (indent, field.name))
                lines.append("%s  key: %s" % (indent, _text_value(field.key, key)))
                _write_text_field(field.value, "value", value[key], indent + "  ", lines)
                lines.append(indent + "}")
        else:
            for item in value if field.label == "*" else (value,):
                _write_text_field(field, field.name, item, indent, lines)


def _write_text_field(field, name, value, indent, lines):
    if field.type == "message":
        lines.append("%s%s {" % (indent, name))
        _write_text(value, indent + "  ", lines)
        lines.append(indent + "}")
    else:
        lines.append("%s%s: %s" % (indent, name, _text_value(field, value)))


class Enum:
    """An enumeration: Name(number), Value(name), keys(), values(), items(), and its names."""

    def __init__(self, name, rows):
        self._name = name
        self._rows = rows
        for key, number in rows:
            setattr(self, key, number)

    def Name(self, number):
        """Returns the name of a number."""
        for key, value in self._rows:
            if value == number:
                return key
        raise ValueError("Enum %s has no name defined for value %r" % (self._name, number))

    def Value(self, name):
        """Returns the number of a name."""
        for key, value in self._rows:
            if key == name:
                return value
        raise ValueError("Enum %s has no value defined for name %r" % (self._name, name))

    def keys(self):
        """Returns the names."""
        return [key for key, _ in self._rows]

    def values(self):
        """Returns the numbers."""
        return [value for _, value in self._rows]

    def items(self):
        """Returns [(name, number)]."""
        return list(self._rows)


def message_class(name):
    """Returns the class of a message, such as "NodeDef" or "AttrValue.ListValue"."""
    cls = _classes.get(name)
    if cls is None:
        from runnel._descriptors import MESSAGES, ONEOFS
        fields = {row[0]: _Field(*row) for row in MESSAGES[name]}
        for field in fields.values():
            if field.label == "m":
                field.key, field.value = (_Field(*row) for row in MESSAGES[field.type_name])
        cls = type(name.split(".")[-1], (Message,), {
            "__slots__": (), "_fields": fields, "_name": name, "_oneofs": ONEOFS.get(name, ()),
            "_by_number": {field.number: field for field in fields.values()},
            "__doc__": "The message %s: %s." % (name, ", ".join(fields)),
        })
        _classes[name] = cls
        _add_nested(cls, name)
    return cls


def _add_nested(cls, name):
    """Adds the messages and enumerations declared inside a message, such as ConfigProto.Experimental."""
    from runnel._descriptors import ENUMS, MESSAGES
    prefix = name + "."
    for other in MESSAGES:
        if other.startswith(prefix) and "." not in other[len(prefix):] and "$" not in other:
            setattr(cls, other[len(prefix):], message_class(other))
    for other, rows in ENUMS.items():
        if other.startswith(prefix) and "." not in other[len(prefix):]:
            setattr(cls, other[len(prefix):], Enum(other, rows))
            for key, number in rows:
                setattr(cls, key, number)


def __getattr__(name):
    from runnel._descriptors import ENUMS, MESSAGES
    if name in MESSAGES:
        return message_class(name)
    if name in ENUMS:
        return Enum(name, ENUMS[name])
    raise AttributeError("There is no message %r" % name)
