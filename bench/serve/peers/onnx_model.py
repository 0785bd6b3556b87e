#!/usr/bin/env python3
"""The models for peers: onnx_model.py FOLDER writes identity.onnx and mlp.onnx, with the weights of FOLDER/mlp.npz."""

import os
import sys

MODEL = "COMPARE_MODEL"  # in the environment, because peers start processes of their own


class OnnxModel:
    def __init__(self):
        import numpy
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(os.environ[MODEL], options, providers=["CPUExecutionProvider"])
        self.array = lambda rows: numpy.asarray(rows, numpy.float32)

    def __call__(self, rows):
        return self.session.run(None, {"x": self.array(rows)})[0].tolist()


def arguments():
    """The port; the model becomes that of OnnxModel."""
    os.environ[MODEL] = sys.argv[2]
    return int(sys.argv[1])


def make(folder):
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def value(name, inner):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", *inner])

    def save(name, nodes, inner, outer, values):
        graph = helper.make_graph(nodes, name, [value("x", inner)], [value("y", outer)],
                                  [numpy_helper.from_array(array, key) for key, array in values.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, os.path.join(folder, name + ".onnx"))

    save("identity", [helper.make_node("Identity", ["x"], ["y"])], [], [], {})
    layers = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
              helper.make_node("Gemm", ["r", "w2", "b2"], ["y"])]
    save("mlp", layers, [784], [10], dict(numpy.load(os.path.join(folder, "mlp.npz"))))


if __name__ == "__main__":
    make(sys.argv[1])
