"""Importing GraphDefs in TensorFlow 2: names, devices, colocation, defaults of later versions, and wrong arguments."""

from both import both


def _graph(tf, *rows):
    """Returns the GraphDef of (name, op, inputs, device, colocated with) rows."""
    graph_def = tf.compat.v1.GraphDef()
    for name, op, inputs, device, others in rows:
        node = graph_def.node.add()
        node.name, node.op, node.device = name, op, device
        node.input.extend(inputs)
        if op == "Identity":
            node.attr["T"].type = 1
        if op == "Placeholder":
            node.attr["dtype"].type = 1
        if others:
            node.attr["_class"].list.s.extend(b"loc:@" + other.encode() for other in others)
    return graph_def


@both(v2=True)
def test_names_stay_unique(tf, np):
    graph_def = _graph(tf, ("A", "NoOp", [], "", []), ("B", "NoOp", ["^A"], "", []))
    with tf.Graph().as_default():
        found = [tf.import_graph_def(graph_def, return_elements=[b"A", "B"], name=name) for name in ("", "", None, "A", "A/", "A/")]
    return [[op.name for op in ops] + [ops[1].control_inputs[0].name] for ops in found]


@both(v2=True)
def test_devices_of_imported_nodes(tf, np):
    graph_def = _graph(tf, ("a", "Placeholder", [], "", []), ("b", "Placeholder", [], "/cpu:0", []),
                       ("c", "Identity", ["a"], "/job:worker", []), ("d", "Identity", ["b"], "", ["a", "b"]), ("e", "NoOp", [], "", ["b"]))
    seen, found = [], []

    def of_inputs(op):
        seen.append((op.type, len(op.inputs)))
        return "/device:CPU:1" if len(op.inputs) else ""

    for device in ("/task:1", "/job:ps", "/device:GPU:0", of_inputs, None):
        with tf.Graph().as_default(), tf.compat.v1.device(device):
            ops = tf.import_graph_def(graph_def, return_elements=["a", "b", "c", "d", "e"])
            found.append([(op.name, op.device, op.colocation_groups()) for op in ops])
    return found, sorted(seen)


@both(v2=True)
def test_defaults_of_later_versions_are_left_out(tf, np):
    from tensorflow.core.framework import op_def_pb2
    producer = op_def_pb2.OpList()
    op = producer.op.add()
    op.name = "NoOp"
    attr = op.attr.add()
    attr.name, attr.type, attr.default_value.i = "later", "int", 456
    kept = []
    for value in (456, 455):
        graph_def = _graph(tf, ("a", "NoOp", [], "", []))
        graph_def.node[0].attr["later"].i = value
        try:
            with tf.Graph().as_default():
                op, = tf.graph_util.import_graph_def(graph_def, return_elements=["a"], producer_op_list=producer)
                kept.append("later" in op.node_def.attr)
        except ValueError:
            kept.append("error")
    return kept


@both(v2=True)
def test_messages_of_imports(tf, np):
    empty, texts = tf.compat.v1.GraphDef(), []
    one = _graph(tf, ("A", "NoOp", [], "", []))
    two = _graph(tf, ("A", "NoOp", [], "", []), ("B", "Identity", ["A:1"], "", []))
    with tf.Graph().as_default():
        for arguments in (
                {"graph_def": ""}, {"graph_def": 5}, {"input_map": [1]}, {"input_map": {5: 1}}, {"return_elements": [7]},
                {"return_elements": "abc"}, {"return_elements": ["a:b:c"]}, {"return_elements": ["a:x"]}, {"return_elements": ["a"]},
                {"return_elements": ["a:0"]}, {"graph_def": two}, {"graph_def": one, "return_elements": ["A:1"]},
                {"graph_def": one, "input_map": {"x:0": tf.constant(1)}}, {"graph_def": one, "input_map": {"A:5": tf.constant(1)}},
                {"graph_def": _graph(tf, ("C", "NoOp", [], "", ["nowhere"]))}):
            try:
                tf.import_graph_def(**{"graph_def": empty, **arguments})
                texts.append("no error")
            except (TypeError, ValueError) as error:
                texts.append("%s: %s" % (type(error).__name__, error))
    return texts
