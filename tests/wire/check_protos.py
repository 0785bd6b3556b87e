"""Compares proto/*.proto with stock TensorFlow's descriptors, using the generated tables.

    check_protos.py WIRE_TOOL

Every message, field, number, type, label, packing, oneof and enum value of ours must be stock's;
ours may leave things out, and what is left out is printed.
"""
import mmap
import os
import re
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow  # noqa: F401  (registers the descriptors)
from tensorflow.core.framework import api_def_pb2, kernel_def_pb2  # noqa: F401
from tensorflow.core.protobuf import composite_tensor_variant_pb2  # noqa: F401
from tensorflow.core.protobuf import data_service_pb2, service_config_pb2, snapshot_pb2  # noqa: F401
from tensorflow.core.protobuf import config_pb2, tensor_bundle_pb2, tensorflow_server_pb2  # noqa: F401
from tensorflow.core.protobuf import fingerprint_pb2, saved_model_pb2, transport_options_pb2  # noqa: F401
from tensorflow.core.util import saved_tensor_slice_pb2  # noqa: F401
from google.protobuf import descriptor_pb2, descriptor_pool

PROTO = os.path.join(os.path.dirname(__file__), "..", "..", "proto")
REPEATED, PACKED, MAP, ONEOF, OPTIONAL = 1, 2, 4, 8, 16


def stock_flags(field):
    if field.is_repeated:
        if field.message_type and field.message_type.GetOptions().map_entry:
            return REPEATED | MAP
        return REPEATED | (PACKED if field.is_packed else 0)
    if field.containing_oneof:
        return ONEOF
    return OPTIONAL if field.has_presence and not field.message_type else 0


# The wheel has no Python for the messages of clusters: they are taken from its libraries, which keep every file's
# descriptor as the bytes of a FileDescriptorProto.
CLUSTER_FILES = ("named_tensor", "remote_tensor_handle", "eager_service", "master", "worker")
COORDINATION_FILE = "xla/tsl/protobuf/coordination_service.proto"
DATA_FILES = ("xla/tsl/protobuf/status.proto", "tensorflow/core/framework/dataset.proto", *(f"tensorflow/core/data/service/{name}.proto" for name in ("common", "dispatcher", "worker", "journal")))
FIELDS = (1, 2, 3, 4, 5, 6, 7, 8, 12)  # of a FileDescriptorProto; 12, its syntax, is the last


def take_file(data):
    """The FileDescriptorProto at the beginning of |data|."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at

    at, key = 0, 0
    while key >> 3 != 12:
        key, at = varint(at)
        if key & 7 != 2 or key >> 3 not in FIELDS:
            return None
        size, at = varint(at)
        at += size
    return descriptor_pb2.FileDescriptorProto.FromString(data[:at])


def add_cluster_files(pool):
    folder = os.path.dirname(tensorflow.__file__)
    wanted = {f"tensorflow/core/protobuf/{name}.proto" for name in CLUSTER_FILES} | {COORDINATION_FILE, *DATA_FILES}
    found = {}
    for library in sorted(os.listdir(folder)):
        if not re.fullmatch(r"lib.*\.so\.2", library):
            continue
        with open(os.path.join(folder, library), "rb") as file:
            data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        for name in wanted - set(found):
            start = b"\n" + bytes([len(name)]) + name.encode()
            at = data.find(start)
            while at >= 0 and name not in found:
                file = take_file(data[at:at + 100000])
                if file is not None and file.message_type:
                    found[name] = file
                at = data.find(start, at + 1)
    assert set(found) == wanted, wanted - set(found)
    for name in CLUSTER_FILES:
        pool.Add(found[f"tensorflow/core/protobuf/{name}.proto"])
    pool.Add(found[COORDINATION_FILE])
    for name in DATA_FILES:
        pool.Add(found[name])


def check_tables(tool, pool):
    ours, problems, fields = {}, [], 0
    for line in subprocess.run([tool, "list"], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        words = line.split()
        if words[0] == "message":
            ours[words[1]] = {}
            continue
        message, name = words[1].rsplit(".", 1)
        ours[message][name] = tuple(map(int, words[2:]))
    for message, table in ours.items():
        try:
            stock = pool.FindMessageTypeByName(message)
        except KeyError:
            problems.append(f"{message}: no such message")
            continue
        for name, (number, type_, flags) in table.items():
            fields += 1
            field = stock.fields_by_name.get(name)
            if field is None:
                problems.append(f"{message}.{name}: no such field")
            elif (field.number, field.type, stock_flags(field)) != (number, type_, flags):
                problems.append(f"{message}.{name}: ours {(number, type_, flags)}, stock "
                                f"{(field.number, field.type, stock_flags(field))}")
        for name in set(stock.fields_by_name) - set(table):
            print(f"left out: {message}.{name}")
    return ours, problems, fields


def check_sources(folder, pool):
    """Types by name, oneof names, map types and enum values, read from the .proto text."""
    problems, checked = [], 0
    for path in sorted(p for p in os.listdir(folder) if p.endswith(".proto")):
        text = re.sub(r"//.*", "", open(os.path.join(folder, path)).read())
        scope = [re.search(r"package\s+([\w.]+)", text).group(1)]
        kinds = []
        for statement in re.findall(r"[^;{}]*[;{}]", text):
            statement = " ".join(statement.split())
            open_ = re.match(r"(message|enum|oneof) (\w+) {", statement)
            if open_:
                kinds.append(open_.groups())
                if open_.group(1) != "oneof":
                    scope.append(open_.group(2))
            elif statement == "}":
                if kinds.pop()[0] != "oneof":
                    scope.pop()
            elif kinds and not statement.startswith(("reserved", "option ")):
                checked += 1
                problem = check_statement(".".join(scope), kinds[-1], statement, pool)
                if problem:
                    problems.append(f"{path}: {problem}")
    return problems, checked


def check_statement(scope, kind, statement, pool):
    if kind[0] == "enum":
        name, number = re.fullmatch(r"(\w+) = (-?\d+) ?;", statement).groups()
        value = pool.FindEnumTypeByName(scope).values_by_name.get(name)
        if value is None or value.number != int(number):
            return f"{scope}: {statement}"
        return None
    match = re.fullmatch(r"(?:repeated |optional )?(map ?<.*>|[\w.]+) (\w+) = (\d+)( \[.*\])? ?;",
                         statement)
    type_, name = match.group(1), match.group(2)
    field = pool.FindMessageTypeByName(scope).fields_by_name[name]

    def fits(type_, field):
        sub = field.message_type or field.enum_type
        return sub is None or ("." + sub.full_name).endswith("." + type_)

    if type_.startswith("map"):
        key, value = re.fullmatch(r"map ?< ?(\w+), ?([\w.]+) ?>", type_).groups()
        entry = field.message_type.fields_by_name
        words = {5: "int32", 13: "uint32", 6: "fixed64", 9: "string"}
        good = words[entry["key"].type] == key and fits(value, entry["value"])
        if not (entry["value"].message_type or entry["value"].enum_type):
            good = good and words[entry["value"].type] == value
    else:
        good = fits(type_, field)
    oneof = field.containing_oneof.name if field.containing_oneof else None
    good = good and oneof == (kind[1] if kind[0] == "oneof" else None)
    return None if good else f"{scope}: {statement}"


def main():
    pool = descriptor_pool.Default()
    add_cluster_files(pool)
    ours, problems, fields = check_tables(sys.argv[1], pool)
    folder = PROTO
    more, statements = check_sources(folder, pool)
    problems += more
    for problem in problems:
        print(problem)
    print(f"{len(ours)} messages, {fields} fields, {statements} statements, "
          f"{len(problems)} problems")
    return bool(problems) or not ours


if __name__ == "__main__":
    sys.exit(main())
