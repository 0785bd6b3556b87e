"""tensorflow.python.grappler.tf_optimizer: Grappler as a function, which tools call to simplify a graph before they read it."""

from runnel import dtypes, graph_util
from runnel.core.convert import evaluated_value
from runnel.core.protobuf import message_class
from runnel.core.tensor_util import make_tensor_proto

_MOST_BYTES = 10 * 1024 * 1024  # of a constant that is computed, as in stock
_NEVER = frozenset("Const Placeholder PlaceholderWithDefault PlaceholderV2 PreventGradient".split())
_QUANTIZATION = ("FakeQuant", "QuantizeAndDequantize")


def OptimizeGraph(config_proto, metagraph, verbose=True, graph_id=b"graph_to_optimize", cluster=None, strip_default_attributes=False):  # noqa: N802
    """Returns the GraphDef of a MetaGraphDef with functions inlined, constants computed, and without what the fetches do not need.

    The nodes of the collection "train_op" are the fetches. `rewrite_options.optimizers` of a ConfigProto names what is done: "function"
    inlines, "constfold" computes, and each but "function" leaves nodes out; an empty list is everything.
    """
    if not isinstance(config_proto, message_class("ConfigProto")):
        raise TypeError("Argument `config_proto` should be a tf.ConfigProto, received type: %s" % type(config_proto).__name__)
    options = config_proto.graph_options.rewrite_options
    wanted = list(options.optimizers) or ["function", "constfold"]
    fetches = [name.split(":")[0] for name in metagraph.collection_def["train_op"].node_list.value]
    graph_def = metagraph.graph_def
    if "function" in wanted:
        from runnel.eager.inlining import inline_calls
        graph_def = inline_calls(graph_def)
    if fetches and wanted != ["function"]:
        graph_def = graph_util.extract_sub_graph(graph_def, fetches)
    if "constfold" in wanted:
        skipped = _QUANTIZATION if options.experimental_disable_folding_quantization_emulation else ()
        graph_def = _folded(graph_def, set(fetches), skipped)
        if fetches:
            graph_def = graph_util.extract_sub_graph(graph_def, fetches)
    return graph_def


def _folded(graph_def, fetches, skipped):
    """Returns a GraphDef in which nodes whose values follow from constants are constants. Fetched nodes stay what they are."""
    from runnel.core.framework import Graph
    from runnel.core.graph_io import import_graph_def
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
    known = {op.name for op in graph.get_operations() if op.type == "Const" or _is_known(op)}
    edge = known
    while edge:  # nodes are not always in the order of their inputs
        edge = {op.name for op in graph.get_operations() if op.name not in known and _can_fold(op, known, fetches, skipped)}
        known |= edge
    made = message_class("GraphDef")()
    made.CopyFrom(graph_def)
    for node in made.node:
        op = graph.get_operation_by_name(node.name)
        if node.name not in known or op.type == "Const" or all(user.name in known for user in op.outputs[0].consumers()):
            continue
        value = evaluated_value(op.outputs[0])
        if value is not None and value.nbytes <= _MOST_BYTES:
            _become_constant(node, value, op.outputs[0].dtype)
    return made


def _is_known(op):
    """Tells whether the value of a node follows from the static shape of its input."""
    return op.type in ("Shape", "Size", "Rank") and op.inputs[0].shape.is_fully_defined()


def _can_fold(op, known, fetches, skipped):
    if op.type in _NEVER or op.type.startswith(tuple(skipped)) or op.name in fetches or len(op.outputs) != 1 or not op.inputs:
        return False
    if op.outputs[0].dtype in (dtypes.resource, dtypes.variant) or op.control_inputs:
        return False
    return all(x.op.name in known for x in op.inputs) and evaluated_value(op.outputs[0]) is not None


def _become_constant(node, value, dtype):
    name, device = node.name, node.device
    node.Clear()
    node.name, node.device, node.op = name, device, "Const"
    node.attr["dtype"].type = dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(make_tensor_proto(value, dtype))
