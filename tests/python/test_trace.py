"""RunMetadata of a step: traces, partition graphs, cost models."""

import re

from both import both


def _traced(tf):
    return tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)


def _numberless(text):
    """Names without the numbers of Sends and Recvs, which are given in another order here."""
    return re.sub(r"/_\d+\b", "/_N", text)


def _entries(data):
    """Device, label, sizes of results."""
    return sorted((stats.device, _numberless(node.timeline_label),
                   [(output.slot, output.tensor_description.allocation_description.requested_bytes) for output in node.output])
                  for stats in data.step_stats.dev_stats for node in stats.node_stats)


def _graphs(data):
    return sorted(sorted((_numberless(node.name), node.op, sorted(_numberless(name) for name in node.input), node.device) for node in graph.node)
                  for graph in data.partition_graphs)


@both
def test_feeds_constants_and_fetches(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.add(x, 1.0, name="y")
    w = tf.identity(tf.nn.relu(y, name="z"), name="w")
    with tf.Session() as sess:
        data = tf.RunMetadata()
        sess.run([w, y], {x: [1, 2]}, options=_traced(tf), run_metadata=data)
    rows = [(device, label, [] if label.startswith("w =") else sizes) for device, label, sizes in _entries(data)]
    return rows, _graphs(data)


@both
def test_feeds_and_fetches_are_numbered_by_name(tf, np):
    b, a = tf.placeholder(tf.float32, [], name="b"), tf.placeholder(tf.float32, [], name="a")
    c = tf.subtract(b, a, name="c")
    d = tf.split(tf.stack([a, b], name="stack"), 2, name="d")
    with tf.Session() as sess:
        data = tf.RunMetadata()
        sess.run([d[1], c, d[0]], {b: 1, a: 2}, options=_traced(tf), run_metadata=data)
    names = {node.node_name for stats in data.step_stats.dev_stats for node in stats.node_stats}
    return sorted(name for name in names if name.startswith("_")), _graphs(data)


@both
def test_parts_of_two_devices(tf, np):
    with tf.device("/cpu:1"):
        a = tf.random_uniform([3], seed=1, name="a")
    with tf.device("/cpu:0"):
        b = tf.square(a, name="b")
        q = tf.random_uniform([3], seed=2, name="q") + a
    with tf.device("/cpu:1"):
        c = tf.add(b, 1.0, name="c")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        data = tf.RunMetadata()
        sess.run([c, q], options=_traced(tf), run_metadata=data)
    swap = "AddV2(q/RandomUniform, a/RandomUniform/_N)", "AddV2(a/RandomUniform/_N, q/RandomUniform)"  # stock sorts the operands
    return [(device, label.replace(*swap), sizes) for device, label, sizes in _entries(data)], _graphs(data)


@both
def test_choice_by_a_default(tf, np):
    """A default might be fed: what rests on it is part of the trace, though it is known ahead of the step."""
    pred = tf.placeholder_with_default(tf.constant(True), [], name="pred")
    value = tf.cond(pred, lambda: True, lambda: False)
    with tf.Session() as sess:
        data = tf.RunMetadata()
        sess.run(value, options=_traced(tf), run_metadata=data)
    names = {node.node_name for stats in data.step_stats.dev_stats for node in stats.node_stats}
    return sorted(names & {"cond/Switch", "cond/switch_t", "cond/Merge", "_retval_cond/Merge_0_0", "_SOURCE"})


@both
def test_steps_whose_costs_are_measured(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.add(x, 1.0, name="y")
    rows = []
    for every, after in (3, 0), (2, 3), (1, 0), (0, 0), (2, 5):
        config = tf.ConfigProto()
        config.graph_options.build_cost_model = every
        config.graph_options.build_cost_model_after = after
        with tf.Session(config=config) as sess:
            for _ in range(6):
                data = tf.RunMetadata()
                sess.run(y, {x: [1, 2]}, run_metadata=data)
                rows.append((every, after, data.HasField("cost_graph"), data.HasField("step_stats")))
                sess.run(x + 1, {x: [1, 2]}) if every == 3 else None  # steps of another kind do not count
    return rows


@both
def test_cost_graph(tf, np):
    config = tf.ConfigProto()
    config.graph_options.build_cost_model = 1
    x = tf.placeholder(tf.float32, [None], name="x")
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    with tf.control_dependencies([v.assign_add([1.0, 1.0], name="first")]):
        y = tf.multiply(x, 3.0, name="y")
    with tf.Session(config=config) as sess:
        sess.run(v.initializer)
        data = tf.RunMetadata()
        sess.run(y, {x: [1, 2]}, run_metadata=data)
    names = {node.id: node.name for node in data.cost_graph.node}
    assert len(names) == len(data.cost_graph.node)
    rows = []
    for node in data.cost_graph.node:
        outputs = [(output.dtype, [dim.size for dim in output.shape.dim]) for output in node.output_info]
        inputs = [(names[info.preceding_node], info.preceding_port) for info in node.input_info]
        if node.name != "_SINK":  # stock names the source twice there
            rows.append((node.name, node.device, inputs, outputs, sorted(names[i] for i in node.control_input), node.is_final, node.compute_cost >= 0,
                         node.persistent_memory_size if node.name == "v" else 0))
    return sorted(rows)
