"""Operations from NodeDefs, as libraries and TensorFlow's own tests make them: tensorflow.python.framework.ops._create_c_op and _NodeDef."""

import re

from runnel.core.protobuf import message_class

_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


def _NodeDef(op_type, name, attrs=None):  # noqa: N802
    """Returns a NodeDef without inputs."""
    node_def = message_class("NodeDef")(op=op_type, name=name)
    for key, value in (attrs or {}).items():
        node_def.attr[key].CopyFrom(value)
    return node_def


def create_c_op(graph, node_def, inputs, control_inputs, op_def=None, extract_traceback=True):
    """Adds the operation of a NodeDef to a graph, with these inputs instead of the NodeDef's own. Returns it."""
    from runnel import nest
    with graph.as_default(), graph.control_dependencies(control_inputs):
        return graph.create_op(node_def.op, nest.flatten(inputs), name=node_def.name + "/", attrs=dict(node_def.attr.items()))


_create_c_op = create_c_op


def from_node_def(node_def, g, inputs=(), output_types=None, control_inputs=(), input_types=None, original_op=None, op_def=None):
    """Adds the operation of a NodeDef to the graph `g`. Returns it. Raises ValueError for a name that no operation may have."""
    from runnel.graph.graph import Graph
    if not isinstance(node_def, message_class("NodeDef")):
        raise TypeError("Argument node_def must be a NodeDef. Received an instance of type: %s." % type(node_def))
    if not isinstance(g, Graph):
        raise TypeError("Argument g must be a Graph. Received an instance of type %s" % type(g))
    if not _NAME.match(node_def.name):
        raise ValueError("`%s` is not a valid node name. Accepted names conform to Regex /%s/" % (node_def.name, _NAME.pattern))
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Argument inputs shall be a list of Tensors. Received an instance of type %s" % type(inputs))
    with g.as_default(), g.device(None), g.control_dependencies(None):
        return create_c_op(g, node_def, list(inputs), list(control_inputs or ()))


def get_gradient_function(op):
    """Returns the Python function that computes the gradients of an operation, or None. Raises LookupError if it has none."""
    from runnel.core import gradients_impl
    if not op.inputs:
        return None
    try:
        name = op.get_attr("_gradient_op_type")
    except ValueError:
        name = op.type
    name = name.decode() if isinstance(name, bytes) else name
    if name not in gradients_impl.registered:
        raise LookupError("gradient registry has no entry for: %s" % name)
    return gradients_impl.registered[name]
