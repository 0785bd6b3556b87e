"""Any ONNX file, with ONNX Runtime: the signature is the file's own."""

import onnxruntime

from runnel.serving import Signature

TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(int64)": "int64", "tensor(int32)": "int32",
         "tensor(uint8)": "uint8", "tensor(bool)": "bool", "tensor(string)": "string"}

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])


def ports(values):
    """Names, types and shapes; a dimension with a name is any size."""
    return {value.name: (TYPES[value.type], [dim if isinstance(dim, int) else None for dim in value.shape]) for value in values}


def run(inputs):
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


predict = Signature(run, ports(session.get_inputs()), ports(session.get_outputs()), pure=True)
