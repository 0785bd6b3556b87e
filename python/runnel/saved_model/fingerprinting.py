"""Fingerprints of SavedModels: checksums in the file fingerprint.pb, by which models are told apart.

Names of functions end with a number that differs from process to process, so they are hashed without it.
"""

import os
import re

from runnel import raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import executing_eagerly
from runnel.core.protobuf import message_class
from runnel.io import any_files
from runnel.saved_model import metrics

FINGERPRINT_FILENAME = "fingerprint.pb"
_PRODUCER = 4  # the version of the format in TensorFlow 2.21

is_enabled = True  # whether models that are saved get fingerprints
_HASHES = ("graph_def_program_hash", "signature_def_hash", "saved_object_graph_hash", "checkpoint_hash")
_NAMES = ("saved_model_checksum",) + _HASHES


class Fingerprint:
    """The fingerprint of a SavedModel: hashes of its parts, and the version of the file."""

    def __init__(self, saved_model_checksum=None, graph_def_program_hash=None, signature_def_hash=None, saved_object_graph_hash=None,
                 checkpoint_hash=None, version=None):
        self.saved_model_checksum = saved_model_checksum
        self.graph_def_program_hash = graph_def_program_hash
        self.signature_def_hash = signature_def_hash
        self.saved_object_graph_hash = saved_object_graph_hash
        self.checkpoint_hash = checkpoint_hash
        self.version = version

    @classmethod
    def from_proto(cls, proto):
        """Makes a fingerprint of a FingerprintDef, or of its bytes."""
        if isinstance(proto, bytes):
            proto = message_class("FingerprintDef").FromString(proto)
        try:
            return cls(*[getattr(proto, name) for name in _NAMES], proto.version)
        except AttributeError as error:
            raise ValueError("Given proto could not be deserialized as fingerprint.%s" % error) from None

    def __eq__(self, other):
        return all(hasattr(other, name) and getattr(self, name) == getattr(other, name) for name in _NAMES)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self):
        return "\n".join(["SavedModel Fingerprint"] + ["  %s: %s" % (name, getattr(self, name)) for name in _NAMES])

    def __repr__(self):
        return "Fingerprint(%s)" % ", ".join(str(getattr(self, name)) for name in _NAMES)

    def singleprint(self):
        """Returns one text for the model, which does not depend on how it was serialized."""
        values = [getattr(self, name) for name in _HASHES]
        if not all(isinstance(value, int) and 0 <= value < 1 << 64 for value in values):
            raise ValueError("Encounted invalid fingerprint values when constructing singleprint.%s" % "".join(
                "%s: %s" % (name, value) for name, value in zip(_HASHES, values)))
        return "/".join(map(str, values))


def read_fingerprint(export_dir):
    """Reads the fingerprint of a SavedModel. Raises FileNotFoundError if it has none."""
    folder = os.fsdecode(export_dir)
    path = os.path.join(folder, FINGERPRINT_FILENAME)
    if not any_files.exists(path):
        raise FileNotFoundError("SavedModel Fingerprint Error: Could not find fingerprint in directory: %s\nNOT_FOUND: %s not found" % (folder, path))
    with any_files.open(path, "rb") as file:
        data = file.read()
    try:
        return Fingerprint.from_proto(data)
    except Exception as error:
        raise RuntimeError("SavedModel Fingerprint Error: Could not read fingerprint from fingerprint.pb file in directory: %s\n%s" % (
            folder, error)) from None


def to_proto(fingerprint):
    """Returns the FingerprintDef of a fingerprint."""
    made = message_class("FingerprintDef")(**{name: getattr(fingerprint, name) for name in _NAMES})
    if fingerprint.version is not None:
        made.version.CopyFrom(fingerprint.version)
    return made


def ReadSavedModelFingerprint(export_dir):  # noqa: N802
    """Returns the bytes of the file that has a model's fingerprint."""
    with any_files.open(os.path.join(os.fsdecode(export_dir), FINGERPRINT_FILENAME), "rb") as file:
        return file.read()


def note_read(folder):
    """Notes the fingerprint of a model that has been loaded among the metrics."""
    try:
        data = ReadSavedModelFingerprint(folder)
        metrics.SetReadFingerprint(fingerprint=data)
        metrics.SetReadPathAndSingleprint(path=folder, singleprint=Fingerprint.from_proto(data).singleprint())
        metrics.SetFoundFingerprintOnLoad(found_status=metrics.kFingerprintFound)
    except FileNotFoundError:
        metrics.SetFoundFingerprintOnLoad(found_status=metrics.kFingerprintNotFound)
    except Exception:
        metrics.SetFoundFingerprintOnLoad(found_status=metrics.kFingerprintError)


def write_fingerprint(export_dir, model):
    """Writes the fingerprint of a SavedModel message and of the variables beside it."""
    if not is_enabled or not executing_eagerly():
        return  # the op that hashes needs values
    meta, made = model.meta_graphs[0], message_class("FingerprintDef")()
    made.saved_model_checksum = _hash(model.SerializeToString())
    made.graph_def_program_hash = _hash(_graph_bytes(meta.graph_def))
    made.signature_def_hash = _hash(b"".join(key.encode() + meta.signature_def[key].SerializeToString() for key in sorted(meta.signature_def)))
    made.saved_object_graph_hash = _hash(_objects_bytes(meta.object_graph_def))
    index = os.path.join(export_dir, "variables", "variables.index")
    if any_files.isfile(index):
        with any_files.open(index, "rb") as file:
            made.checkpoint_hash = _hash(file.read())
    made.version.producer = _PRODUCER
    data = made.SerializeToString()
    with any_files.open(os.path.join(export_dir, FINGERPRINT_FILENAME), "wb") as file:
        file.write(data)
    metrics.SetWriteFingerprint(fingerprint=data)
    metrics.SetWritePathAndSingleprint(path=export_dir, singleprint=Fingerprint.from_proto(made).singleprint())


def _hash(data):
    made = raw_ops.Fingerprint(data=convert_to_tensor([data]), method=convert_to_tensor("farmhash64"))
    return int.from_bytes(bytes(made.numpy().tobytes()), "little")


def _without_number(name):
    return re.sub(r"_\d+$", "", name)


def _attrs_bytes(attrs):
    """Returns attributes in the order of their names, with names of functions without their numbers."""
    parts = []
    for key in sorted(attrs):
        value = message_class("AttrValue")()
        value.CopyFrom(attrs[key])
        functions = [value.func] if value.func.name else list(value.list.func)
        for function in functions:
            function.name = _without_number(function.name)
        parts += [key.encode(), value.SerializeToString()]
    return b"\0".join(parts)


def _nodes_bytes(nodes):
    return b"\1".join(b"\0".join([node.name.encode(), _without_number(node.op).encode(), *(x.encode() for x in node.input), _attrs_bytes(node.attr)])
                      for node in nodes)


def _graph_bytes(graph):
    functions = []
    for function in graph.library.function:
        results = [key + "=" + function.ret[key] for key in sorted(function.ret)]
        functions.append(b"\2".join([_without_number(function.signature.name).encode(), _nodes_bytes(function.node_def), _attrs_bytes(function.attr),
                                     "\0".join(results).encode()]))
    return b"\3".join([_nodes_bytes(graph.node), *sorted(functions)])


def _objects_bytes(objects):
    copy = message_class("SavedObjectGraph")()
    copy.CopyFrom(objects)
    named = sorted(_without_number(name).encode() + b"\0" + copy.concrete_functions[name].SerializeToString() for name in copy.concrete_functions)
    for name in list(copy.concrete_functions):
        del copy.concrete_functions[name]
    for node in copy.nodes:
        for one in (node.function.concrete_functions if node.HasField("function") else ()):
            named.append(_without_number(one).encode())
    kinds = [node.WhichOneof("kind") or "" for node in copy.nodes]
    children = ["%d:%s" % (child.node_id, child.local_name) for node in copy.nodes for child in node.children]
    return b"\3".join(["\0".join(kinds).encode(), "\0".join(children).encode(), *named])
