"""Import of GraphDefs, and the messages that are names of tf."""

import contextlib

from runnel import _core
from runnel.core import framework
from runnel.core.protobuf import message_class
from runnel.core.tensor_util import MakeNdarray, make_ndarray, make_tensor_proto  # noqa: F401

_MESSAGES = ("GraphDef", "ConfigProto", "RunOptions", "RunMetadata", "GPUOptions", "GraphOptions",
             "OptimizerOptions", "NodeDef", "AttrValue", "MetaGraphDef", "NameAttrList", "TensorInfo", "Event", "Summary",
             "SummaryMetadata", "HistogramProto", "LogMessage", "SessionLog")


def __getattr__(name):
    if name in _MESSAGES:
        value = globals()[name] = message_class(name)
        return value
    raise AttributeError(name)


def _mapped(value, scope):
    """Returns a value of `input_map` as a tensor."""
    if isinstance(value, framework.Tensor):
        return value
    if not scope:
        raise ValueError("tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values. Try calling "
                         "tf.convert_to_tensor() on `input_map` values before calling tf.import_graph_def().")
    from runnel.core.convert import convert_to_tensor
    with framework.name_scope("_inputs"):
        return convert_to_tensor(value)


def _checked(graph_def, input_map, return_elements):
    """Returns the arguments of import_graph_def as bytes, {str: value} and a list of str or None. Raises TypeError if they are others."""
    if isinstance(graph_def, bytes):
        data = graph_def
    elif hasattr(graph_def, "SerializeToString"):
        data = graph_def.SerializeToString()
    else:
        raise TypeError("Argument `graph_def` must be a GraphDef proto.")
    if input_map is None:
        input_map = {}
    elif not isinstance(input_map, dict):
        raise TypeError("Argument `input_map` must be a dictionary. Obtained %s" % type(input_map).__name__)
    elif not all(isinstance(key, (str, bytes)) for key in input_map):
        raise TypeError("All keys for argument `input_map` must be strings. Obtained keys: %s" % list(input_map))
    if return_elements is not None:
        return_elements = list(return_elements)
        if not all(isinstance(element, (str, bytes)) for element in return_elements):
            raise TypeError("Argument `return_elements` must be a list of strings. Obtained %s." % return_elements)
        return_elements = [_text(element) for element in return_elements]
    return data, {_text(key): value for key, value in input_map.items()}, return_elements


def _text(name):
    return name.decode() if isinstance(name, bytes) else name


def _parsed(name):
    """Returns (node, output) of "node:output"."""
    parts = name.split(":")
    if len(parts) > 2:
        raise ValueError("Cannot convert '%s' to a tensor name. Tensor names should not contain more than 1 `:`. Obtained %d" % (
            name, len(parts) - 1))
    if not parts[1].isdigit():
        raise ValueError("Cannot convert '%s' to a tensor name. Second component of the name following the `:` should be an int. Got %s." % (
            name, parts[1]))
    return parts[0], int(parts[1])


def _without_producer_defaults(data, producer_op_list):
    """Returns a GraphDef without the attributes that this version does not know and that have the producer's default values."""
    graph_def = message_class("GraphDef").FromString(data)
    producer = {op.name: op for op in producer_op_list.op}
    for node in graph_def.node:
        known = _core.op_def(node.op)
        if known is None or node.op not in producer:
            continue
        names = {attr.name for attr in message_class("OpDef").FromString(known).attr}
        defaults = {attr.name: attr.default_value for attr in producer[node.op].attr}
        for name in [name for name in node.attr if name not in names and name in defaults]:
            if node.attr[name].SerializeToString() == defaults[name].SerializeToString():
                del node.attr[name]
    return graph_def.SerializeToString()


def import_graph_def(graph_def, input_map=None, return_elements=None, name=None, op_dict=None,
                     producer_op_list=None):
    """Adds the nodes of a GraphDef to the default graph, under the scope `name` ("import").

    Args:
      graph_def: a GraphDef, or its bytes.
      input_map: {name in the GraphDef: tensor of the graph that replaces it}.
      return_elements: names of tensors ("a:0") and operations ("a") to return.
      name: the prefix of the new names; "" for none.
      op_dict: not used.
      producer_op_list: an OpList with the ops of the program that wrote the GraphDef: attributes with defaults that only it knows
        are left out.
    """
    graph = framework.get_default_graph()
    data, input_map, return_elements = _checked(graph_def, input_map, return_elements)
    if producer_op_list is not None:
        data = _without_producer_defaults(data, producer_op_list)
    mapped = []
    with framework.name_scope(name, "import", [value for value in input_map.values() if not isinstance(value, framework.Operation)]) as scope:
        prefix = scope[:-1] if scope else ""
        for key, value in input_map.items():
            is_control = key.startswith("^")
            node, _, index = key.lstrip("^").partition(":")
            if is_control:
                mapped.append((node, -1, framework._to_operation(value)))
            else:
                mapped.append((node, int(index or 0), _mapped(value, scope)))
    tensors = [_parsed(element) for element in return_elements or () if ":" in element]
    operations = [element for element in return_elements or () if ":" not in element]
    graph._check_not_finalized()
    controls = graph._current_control_dependencies()
    count = graph._last_id
    found_tensors, found_operations, unused = _core.import_graph_def(
        graph, data, prefix, mapped, tensors, operations, controls)
    if graph._device_stack or b"_class" in data:
        _place(graph.get_operations()[count:])
    if unused:
        names = ["%s:%d" % row if row[1] >= 0 else "^%s" % row[0] for row in unused]
        raise ValueError("Attempted to map inputs that were not found in graph_def: [%s]" % ", ".join(names))
    if return_elements is None:
        return None
    tensor_at, operation_at = iter(found_tensors), iter(found_operations)
    return [next(tensor_at) if ":" in element else next(operation_at) for element in return_elements]


def _place(ops):
    """Gives imported operations the devices of the current scopes; those that are colocated with others get the device of those."""
    colocated = []
    for op in ops:
        others = [name for name in (group[len(b"loc:@"):].decode() for group in op.colocation_groups()) if name != op.name]
        if others:
            colocated.append((op, others))
            op._set_device_string("")
        elif op.graph._device_stack:
            own = op.device
            op._set_device_string("")
            with op.graph.device(own) if own else contextlib.nullcontext():
                op.graph._apply_device_functions(op)
    for op, others in colocated:
        found = (op.graph._find(name) for name in others)
        op._set_device_string(next((other.device for other in found if other is not None and other.device), ""))
