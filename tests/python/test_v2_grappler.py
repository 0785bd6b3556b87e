"""tf_optimizer.OptimizeGraph of tensorflow.python.grappler: the graph that is left computes what the whole one did."""

import os
import subprocess
import sys

from both import HERE, ROOT

PROGRAM = """
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.keras.saving.saving_utils import trace_model_call


def optimized(graph, fetches, *optimizers):
    config, collection = config_pb2.ConfigProto(), meta_graph_pb2.CollectionDef()
    config.graph_options.rewrite_options.optimizers[:] = optimizers
    collection.node_list.value.extend(fetches)
    with graph.as_default():
        meta = tf.compat.v1.train.export_meta_graph(graph_def=graph.as_graph_def())
    meta.collection_def["train_op"].CopyFrom(collection)
    return tf_optimizer.OptimizeGraph(config, meta)


def value(graph_def, x):
    with tf.Graph().as_default() as graph:
        y, = tf.import_graph_def(graph_def, {}, ["y:0"], name="")
        with tf.compat.v1.Session() as session:
            return session.run(y, {"x:0": x})


double = tf.function(lambda x: x * tf.constant(2.0))
with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [None, 3], name="x")
    w = tf.matmul(tf.constant(np.ones([3, 4], "f")), tf.constant(np.ones([4, 2], "f")), name="w")
    tf.add(x, 1.0, name="unused")
    rows = tf.cast(tf.shape(tf.zeros([5, 6]))[1], tf.float32)
    y = tf.identity(tf.matmul(x, w) * rows + double(tf.constant([[1.0, 2.0]])), name="y")
made = optimized(graph, ["x", "y"], "constfold", "function", "dependency")
names = {node.name: node.op for node in made.node}
print("unused" in names, names["w"], sum(op == "MatMul" for op in names.values()), any("PartitionedCall" in op for op in names.values()))
x = np.arange(6, dtype="f").reshape(2, 3)
print(np.array_equal(value(made, x), value(graph.as_graph_def(), x)), value(made, x).tolist())
print("unused" in {node.name for node in optimized(graph, ["x", "y"], "function").node})
traced = trace_model_call(type("Model", (), {"inputs": [tf.zeros([2, 3])], "input": None, "output_names": ["sum"], "__call__": lambda self, x: x + 1})())
print(sorted(traced.get_concrete_function().structured_outputs), traced(tf.ones([2, 3]))["sum"].shape)
try:
    tf_optimizer.OptimizeGraph(3, None)
except TypeError as error:
    print(error)
"""


def test_optimize_graph():
    done = subprocess.run([sys.executable, "-m", "runnel", "--v2", "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["False Const 1 False", "True [[74.0, 76.0], [290.0, 292.0]]", "True", "['sum'] (2, 3)",
                                        "Argument `config_proto` should be a tf.ConfigProto, received type: int"]
