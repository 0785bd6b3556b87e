"""Writes version 1 of a model, a layer in the ONNX format: python3 make_model.py FOLDER"""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
version = os.path.join(sys.argv[1], "1")
os.makedirs(version)
random = np.random.default_rng(1)
graph = helper.make_graph(
    [helper.make_node("Gemm", ["x", "w", "b"], ["logits"]), helper.make_node("Softmax", ["logits"], ["y"], axis=1)],
    "layer",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 3])],
    [numpy_helper.from_array(random.normal(size=(8, 3)).astype(np.float32), "w"),
     numpy_helper.from_array(random.normal(size=3).astype(np.float32), "b")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, os.path.join(version, "model.onnx"))
shutil.copy(os.path.join(here, "model.py"), version)
# The server looks for this file: it comes last.
shutil.copy(os.path.join(here, "container.pbtxt"), version)
