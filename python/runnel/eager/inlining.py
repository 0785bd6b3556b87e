"""Calls in GraphDefs replaced by the bodies of the functions that they call."""

from runnel.core.protobuf import message_class
from runnel.eager.function_bodies import body

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def inline_calls(graph_def):
    """Returns a GraphDef without calls of functions in its nodes. Conditionals and loops of functions stay."""
    library = {function.signature.name: function for function in graph_def.library.function}
    while any(_called(node, library) for node in graph_def.node):
        graph_def = _once(graph_def, library)
    return graph_def


def _called(node, library):
    name = node.attr["f"].func.name if node.op in _CALLS else node.op
    return library.get(name)


def _once(graph_def, library):
    out = message_class("GraphDef")()
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    results = {}  # "call:2" -> what computes it in the body
    signatures = {name: function.signature for name, function in library.items()}
    for node in graph_def.node:
        function = _called(node, library)
        if function is None:
            out.node.append(node)
        else:
            _append_body(out, node, function, results, signatures)
    for node in out.node:
        for i, text in enumerate(list(node.input)):
            node.input[i] = _result(text, results)
    return out


def _result(text, results):
    """Returns an input of a node with the results of calls in the place of the calls."""
    key = text if text.startswith("^") or ":" in text else text + ":0"
    if key not in results:
        return text
    while key in results:
        key = results[key]
    return key


def _append_body(out, call, function, results, signatures):
    prefix = call.name + "/"
    data = [text for text in call.input if not text.startswith("^")]
    control = [text for text in call.input if text.startswith("^")]
    graph, tensor = body(function, signatures)
    given = {arg.name + ":0": data[i] for i, arg in enumerate(function.signature.input_arg)}

    def inside(text):
        if text.startswith("^"):
            source = given.get(text[1:] + ":0")
            return "^" + prefix + text[1:] if source is None else "^" + source.split(":")[0]
        return given[text] if text in given else prefix + text
    for node in graph.node:
        copy = out.node.add()
        copy.CopyFrom(node)
        copy.name = prefix + node.name
        del copy.input[:]
        copy.input.extend([inside(text) for text in node.input] + control)
        for key, attr in copy.attr.items():
            if attr.placeholder:
                copy.attr[key].CopyFrom(call.attr[attr.placeholder])
    for i, arg in enumerate(function.signature.output_arg):
        source = inside(tensor(function.ret[arg.name]))
        results["%s:%d" % (call.name, i)] = source if ":" in source else source + ":0"
    ends = out.node.add(name=prefix + "done", op="NoOp")
    ends.input.extend("^" + prefix + name for name in function.control_ret.values())
    results["^" + call.name] = "^" + ends.name
