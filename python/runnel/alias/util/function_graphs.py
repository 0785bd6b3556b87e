"""tensorflow.python.framework: FunctionDefs as graphs (function_def_to_graph) and graphs as FunctionDefs (graph_to_function_def).

Converters to other formats use them to look into the functions of a model.
"""

from runnel import _core
from runnel.core import framework
from runnel.core.protobuf import message_class
from runnel.core.tensor_shape import as_shape
from runnel.eager import function_bodies


def _library():
    """Returns {name: serialized FunctionDef} of the functions that are known here."""
    from runnel.eager import tracing
    return {**tracing.eager_functions(), **_core.functions_of(framework.get_default_graph())}


def _called(fdef, library):
    """Returns the part of a library that a function may call, directly or not."""
    found: dict = {}
    left = [fdef]
    while left:
        for node in left.pop().node_def:
            attrs = [attr.func.name for attr in node.attr.values()] + [f.name for attr in node.attr.values() for f in attr.list.func]
            for name in (node.op, *attrs):
                if name in library and name not in found:
                    found[name] = library[name]
                    left.append(message_class("FunctionDef").FromString(library[name]))
    return found


def _shapes(fdef, input_shapes):
    count = len(fdef.signature.input_arg)
    if input_shapes is None:
        return [None] * count
    if len(input_shapes) != count:
        raise ValueError("Length of `input_shapes` must match the number of `input_arg`s in `fdef`. Got %d `input_shapes` and %d `input_arg`s." % (
            len(input_shapes), count))
    return [None if shape is None else as_shape(shape) for shape in input_shapes]


def function_def_to_graph(fdef, structured_input_signature=None, structured_outputs=None, input_shapes=None, propagate_device_spec=False,
                          include_library_functions=False):
    """Returns the FuncGraph of a FunctionDef; its functions are found in the default graph and in the eager context."""
    graph = function_bodies.function_def_to_graph(fdef, _called(fdef, _library()), shapes=_shapes(fdef, input_shapes))
    graph.structured_input_signature, graph.structured_outputs = structured_input_signature, structured_outputs
    return graph


def function_def_to_graph_def(fdef, input_shapes=None, include_library_functions=False):
    """Returns (GraphDef of a FunctionDef, {name of a tensor in the FunctionDef: its name in the GraphDef})."""
    library = _called(fdef, _library())
    signatures = {name: message_class("FunctionDef").FromString(data).signature for name, data in library.items()}
    nodes, tensor = function_bodies.body(fdef, signatures)
    graph_def, names = message_class("GraphDef")(), {}
    graph_def.versions.producer = framework.Graph().graph_def_versions.producer
    for number, (arg, shape) in enumerate(zip(fdef.signature.input_arg, _shapes(fdef, input_shapes))):
        node = graph_def.node.add(name=arg.name, op="Placeholder")
        given = fdef.arg_attr[number].attr if number in fdef.arg_attr else {}
        for key in given:
            if key != "_output_shapes":
                node.attr[key].CopyFrom(given[key])
        node.attr["dtype"].type = arg.type
        if shape is not None:
            node.attr["shape"].shape.CopyFrom(shape.as_proto())
        elif "_output_shapes" in given and given["_output_shapes"].list.shape:
            node.attr["shape"].shape.CopyFrom(given["_output_shapes"].list.shape[0])
        else:
            node.attr["shape"].shape.unknown_rank = True
        names[arg.name], names["^" + arg.name] = arg.name + ":0", "^" + arg.name
    for node in nodes.node:
        graph_def.node.append(node)
    for node in fdef.node_def:
        names["^" + node.name] = "^" + node.name
        for output in function_bodies._first_outputs(node, signatures):
            for at in range(_length(node, output, signatures)):
                name = "%s:%s:%d" % (node.name, output, at)
                names[name] = tensor(name)
    if include_library_functions:
        for data in library.values():
            graph_def.library.function.append(message_class("FunctionDef").FromString(data))
    return graph_def, names


def _length(node, output, signatures):
    """Returns how many tensors an output of a node in a FunctionDef has."""
    from runnel.core import op_def_registry
    definition = signatures.get(node.op) or op_def_registry.get(node.op)
    return next(function_bodies._count(arg, node.attr) for arg in definition.output_arg if arg.name == output)


def graph_to_function_def(graph, operations, inputs, outputs, out_names=None):
    """Returns the FunctionDef of the part of a graph between inputs and outputs. Its name is "_".

    `operations` are those between them, which the library finds by itself.
    """
    if out_names and len(out_names) != len(outputs):
        raise ValueError("If `out_names` is provided, it must be the same length as `outputs`. Received %d and %d." % (len(out_names), len(outputs)))
    scratch = framework.Graph()
    for data in _core.functions_of(graph).values():
        _core.add_function_def(scratch, data)
    name = _core.define_function(scratch, "body", graph, list(inputs), list(outputs), list(out_names) if out_names else None)
    definition = message_class("FunctionDef").FromString(_core.functions_of(scratch)[name])
    definition.signature.name = "_"
    return definition
