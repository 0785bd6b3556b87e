"""Names of functions and of shared resources, made unique for each load of a model."""

from runnel.core import op_def_registry
from runnel.core.protobuf import message_class


def rename_calls(nodes, names, new_name):
    """Gives the functions in `names` their new names in the nodes that call them."""
    for node in nodes:
        if node.op in names:
            node.op = new_name(node.op)
        for key in node.attr:
            value = node.attr[key]
            for called in [value.func] if value.WhichOneof("value") == "func" else list(value.list.func):
                if called.name in names:
                    called.name = new_name(called.name)
        if "_gradient_op_type" in node.attr:
            del node.attr["_gradient_op_type"]


def _rename_resources(nodes, suffix):
    """Gives resources names that no other load has. A resource without a name is known by that of its node."""
    for node in nodes:
        definition = op_def_registry.get(node.op)
        if definition is not None and any(attr.name == "shared_name" for attr in definition.attr):
            own = node.attr["shared_name"].s or node.name.encode()
            node.attr["shared_name"].s = own + suffix.encode()


def renamed(meta, suffix):
    """Returns a copy of a MetaGraphDef in which functions and resources have names of their own."""
    made = message_class("MetaGraphDef")()
    made.CopyFrom(meta)
    library = made.graph_def.library
    names = {function.signature.name for function in library.function}

    def new_name(name):
        return name + suffix
    for function in library.function:
        function.signature.name = new_name(function.signature.name)
        rename_calls(function.node_def, names, new_name)
        _rename_resources(function.node_def, suffix)
    for gradient in library.gradient:
        gradient.function_name, gradient.gradient_func = new_name(gradient.function_name), new_name(gradient.gradient_func)
    rename_calls(made.graph_def.node, names, new_name)
    _rename_resources(made.graph_def.node, suffix)
    return made
