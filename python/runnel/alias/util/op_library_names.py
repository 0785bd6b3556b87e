"""tensorflow.python.framework.op_def_library: operations of a graph by the name of their op."""

from runnel.graph import op_checks
from runnel.core.framework import Operation, _get_graph_from_inputs


def apply_op(op_type_name, name=None, **keywords):
    """Adds an operation to the graph of its inputs, or to the default graph. Returns its outputs, or itself if it has none.

    Raises RuntimeError for an op that does not exist, and TypeError or ValueError for arguments that it does not take.
    """
    from runnel import raw_ops
    function = getattr(raw_ops, op_type_name, None)
    if function is None:
        raise RuntimeError("Unrecognized Op name %s" % op_type_name)
    definition = raw_ops._op_def(function)
    given = _by_own_names(definition, keywords)
    flat = []
    for arg in definition.input_arg:
        value = given[arg.name]
        flat.extend(value if isinstance(value, (list, tuple)) else [value])
    with _get_graph_from_inputs(flat).as_default():
        op_checks.check_attrs(definition, given)
        op_checks.check_inputs(definition, given)
        result = function(**given, name=name)
    if definition.output_arg and isinstance(result, Operation):  # all its outputs are empty lists
        return [] if len(definition.output_arg) == 1 else [[] for _ in definition.output_arg]
    return result


def _by_own_names(definition, keywords):
    """Returns the arguments by their names in the definition: "input_" is "input"."""
    inputs, attrs = {arg.name for arg in definition.input_arg}, {attr.name for attr in definition.attr}
    inferred = {getattr(arg, kind) for arg in definition.input_arg for kind in ("type_attr", "number_attr", "type_list_attr")}
    given = {}
    for key, value in keywords.items():
        own = key[:-1] if key.endswith("_") and key[:-1] in inputs | attrs else key
        if own in inferred - {""}:
            raise TypeError("Should not specify value for inferred attr '%s' for %s." % (own, definition.name))
        given[own] = value
    for arg in definition.input_arg:
        if arg.name not in given:
            raise TypeError("No argument for input %s found in %s" % (arg.name, definition))
    extra = sorted(given.keys() - inputs - attrs)
    if extra:
        raise TypeError("%s got unexpected keyword arguments: %s." % (definition.name, ", ".join(extra)))
    for attr in definition.attr:
        if attr.name not in given and attr.name not in inferred and not attr.HasField("default_value"):
            raise TypeError("No argument found for attr %s for %s" % (attr.name, definition.name))
    return given
