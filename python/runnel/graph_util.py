"""tf.graph_util: subgraphs, and graphs with variables frozen to constants."""

from runnel.core.graph_io import import_graph_def  # noqa: F401
from runnel.core.protobuf import message_class


def _node_name(text):
    """Returns the node of an input: "^a" and "a:1" give "a"."""
    return text.lstrip("^").split(":")[0]


def extract_sub_graph(graph_def, dest_nodes):
    """Returns the part of a GraphDef that the given nodes need."""
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be an iterable of strings.")
    nodes = {node.name: node for node in graph_def.node}
    for name in dest_nodes:
        if name not in nodes:
            raise AssertionError("%s is not in graph" % name)
    keep, todo = set(), list(dest_nodes)
    while todo:
        name = todo.pop()
        if name not in keep:
            keep.add(name)
            todo += [_node_name(text) for text in nodes[name].input]
    out = message_class("GraphDef")()
    for node in graph_def.node:
        if node.name in keep:
            out.node.append(node)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def tensor_shape_from_node_def_name(graph, input_name):
    """Returns the shape of a tensor by its name."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else input_name + ":0").shape


def must_run_on_cpu(node, pin_variables_on_cpu=False):
    """Tells whether a node has strings, or is a variable that must stay on the CPU."""
    definition = node.node_def if hasattr(node, "node_def") else node
    if pin_variables_on_cpu and definition.op in ("Variable", "VariableV2", "VarHandleOp"):
        return True
    kind = definition.attr["dtype"].type if "dtype" in definition.attr else 0
    return definition.op == "Const" and kind == 7


_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def convert_variables_to_constants(sess, input_graph_def, output_node_names, variable_names_whitelist=None,
                                   variable_names_blacklist=None):
    """Returns a GraphDef in which variables are constants with their values in a session."""
    part = extract_sub_graph(input_graph_def, output_node_names)
    names = [node.name for node in part.node if node.op in _VARIABLES
             and (variable_names_whitelist is None or node.name in variable_names_whitelist)
             and node.name not in (variable_names_blacklist or ())]
    values = dict(zip(names, sess.run([_value_of(sess.graph, name) for name in names]))) if names else {}
    handles = {node.name for node in part.node if node.op == "VarHandleOp" and node.name in values}
    out = message_class("GraphDef")()
    for node in part.node:
        if node.name in values:
            _constant(out.node.add(), node, values[node.name])
        elif node.op == "ReadVariableOp" and _node_name(node.input[0]) in handles:
            copy = out.node.add(name=node.name, op="Identity", device=node.device)
            copy.input.append(node.input[0])
            copy.attr["T"].type = node.attr["dtype"].type
        elif node.op == "ResourceGather" and _node_name(node.input[0]) in handles:
            axis = out.node.add(name=node.name + "/axis", op="Const")
            _fill_constant(axis, 0, 3)
            copy = out.node.add(name=node.name, op="GatherV2", device=node.device)
            copy.input.extend([node.input[0], node.input[1], axis.name])
            copy.attr["Tparams"].type = node.attr["dtype"].type
            copy.attr["Tindices"].type = node.attr["Tindices"].type
            copy.attr["Taxis"].type = 3
        else:
            out.node.append(node)
    out.library.CopyFrom(part.library)
    out.versions.CopyFrom(part.versions)
    return out


def _value_of(graph, name):
    op = graph.get_operation_by_name(name)
    if op.type != "VarHandleOp":
        return op.outputs[0]
    from runnel import raw_ops
    for reader in op.outputs[0].consumers():
        if reader.type == "ReadVariableOp":
            return reader.outputs[0]
    with graph.as_default():
        return raw_ops.ReadVariableOp(op.outputs[0], op.get_attr("dtype"))


def _constant(target, node, value):
    target.name = node.name
    target.op = "Const"
    target.device = node.device
    _fill_constant(target, value, node.attr["dtype"].type)


def _fill_constant(target, value, dtype):
    from runnel.core.tensor_util import make_tensor_proto
    target.op = "Const"
    target.attr["dtype"].type = dtype
    target.attr["value"].tensor.CopyFrom(make_tensor_proto(value, dtype))


def remove_training_nodes(input_graph, protected_nodes=None):
    """Returns a GraphDef without checks of numbers, and without identities of which neither order nor place depends."""
    protected = set(protected_nodes or ())
    checks = {node.name: node.input[0] for node in input_graph.node if node.op == "CheckNumerics" and node.name not in protected}
    kept = {node.name: [text for text in node.input if not (text.startswith("^") and text[1:] in checks)]
            for node in input_graph.node if node.name not in checks}
    ordered = {text[1:] for inputs in kept.values() for text in inputs if text.startswith("^")}
    ordered.update(name for name, inputs in kept.items() if any(text.startswith("^") for text in inputs))
    placed = {name.decode().removeprefix("loc:@") for node in input_graph.node if "_class" in node.attr for name in node.attr["_class"].list.s}
    spliced = dict(checks)
    for node in input_graph.node:
        if node.op == "Identity" and node.name in kept and node.name not in protected | ordered | placed:
            spliced[node.name] = node.input[0]
    out = message_class("GraphDef")()
    for node in input_graph.node:
        if node.name in spliced:
            continue
        copy = out.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        for text in kept[node.name]:
            while not text.startswith("^") and _node_name(text) in spliced:
                text = spliced[_node_name(text)]
            copy.input.append(text)
    return out
