"""Programs of the package tensorflow_gnn, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tensorflow_gnn as tfgnn
import tf_keras as keras

SCHEMA = """
node_sets { key: "a" value { features { key: "h" value { dtype: DT_FLOAT shape { dim { size: 2 } } } } } }
edge_sets { key: "e" value { source: "a" target: "a" } }
context { features { key: "y" value { dtype: DT_FLOAT shape { dim { size: 1 } } } } }
"""
DRAW = np.random.RandomState(0)
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def graph(n):
    """Returns a graph of n nodes; its number to learn is the sum of their features."""
    h = DRAW.rand(n, 2).astype("f")
    sources, targets = (tf.constant(DRAW.randint(0, n, 2 * n), tf.int32) for _ in range(2))
    return tfgnn.GraphTensor.from_pieces(
        context=tfgnn.Context.from_fields(features={"y": tf.constant([[float(h.sum())]])}),
        node_sets={"a": tfgnn.NodeSet.from_fields(sizes=tf.constant([n]), features={"h": tf.constant(h)})},
        edge_sets={"e": tfgnn.EdgeSet.from_fields(sizes=tf.constant([2 * n]), adjacency=tfgnn.Adjacency.from_indices(("a", sources), ("a", targets)))})


def glorot(seed):
    return keras.initializers.GlorotUniform(seed=seed)


@program
def messages():
    one = graph(4)
    sent = tfgnn.broadcast_node_to_edges(one, "e", tfgnn.SOURCE, feature_name="h")
    return tfgnn.pool_edges_to_node(one, "e", tfgnn.TARGET, feature_value=sent).numpy().ravel()


@program
def trained():
    spec = tfgnn.create_graph_spec_from_schema_pb(tfgnn.parse_schema(SCHEMA))
    examples = [tfgnn.write_example(graph(n)).SerializeToString() for n in (3, 4, 5, 3, 4, 5, 4, 4)]
    data = tf.data.Dataset.from_tensor_slices(examples).batch(4).map(lambda text: tfgnn.parse_example(spec, text).merge_batch_to_components())
    data = data.map(lambda one: (one, one.context["y"]))
    given = keras.layers.Input(type_spec=data.element_spec[0])
    layers = tfgnn.keras.layers
    net = layers.MapFeatures(node_sets_fn=lambda nodes, node_set_name: keras.layers.Dense(4, kernel_initializer=glorot(1))(nodes["h"]))(given)
    send = layers.SimpleConv(keras.layers.Dense(4, activation="relu", kernel_initializer=glorot(2)), "mean", receiver_tag=tfgnn.TARGET)
    state = layers.NextStateFromConcat(keras.layers.Dense(4, kernel_initializer=glorot(3)))
    net = layers.GraphUpdate(node_sets={"a": layers.NodeSetUpdate({"e": send}, state)})(net)
    net = keras.layers.Dense(1, kernel_initializer=glorot(4))(layers.Pool(tfgnn.CONTEXT, "sum", node_set_name="a")(net))
    model = keras.Model(given, net)
    model.compile(keras.optimizers.Adam(0.05), loss="mse")
    return model.fit(data, epochs=4, verbose=0).history["loss"]


for name, function in PROGRAMS.items():
    print(name, *["%.8g" % number for number in function()])
