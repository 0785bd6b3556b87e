"""Graphs of functions that are there as FunctionDefs only, such as those of loaded models."""

from runnel import _core, dtypes, raw_ops
from runnel.core import op_def_registry
from runnel.core.graph_io import import_graph_def
from runnel.core.protobuf import message_class
from runnel.core.tensor_shape import TensorShape
from runnel.eager.func_graph import FuncGraph, describe_handle


def _count(arg, attr):
    """Returns how many tensors an argument of an op definition has in a node with these attributes."""
    if arg.number_attr:
        return attr[arg.number_attr].i
    if arg.type_list_attr:
        return len(attr[arg.type_list_attr].list.type)
    return 1


def _first_outputs(node, signatures):
    """Returns {name of an output in the op definition: the number of its first tensor} of a node."""
    definition = signatures.get(node.op) or op_def_registry.get(node.op)
    first, at = {}, 0
    for arg in definition.output_arg if definition is not None else ():
        first[arg.name] = at
        at += _count(arg, node.attr)
    return first


def body(definition, signatures):
    """Returns (GraphDef of a FunctionDef's nodes, function from names of tensors in the FunctionDef to their names in the graph).

    `signatures` are {name: OpDef} of the functions that the body may call.
    """
    graph = message_class("GraphDef")()
    names = {arg.name: arg.name + ":0" for arg in definition.signature.input_arg}
    for node in definition.node_def:
        for output, at in _first_outputs(node, signatures).items():
            names[node.name + ":" + output] = (node.name, at)

    def tensor(name):
        if name in names:
            return names[name] if isinstance(names[name], str) else "%s:%d" % names[name]
        stem, _, number = name.rpartition(":")
        own, at = names[stem]
        return "%s:%d" % (own, at + int(number))
    for node in definition.node_def:
        made = graph.node.add()
        made.CopyFrom(node)
        del made.input[:]
        made.input.extend(x if x.startswith("^") else tensor(x) for x in node.input)
    return graph, tensor


def _argument(definition, number, shape):
    """Returns a Placeholder for an argument of a FunctionDef."""
    arg = definition.signature.input_arg[number]
    given = definition.arg_attr[number].attr if number in definition.arg_attr else {}
    if shape is None and "_output_shapes" in given and given["_output_shapes"].list.shape:
        shape = TensorShape(given["_output_shapes"].list.shape[0])
    made = raw_ops.Placeholder(dtype=dtypes.as_dtype(arg.type), shape=TensorShape(None) if shape is None else shape, name=arg.name)
    if "_user_specified_name" in given:
        made.op._set_attr("_user_specified_name", given["_user_specified_name"])
    return made


def function_def_to_graph(definition, library, name=None, captured=(), shapes=()):
    """Returns the FuncGraph of a FunctionDef.

    Args:
      definition: the FunctionDef.
      library: {name: serialized FunctionDef} of the functions that it may call.
      name: the graph's name.
      captured: the tensors for which the last arguments stand.
      shapes: those of the first arguments, if they are known.
    """
    signatures = {key: message_class("FunctionDef").FromString(data).signature for key, data in library.items()}
    nodes, tensor = body(definition, signatures)
    graph = FuncGraph(name or definition.signature.name, collections={})
    for data in library.values():
        _core.add_function_def(graph, data)
    count = len(definition.signature.input_arg) - len(captured)
    shapes = [*shapes, *[None] * (count - len(shapes)), *(x.shape for x in captured)]
    with graph.as_default():
        inputs = [_argument(definition, i, shape) for i, shape in enumerate(shapes)]
        for standing, outside in zip(inputs[count:], captured):
            if outside.dtype == dtypes.resource:
                describe_handle(standing, outside)
        read = {x for node in nodes.node for x in node.input}
        input_map = {x.name: x for x in inputs if x.name in read}
        input_map.update({"^" + x.op.name: x.op for x in inputs if "^" + x.op.name in read})
        import_graph_def(nodes, name="", input_map=input_map)
    graph.arguments, graph.standing, graph.captured = inputs[:count], inputs[count:], list(captured)
    graph.inputs = inputs
    graph.outputs = [graph.get_tensor_by_name(tensor(definition.ret[arg.name])) for arg in definition.signature.output_arg]
    graph.control_outputs = [graph.get_operation_by_name(definition.control_ret[key]) for key in definition.signature.control_output]
    return graph
