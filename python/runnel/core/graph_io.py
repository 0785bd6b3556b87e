"""Import of GraphDefs, and the messages that are names of tf."""

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


def import_graph_def(graph_def, input_map=None, return_elements=None, name=None, op_dict=None,
                     producer_op_list=None):
    """Adds the nodes of a GraphDef to the default graph, under the scope `name` ("import").

    Args:
      graph_def: a GraphDef, or its bytes.
      input_map: {name in the GraphDef: tensor of the graph that replaces it}.
      return_elements: names of tensors ("a:0") and operations ("a") to return.
      name: the prefix of the new names; "" for none.
      op_dict: not used.
      producer_op_list: not used.
    """
    graph = framework.get_default_graph()
    data = graph_def if isinstance(graph_def, bytes) else graph_def.SerializeToString()
    mapped = []
    with framework.name_scope(name, "import", list((input_map or {}).values())) as scope:
        prefix = scope[:-1] if scope else ""
        for key, value in (input_map or {}).items():
            is_control = key.startswith("^")
            node, _, index = key.lstrip("^").partition(":")
            if is_control:
                mapped.append((node, -1, framework._to_operation(value)))
            else:
                from runnel.core.convert import convert_to_tensor
                with framework.name_scope("_inputs"):
                    tensor = convert_to_tensor(value)
                mapped.append((node, int(index or 0), tensor))
    tensors, operations = [], []
    for element in return_elements or ():
        if ":" in element:
            node, _, index = element.rpartition(":")
            tensors.append((node, int(index)))
        else:
            operations.append(element)
    graph._check_not_finalized()
    controls = graph._current_control_dependencies()
    found_tensors, found_operations, unused = _core.import_graph_def(
        graph, data, prefix, mapped, tensors, operations, controls)
    if unused:
        names = ["%s:%d" % row if row[1] >= 0 else "^%s" % row[0] for row in unused]
        raise ValueError("Attempted to map inputs that were not found in graph_def: [%s]" % ", ".join(names))
    if return_elements is None:
        return None
    tensor_at, operation_at = iter(found_tensors), iter(found_operations)
    return [next(tensor_at) if ":" in element else next(operation_at) for element in return_elements]
