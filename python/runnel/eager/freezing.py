"""tensorflow.python.framework.convert_to_constants: functions whose variables are constants with the values that they have now."""

from runnel.core import framework
from runnel.eager.inlining import inline_calls
from runnel.core.protobuf import message_class
from runnel.core.tensor_util import make_tensor_proto
from runnel.graph_util import convert_variables_to_constants

VAR_ASSIGN_COLLECTION = "extra_var_assign_ops"
_FORWARDING = {"Identity": "T", "Switch": "T", "RefSwitch": "T", "Enter": "T", "Exit": "T", "NextIteration": "T", "Merge": "T"}
_INT32 = 3


def convert_variables_to_constants_v2(func, lower_control_flow=True, aggressive_inlining=False):
    """Returns a ConcreteFunction like `func` without variables: they are constants with their present values.

    It returns the flat list of the outputs. Calls of functions are inlined, and conditionals and loops are nodes of the graph. Raises
    ValueError for operations on variables that have no counterpart on constants, such as assignments.

    Args:
      func: a ConcreteFunction.
      lower_control_flow: no effect.
      aggressive_inlining: no effect: everything is inlined.
    """
    graph_def = inline_calls(func.graph.as_graph_def())
    return _converted(func, graph_def, [tensor.numpy() for tensor in _values(func, graph_def)])


def convert_var_to_const_function_in_v1(func, lower_control_flow=True, aggressive_inlining=False):
    """Like convert_variables_to_constants_v2, in the default session. It initializes the variables, and runs VAR_ASSIGN_COLLECTION."""
    from runnel.core import session as sessions
    from runnel.ops import variables
    session = sessions.get_default_session()
    if framework.executing_eagerly() or session is None:
        raise RuntimeError("The conversion must be carried out in a Session context.")
    graph_def = inline_calls(func.graph.as_graph_def())
    session.run(variables.global_variables_initializer())
    session.run(framework.get_default_graph().get_collection(VAR_ASSIGN_COLLECTION))
    return _converted(func, graph_def, session.run(_values(func, graph_def)))


def convert_variables_to_constants_from_session_graph(session, graph_def, output_node_names, variable_names_allowlist=None,
                                                      variable_names_denylist=None):
    """Returns a GraphDef in which variables are constants with their values in a session. `allowlist` and `denylist` name variables."""
    return convert_variables_to_constants(session, graph_def, output_node_names, variable_names_allowlist, variable_names_denylist)


def _captures(func):
    """Returns [(placeholder, captured tensor)]."""
    captured = list(func.captured_inputs)
    return list(zip(func.inputs[len(func.inputs) - len(captured):], captured)) if captured else []


def _values(func, graph_def):
    """Returns the values of what is captured, as tensors: those of variables for their handles."""
    from runnel import raw_ops
    found = []
    for placeholder, captured in _captures(func):
        if placeholder.dtype.name == "resource":
            dtype = _type_of_variable(graph_def, placeholder.op.name)
            if dtype is None:
                raise ValueError("The captured resource %s is no variable that is read." % placeholder.name)
            captured = raw_ops.ReadVariableOp(captured, dtype)
        found.append(captured)
    return found


def _type_of_variable(graph_def, name):
    handles = {name + ":0"}
    _spread(graph_def, handles, {name + ":0": None})
    for node in graph_def.node:
        if node.op not in _FORWARDING and node.attr["dtype"].type and any(key in handles for key in map(_key, node.input)):
            return node.attr["dtype"].type
    return None


def _converted(func, graph_def, values):
    from runnel.eager import wrap_function
    rows = _captures(func)
    named = {placeholder.op.name: value for (placeholder, _), value in zip(rows, values)}
    graph_def = _without_variables(graph_def, named)
    inputs = func.inputs[:len(func.inputs) - len(rows)]
    return wrap_function.function_from_graph_def(graph_def, [tensor.name for tensor in inputs], [tensor.name for tensor in func.outputs])


def _without_variables(graph_def, values):
    """Returns a GraphDef in which the placeholders `values` names are constants, and what reads them reads constants."""
    types = {name: make_tensor_proto(value) for name, value in values.items()}
    held = {name + ":0": types[name].dtype for name in values}  # tensors that stand for what was a handle, and their types
    resources = {node.name for node in graph_def.node if node.name in values and node.attr["dtype"].type == 20}
    _spread(graph_def, {name + ":0" for name in resources}, held)
    out = message_class("GraphDef")()
    out.versions.CopyFrom(graph_def.versions)
    out.library.CopyFrom(graph_def.library)
    for node in graph_def.node:
        if node.name in values:
            made = out.node.add(name=node.name, op="Const", device=node.device)
            made.attr["dtype"].type = types[node.name].dtype
            made.attr["value"].tensor.CopyFrom(types[node.name])
            continue
        handles = [held[key] for key in map(_key, node.input) if key in held]
        _append(out, node, handles[0] if handles else None)
    return out


def _key(text):
    return text if ":" in text or text.startswith("^") else text + ":0"


def _spread(graph_def, handles, held):
    """Finds the tensors that forward handles, in loops too."""
    changed = True
    while changed:
        changed = False
        for node in graph_def.node:
            if node.op not in _FORWARDING:
                continue
            source = next((key for key in map(_key, node.input) if key in handles), None)
            for i in range(2 if source is not None and node.op in ("Switch", "RefSwitch") else int(source is not None)):
                key = "%s:%d" % (node.name, i)
                if key not in handles:
                    handles.add(key)
                    held[key] = held[source]
                    changed = True
    for key in [key for key in held if key not in handles]:
        del held[key]


def _append(out, node, dtype):
    """Adds a node; `dtype` is the type of the variable whose handle was its input, or None."""
    copy = out.node.add()
    copy.CopyFrom(node)
    if "_class" in copy.attr:  # it may name a variable
        del copy.attr["_class"]
    if dtype is None:
        return
    if node.op in _FORWARDING:
        copy.attr["T"].type = dtype
        return
    for key in list(copy.attr):
        if not key.startswith("_"):
            del copy.attr[key]
    if node.op == "ReadVariableOp":
        copy.op = "Identity"
        copy.attr["T"].type = dtype
    elif node.op == "ResourceGather":
        if node.attr["batch_dims"].i:
            raise ValueError("Cannot convert %s: ResourceGather with batch_dims." % node.name)
        axis = out.node.add(name=node.name + "/axis", op="Const")
        axis.attr["dtype"].type = _INT32
        axis.attr["value"].tensor.CopyFrom(make_tensor_proto(0, _INT32))
        copy.op = "GatherV2"
        copy.input.insert(2, axis.name)
        copy.attr["Tparams"].type, copy.attr["Taxis"].type = dtype, _INT32
        copy.attr["Tindices"].type = node.attr["Tindices"].type
    elif node.op == "ResourceGatherNd":
        copy.op = "GatherNd"
        copy.attr["Tparams"].type, copy.attr["Tindices"].type = dtype, node.attr["Tindices"].type
    elif node.op == "VariableShape":
        copy.op = "Shape"
        copy.attr["T"].type, copy.attr["out_type"].type = dtype, node.attr["out_type"].type or _INT32
    else:
        raise ValueError("Cannot convert the variable that %s (%s) uses to a constant." % (node.name, node.op))
