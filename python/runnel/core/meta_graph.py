"""MetaGraphDefs: graphs with their collections and savers, written and read."""

import logging
import os
import re

from runnel import _core
from runnel.core import framework, v2_switches, versions
from runnel.core.framework import GraphKeys
from runnel.io import any_files

_UNBOUND = "$unbound_inputs_"
_log = logging.getLogger("tensorflow")
_protos = {}  # collection -> (message, to_proto, from_proto)


def register_proto_function(collection_name, proto_type=None, to_proto=None, from_proto=None):
    """Registers how the values of a collection convert to messages and back."""
    _protos[collection_name] = (proto_type, to_proto, from_proto)


def is_of_variables(key):
    return key in GraphKeys._VARIABLE_COLLECTIONS or key in (GraphKeys.GLOBAL_STEP,
                                                             GraphKeys.EVAL_STEP)


def _known(key):
    """Returns (message class, to_proto, from_proto) of a collection, or Nones."""
    from runnel.core.protobuf import message_class
    if key in _protos:
        return _protos[key]
    if is_of_variables(key):
        from runnel.ops.variables import Variable
        return (message_class("VariableDef"), lambda v, export_scope=None: v.to_proto(export_scope),
                Variable.from_proto)
    if key == GraphKeys.SAVERS:
        from runnel.train.saver import Saver
        return message_class("SaverDef"), Saver.to_proto, Saver.from_proto
    if key == GraphKeys.QUEUE_RUNNERS:
        from runnel.train.queue_runner import QueueRunner
        return message_class("QueueRunnerDef"), QueueRunner.to_proto, QueueRunner.from_proto
    if key in (GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT):
        from runnel.ops import control_flow
        name = "CondContext" if key == GraphKeys.COND_CONTEXT else "WhileContext"
        cls = getattr(control_flow, name)
        try:
            return message_class(name + "Def"), cls.to_proto, cls.from_proto
        except (AttributeError, KeyError):
            pass
    return None, None, None


# --- Out

def stripped_op_list_for_graph(graph_def):
    """Returns the definitions of the ops that a graph uses, an OpList."""
    from runnel.core.protobuf import message_class
    own = {f.signature.name for f in graph_def.library.function}
    used = {node.op for node in graph_def.node}
    for function in graph_def.library.function:
        used.update(node.op for node in function.node_def)
    out = message_class("OpList")()
    for op in sorted(used - own):
        definition = _core.op_def(op)
        if definition is not None:
            out.op.append(message_class("OpDef").FromString(definition))
    return out


def _is_included(item, export_scope, exclude):
    name = item if isinstance(item, str) else getattr(item, "name", None)
    if not isinstance(name, str):
        return True
    if exclude and (name in exclude or name.split(":")[0] in exclude):
        return False
    return name.startswith(_UNBOUND) or not export_scope or name.startswith(export_scope)


def add_collection_def(meta_graph_def, key, graph=None, export_scope=None, exclude_nodes=None,
                       override_contents=None):
    """Adds a collection to a MetaGraphDef. Values that cannot be written are left out with a warning."""
    graph = graph or framework.get_default_graph()
    if not isinstance(key, (str, bytes)):
        _log.warning("Only collections with string type keys will be serialized. This key has %s",
                     type(key))
        return
    values = override_contents or graph.get_collection(key)
    values = [v for v in values if _is_included(v, export_scope, exclude_nodes)]
    if not values:
        return
    try:
        _fill_collection(meta_graph_def.collection_def[key], key, values, export_scope)
    except (TypeError, ValueError, AttributeError) as error:
        _log.warning("The collection %s cannot be written: %s", key, error)
        if key in meta_graph_def.collection_def:
            del meta_graph_def.collection_def[key]


def _fill_collection(out, key, values, export_scope):
    _, to_proto, _ = _known(key)
    first = values[0]
    if to_proto:
        for value in values:
            proto = to_proto(value, export_scope=export_scope)
            if proto is not None:
                out.bytes_list.value.append(proto.SerializeToString())
    elif isinstance(first, (str, bytes)):
        out.bytes_list.value.extend(v.encode() if isinstance(v, str) else v for v in values)
    elif isinstance(first, int):
        out.int64_list.value.extend(values)
    elif isinstance(first, float):
        out.float_list.value.extend(values)
    elif hasattr(first, "type_url"):  # messages in google.protobuf.Any
        for value in values:
            out.any_list.value.add().CopyFrom(value)
    else:
        out.node_list.value.extend(framework.strip_name_scope(v.name, export_scope) for v in values)


def strip_defaults(meta_graph_def):
    """Removes the attributes that have their ops' defaults from the nodes of a MetaGraphDef."""
    from runnel.core.protobuf import message_class
    defaults = {}

    def strip(node):
        if node.op not in defaults:
            data = _core.op_def(node.op)
            rows = message_class("OpDef").FromString(data).attr if data is not None else ()
            defaults[node.op] = {attr.name: attr.default_value for attr in rows
                                 if attr.HasField("default_value")}
        for name in [n for n, v in node.attr.items() if defaults[node.op].get(n) == v]:
            del node.attr[name]

    for node in meta_graph_def.graph_def.node:
        strip(node)
    for function in meta_graph_def.graph_def.library.function:
        for node in function.node_def:
            strip(node)
    meta_graph_def.meta_info_def.stripped_default_attrs = True


def create_meta_graph_def(meta_info_def=None, graph_def=None, saver_def=None, collection_list=None,
                          graph=None, export_scope=None, exclude_nodes=None,
                          clear_extraneous_savers=False, strip_default_attrs=False):
    """Returns the MetaGraphDef of a graph."""
    from runnel.core.protobuf import message_class
    graph = graph or framework.get_default_graph()
    out = message_class("MetaGraphDef")()
    if meta_info_def is not None:
        out.meta_info_def.MergeFrom(meta_info_def)
    # The API's version: readers use it to know which fields exist.
    is_v2 = v2_switches.v2_behavior_enabled()
    out.meta_info_def.tensorflow_version = versions.__version__ if is_v2 else "1.15.5"
    out.meta_info_def.tensorflow_git_version = versions.__git_version__ if is_v2 else "runnel-" + _core.version
    out.graph_def.MergeFrom(graph_def if graph_def is not None else
                            graph.as_graph_def(add_shapes=True))
    if not out.meta_info_def.stripped_op_list.op:
        out.meta_info_def.stripped_op_list.MergeFrom(stripped_op_list_for_graph(out.graph_def))
    if strip_default_attrs:
        strip_defaults(out)
    if saver_def:
        out.saver_def.MergeFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    for key in keys:
        override = None
        if clear_extraneous_savers and key == GraphKeys.SAVERS and saver_def:
            from runnel.train.saver import Saver
            override = [Saver.from_proto(saver_def)]
        add_collection_def(out, key, graph, export_scope, exclude_nodes, override)
    return out


_SAVER_OPS = frozenset(("SaveV2", "Save", "SaveSlices", "RestoreV2", "Restore", "RestoreSlice"))


def _extraneous(graph_def, saver_def):
    """Returns the nodes of savers other than that of `saver_def`."""
    kept = set()
    if saver_def is not None:
        for name in (saver_def.save_tensor_name, saver_def.restore_op_name):
            kept.add(name.split(":")[0].rpartition("/")[0] + "/")
    scopes = {node.name.rpartition("/")[0] + "/" for node in graph_def.node if node.op in _SAVER_OPS}
    scopes -= kept
    return {node.name for node in graph_def.node if node.name.startswith(tuple(scopes))}


def _scoped_node(node, export_scope, unbound, clear_devices):
    """Returns a copy of a node with the scope removed from its names."""
    out = type(node).FromString(node.SerializeToString())
    for i, source in enumerate(out.input):
        if export_scope and not source.lstrip("^").startswith(export_scope):
            out.input[i] = re.sub(r"^(\^?)(.*)", r"\1" + re.escape(_UNBOUND).replace("\\$", "$") +
                                  r"\2", source)
            unbound.append(out.input[i])
        else:
            out.input[i] = framework.strip_name_scope(source, export_scope)
    out.name = framework.strip_name_scope(out.name, export_scope)
    if "_class" in out.attr:
        places = [place.decode() for place in node.attr["_class"].list.s]
        del out.attr["_class"].list.s[:]
        out.attr["_class"].list.SetInParent()
        for place in places:
            if not export_scope or place.split("@")[-1].startswith(export_scope):
                out.attr["_class"].list.s.append(
                    framework.strip_name_scope(place, export_scope).encode())
    if clear_devices:
        out.device = ""
    return out


def export_scoped_meta_graph(filename=None, graph_def=None, graph=None, export_scope=None,
                             as_text=False, unbound_inputs_col_name="unbound_inputs",
                             clear_devices=False, saver_def=None, clear_extraneous_savers=False,
                             strip_default_attrs=False, **kwargs):
    """Returns (MetaGraphDef, {name: variable}) of a graph or of one of its scopes."""
    from runnel.core.protobuf import message_class
    if _core.current() is None and graph is None:
        raise ValueError("Exporting/importing meta graphs is not supported when eager execution is "
                         "enabled.")
    graph = graph or framework.get_default_graph()
    exclude, unbound = None, []
    if export_scope or clear_extraneous_savers or clear_devices:
        source = graph_def if graph_def is not None else graph.as_graph_def(add_shapes=True)
        if clear_extraneous_savers:
            exclude = _extraneous(source, saver_def)
        out = message_class("GraphDef")()
        out.versions.MergeFrom(source.versions)
        out.library.MergeFrom(source.library)
        for node in source.node:
            if _is_included(node.name, export_scope, exclude):
                out.node.append(_scoped_node(node, export_scope, unbound, clear_devices))
        graph_def = out
    if unbound and unbound_inputs_col_name:
        for name in unbound:
            if name not in graph.get_collection(unbound_inputs_col_name):
                graph.add_to_collection(unbound_inputs_col_name, name)
    found = {}
    for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, export_scope):
        if _is_included(variable, export_scope, exclude):
            found[framework.strip_name_scope(variable.name, export_scope)] = variable
    result = create_meta_graph_def(
        graph_def=graph_def, graph=graph, export_scope=export_scope, exclude_nodes=exclude,
        clear_extraneous_savers=clear_extraneous_savers, saver_def=saver_def,
        strip_default_attrs=strip_default_attrs, **kwargs)
    if filename:
        _write(filename, result, as_text)
    return result, found


def _write(filename, message, as_text):
    folder = os.path.dirname(filename)
    if folder:
        any_files.makedirs(folder)
    temporary = "%s.%d.tmp" % (filename, os.getpid())
    try:
        with any_files.open(temporary, "wb") as stream:
            stream.write(str(message).encode() if as_text else message.SerializeToString())
        any_files.replace(temporary, filename)
    except OSError as error:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise OSError(error.errno, error.strerror, filename) from None


# --- In

def read_meta_graph_file(filename):
    """Reads a MetaGraphDef from a file."""
    from runnel.core.protobuf import DecodeError, message_class
    filename = os.fspath(filename)
    if not any_files.exists(filename):
        raise OSError("File does not exist. Received: %s." % filename)
    with any_files.open(filename, "rb") as stream:
        data = stream.read()
    out = message_class("MetaGraphDef")()
    try:
        out.ParseFromString(data)
        return out
    except DecodeError as error:
        from runnel.core.text_format import ParseError, Parse
        try:
            return Parse(data, message_class("MetaGraphDef")())
        except (ParseError, UnicodeDecodeError) as other:
            raise OSError("Cannot parse file %s: %s, %s." % (filename, error, other)) from None


def import_scoped_meta_graph(meta_graph_or_file, clear_devices=False, graph=None, import_scope=None,
                             input_map=None, unbound_inputs_col_name="unbound_inputs",
                             restore_collections_predicate=lambda key: True):
    """Adds a MetaGraphDef with its collections to a graph. Returns {name: variable}."""
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, graph, import_scope, input_map, unbound_inputs_col_name,
        restore_collections_predicate)[0]


def import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices=False, graph=None, import_scope=None, input_map=None,
        unbound_inputs_col_name="unbound_inputs", restore_collections_predicate=lambda key: True,
        return_elements=None):
    """Like import_scoped_meta_graph, and also returns the elements that `return_elements` names."""
    from runnel.core.graph_io import import_graph_def
    meta = meta_graph_or_file
    if not hasattr(meta, "graph_def"):
        meta = read_meta_graph_file(meta)
    _check_bound(meta, unbound_inputs_col_name, input_map)
    graph = graph or framework.get_default_graph()
    with graph.as_default():
        graph_def = meta.graph_def
        if clear_devices:
            for node in graph_def.node:
                node.device = ""
        scope = graph.unique_name(import_scope or "", mark_as_used=False)  # with the scope around, which ends with "/" then
        elements = import_graph_def(graph_def, name=import_scope or scope, input_map=input_map,
                                    return_elements=return_elements)
        _restore_collections(graph, meta, scope, unbound_inputs_col_name,
                             restore_collections_predicate)
        found = {}
        for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope or None):
            found[framework.strip_name_scope(variable.name, scope)] = variable
    return found, elements


def copy_scoped_meta_graph(from_scope, to_scope, from_graph=None, to_graph=None):
    """Copies what is in a scope to another scope, with its collections. Returns {name: variable} of the copies."""
    from_graph, to_graph = from_graph or framework.get_default_graph(), to_graph or framework.get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError("'from_scope' and 'to_scope' need to be different when performing copy in the same graph. Received: 'from_graph': %s, "
                         "'to_graph': %s, 'from_scope': %s, 'to_scope': %s." % (from_graph, to_graph, from_scope, to_scope))
    meta, _ = export_scoped_meta_graph(graph=from_graph, export_scope=from_scope)
    return import_scoped_meta_graph(meta, graph=to_graph, import_scope=to_scope)


def _check_bound(meta, key, input_map):
    if not key or key not in meta.collection_def:
        return
    collection = meta.collection_def[key]
    kind = collection.WhichOneof("kind")
    names = [v.decode() if isinstance(v, bytes) else v for v in getattr(collection, kind).value]
    if names and sorted(names) != sorted(input_map or ()):
        raise ValueError("Graph contains unbound inputs: %s. Must provide these inputs through "
                         "input_map." % ",".join(n for n in names if n not in (input_map or ())))


def _restore_collections(graph, meta, scope, unbound_key, predicate):
    version = re.match(r"(\d+)\.(\d+)", meta.meta_info_def.tensorflow_version or "")
    has_trainable = version is None or tuple(map(int, version.groups())) >= (1, 9)
    # TRAINABLE_VARIABLES first: in files from before 1.9, only this collection says which variables are trainable.
    keys = sorted(meta.collection_def, key=lambda k: (k != GraphKeys.TRAINABLE_VARIABLES, k))
    made = {}
    for key in keys:
        if key == unbound_key or not predicate(key):
            continue
        collection = meta.collection_def[key]
        kind = collection.WhichOneof("kind")
        if kind is None:
            _log.error("Cannot identify data type for collection %s. Skipping.", key)
            continue
        proto_type, _, from_proto = _known(key)
        for value in getattr(collection, kind).value:
            if from_proto and kind == "bytes_list":
                item = made.get(value) if is_of_variables(key) else None
                if item is None:
                    proto = proto_type.FromString(value)
                    if is_of_variables(key) and not has_trainable:
                        proto.trainable = key == GraphKeys.TRAINABLE_VARIABLES
                    item = from_proto(proto, import_scope=scope)
                    made[value] = item
                graph.add_to_collection(key, item)
            elif kind == "node_list":
                name = framework.prepend_name_scope(value, scope)
                graph.add_to_collection(key, graph.as_graph_element(name))
            else:
                graph.add_to_collection(key, value)
