"""Descriptors of messages, with the attributes that google.protobuf's text_format and json_format read.

With them `text_format.Merge(text, graph_def)` and `text_format.MessageToString(graph_def)` work on Runnel's messages.
"""

import functools

from runnel.core import protobuf

# The numbers of descriptor.proto for the types of fields, and those of the C++ types behind them.
_TYPES = dict(double=1, float=2, int64=3, uint64=4, int32=5, fixed64=6, fixed32=7, bool=8, string=9, group=10, message=11, bytes=12,
              uint32=13, enum=14, sfixed32=15, sfixed64=16, sint32=17, sint64=18)
_CPP_TYPES = dict(double=5, float=6, int64=2, uint64=4, int32=1, fixed64=4, fixed32=3, bool=7, string=9, message=10, bytes=9, uint32=3,
                  enum=8, sfixed32=1, sfixed64=2, sint32=1, sint64=2)
_OPTIONAL, _REPEATED = 1, 3


def _full(name):
    from runnel._descriptors import PACKAGES
    return name if name.startswith("google.") else "%s.%s" % (PACKAGES.get(name.split(".")[0], "tensorflow"), name)


class MessageOptions:
    """Options of a message: whether it is the entry of a map."""

    message_set_wire_format = False

    def __init__(self, map_entry):
        self.map_entry = map_entry


class EnumValueDescriptor:
    """A value of an enumeration."""

    def __init__(self, name, number, index, kind):
        self.name, self.number, self.index, self.type = name, number, index, kind


class EnumDescriptor:
    """An enumeration: its values by name and by number."""

    is_closed = False

    def __init__(self, name):
        from runnel._descriptors import ENUMS
        self.name, self.full_name = name.split(".")[-1], _full(name)
        self.values = [EnumValueDescriptor(key, number, i, self) for i, (key, number) in enumerate(ENUMS[name])]
        self.values_by_name = {value.name: value for value in self.values}
        self.values_by_number = {value.number: value for value in reversed(self.values)}


class OneofDescriptor:
    """A group of fields of which one is set."""

    def __init__(self, name, containing_type, fields):
        self.name, self.containing_type, self.fields = name, containing_type, fields
        self.full_name = "%s.%s" % (containing_type.full_name, name)


class FieldDescriptor:
    """A field of a message."""

    is_extension = is_required = has_options = False
    extension_scope = containing_oneof = None

    def __init__(self, field, containing_type, index):
        self._field = field
        self.name, self.number, self.index, self.containing_type = field.name, field.number, index, containing_type
        self.full_name = "%s.%s" % (containing_type.full_name, field.name)
        words = field.name.split("_")
        self.json_name = self.camelcase_name = words[0] + "".join(word.capitalize() for word in words[1:])
        self.type, self.cpp_type = _TYPES[field.type], _CPP_TYPES[field.type]
        self.is_repeated = field.label in ("*", "m")
        self.label = _REPEATED if self.is_repeated else _OPTIONAL
        self.has_presence = not self.is_repeated and (field.type == "message" or field.oneof is not None)
        self.is_packed = self.is_repeated and field.wire != 2
        self.has_default_value = False
        self.default_value = [] if self.is_repeated else None if field.type == "message" else field.default()

    @property
    def file(self):
        """The file that declares the message."""
        return self.containing_type.file

    @property
    def message_type(self):
        """The descriptor of a message, or None."""
        return of(self._field.type_name) if self._field.type == "message" else None

    @property
    def enum_type(self):
        """The descriptor of an enumeration, or None."""
        return _enum(self._field.type_name) if self._field.type == "enum" else None


for _name, _number in _TYPES.items():
    setattr(FieldDescriptor, "TYPE_" + _name.upper(), _number)


class FileDescriptor:
    """Stands for the file that declares a message."""

    package, name, syntax = "tensorflow", "", "proto3"


_file = FileDescriptor()


class Descriptor:
    """The type of a message: its fields by name and by number."""

    is_extendable = False
    containing_type = None
    extensions = ()
    file = _file

    def __init__(self, name):
        cls = protobuf.message_class(name)
        self._concrete_class, self.name, self.full_name = cls, name.split(".")[-1], _full(name)
        self.has_options = "$" in name
        self.fields = [FieldDescriptor(field, self, i) for i, field in enumerate(cls._fields.values())]
        self.fields_by_name = {field.name: field for field in self.fields}
        self.fields_by_number = {field.number: field for field in self.fields}
        self.fields_by_camelcase_name = {field.json_name: field for field in self.fields}
        self.oneofs = [OneofDescriptor(oneof, self, [f for f in self.fields if f._field.oneof == i]) for i, oneof in enumerate(cls._oneofs)]
        self.oneofs_by_name = {oneof.name: oneof for oneof in self.oneofs}
        for oneof in self.oneofs:
            for field in oneof.fields:
                field.containing_oneof = oneof

    def GetOptions(self):
        """Returns the options."""
        return MessageOptions(self.has_options)


@functools.cache
def of(name):
    """Returns the descriptor of a message."""
    return Descriptor(name)


@functools.cache
def _enum(name):
    return EnumDescriptor(name)


# The folders of TensorFlow's files that are not in tensorflow/core/framework.
_FOLDERS = {"example": "core/example", "feature": "core/example", "event": "core/util", "saved_tensor_slice": "core/util", "model": "core/framework"}
_FOLDERS.update(dict.fromkeys("""cluster composite_tensor_variant config control_flow debug device_filters eager_service fingerprint graph_debug_info
    master meta_graph named_tensor queue_runner remote_tensor_handle rewriter_config rpc_options saved_model saved_object_graph saver
    service_config struct tensor_bundle tensorflow_server trackable_object_graph verifier_config worker""".split(), "core/protobuf"))


def add_to_pool(leaf):
    """Describes the messages of a file to the package protobuf, if that is in use: other files that import it are made of the description.

    Their messages of these types are those of the package, not Runnel's.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool
    from runnel._descriptors import FILES
    pool = descriptor_pool.Default()
    if leaf not in FILES or _is_in(pool, leaf):
        return
    made = descriptor_pb2.FileDescriptorProto(name=_path(leaf), package=_package(leaf), syntax="proto3")
    owners = {name: other for other, names in FILES.items() for name in names}
    needed = {owners[text.split(".")[0]] for name in FILES[leaf] for text in _types_of(name)} - {leaf}
    for other in sorted(needed):
        add_to_pool(other)
        made.dependency.append(_name_in(pool, other))
    for name in FILES[leaf]:
        _describe(name, made.message_type, made.enum_type)
    pool.AddSerializedFile(made.SerializeToString())


def _path(leaf):
    return "tensorflow/%s/%s.proto" % (_FOLDERS.get(leaf, "core/framework"), leaf)


def _package(leaf):
    from runnel._descriptors import FILES, PACKAGES
    return PACKAGES.get(FILES[leaf][0], "tensorflow")


def _is_in(pool, leaf):
    try:
        return bool(_name_in(pool, leaf))
    except KeyError:
        return False


def _name_in(pool, leaf):
    """Returns the name of the file that has the messages of a file: google/protobuf/any.proto for Any."""
    from runnel._descriptors import FILES
    try:
        return pool.FindFileByName(_path(leaf)).name
    except KeyError:
        return pool.FindMessageTypeByName(_full(FILES[leaf][0])).file.name


def _types_of(name):
    """Returns the names of the types of fields of a message and of those inside it."""
    from runnel._descriptors import MESSAGES
    inside = [one for one in MESSAGES if one == name or one.startswith(name + ".")]
    return {text for one in inside for _, _, _, _, text in MESSAGES[one] if text}


def _describe(name, messages, enums):
    """Adds a message or an enumeration, with what is inside of it, to the descriptions of a file or of a message."""
    from runnel._descriptors import ENUMS, MESSAGES, ONEOFS
    if name in ENUMS:
        enums.add(name=name.split(".")[-1]).value.extend([_value(key, number) for key, number in ENUMS[name]])
        return
    is_entry = "$" in name
    short = name.split(".")[-1]
    made = messages.add(name=_entry_name(short) if is_entry else short)
    made.options.map_entry = is_entry
    for oneof in ONEOFS.get(name, ()):
        made.oneof_decl.add(name=oneof)
    for field, number, kind, label, text in MESSAGES[name]:
        row = made.field.add(name=field, number=number, type=_TYPES[kind], label=_REPEATED if label in ("*", "m") else _OPTIONAL)
        if text:
            head, _, last = text.rpartition(".")
            row.type_name = "." + _full("%s.%s" % (head, _entry_name(last)) if "$" in last else text)
        if label.startswith("?"):
            row.oneof_index = int(label[1:])
    for one in [*ENUMS, *MESSAGES]:
        if one.startswith(name + ".") and "." not in one[len(name) + 1:]:
            _describe(one, made.nested_type, made.enum_type)


def _entry_name(text):
    return "".join(word[:1].upper() + word[1:] for word in text.split("$")[0].split("_")) + "Entry"


def _value(name, number):
    from google.protobuf import descriptor_pb2
    return descriptor_pb2.EnumValueDescriptorProto(name=name, number=number)
